"""The experiment on a device: what it needs, and that its fit runs where there is none."""

import pytest
import torch
from benchmarks.experiment import HERE
from benchmarks.gpu import stage_seconds
from benchmarks.simulated import simulated_table
from processes import python

from sdv_privpgd.privacy.dataset import Dataset


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_without_a_device_it_says_so_in_one_line_and_needs_the_core_alone():
    absent = ("sdv", "rdt", "sdmetrics", "opacus", "pandas", "numba", "beartype", "matplotlib")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
        f"sys.path.insert(0, {str(HERE.parent)!r}); "
        "from benchmarks.experiment import main; main(['gpu'])"
    )
    done = python("-c", code)
    assert done.returncode == 1, done.stderr
    assert done.stdout == "No CUDA device: torch.cuda.is_available() is false.\n"


def test_a_small_run_has_all_stages():
    stages = stage_seconds(Dataset(*simulated_table(500, 3, num_cells=4)), 1.0, 300, 2)
    assert list(stages)[3:-2] == [
        "measure", "consistency", "project", "start", "descend", "finish",
    ]  # fmt: skip
