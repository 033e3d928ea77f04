"""What the tests of a device share, without the packages that a bare machine lacks."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
ROOT = Path(__file__).parents[2]

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")


def device_or_skip():
    if not INTERPRETED and not torch.cuda.is_available():
        pytest.skip("needs CUDA, or TRITON_INTERPRET=1")
    return torch.device("cpu" if INTERPRETED else "cuda")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def subprocess_of(arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def assert_passes_in_the_interpreter(file):
    # A process of its own: Triton decides between compiler and interpreter when it is imported.
    options = ["-c", os.devnull, "--noconftest", "-p", "no:cacheprovider", "-o", "markers=gpu"]
    done = subprocess_of(["-m", "pytest", *options, "-q", "-m", "gpu", file], TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout, done.stdout
