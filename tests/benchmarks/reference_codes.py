"""Other people's implementations of MST, AIM and MWEM, called with codes and a budget. Not private.

This file imports nothing of this package: an interpreter that has the reference runs it by its
path, because no one environment can hold all of them.

    python -I reference_codes.py INPUT OUTPUT

INPUT is an ``.npz`` with ``codes`` of shape (row, attribute), ``sizes``, and ``call``, JSON with
the ``reference``, ``rho``, ``max_megabytes`` and ``checkout``. OUTPUT gets the synthetic ``codes``;
the last line that is printed is JSON with the seconds of the processor and the peak memory, both
without imports.

The budget is rho of zero-concentrated privacy, as all of them count it: noise of standard deviation
1 / sqrt(2 rho) on a table, and a choice with epsilon sqrt(8 rho). It replaces what each makes of
its epsilon and delta, so all spend alike. Everything else is as published, defaults included.
"""

import importlib.util
import json
import resource
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

_DELTA = 1e-5  # they ask for one, which the budget replaces


@dataclass(frozen=True)
class Call:
    """A budget and limits for a reference."""

    rho: float
    max_megabytes: float = 80.0
    checkout: str = ""


@dataclass(frozen=True)
class Reference:
    """A published implementation, which makes synthetic codes with columns in the same order."""

    run: Callable[[np.ndarray, Sequence[int], Call], np.ndarray]
    method: str  # the name of this package's own in ``benchmark.methods``
    adjacency: str  # under which its noise is right for the budget
    modules: tuple[str, ...]  # what it imports, which does not count
    install: str


def _named(codes: np.ndarray, sizes: Sequence[int]) -> tuple[Any, dict[str, int]]:
    """The codes as a frame, and its columns' numbers of codes."""
    pandas = import_module("pandas")
    names = [f"c{axis}" for axis in range(len(sizes))]
    return pandas.DataFrame(codes, columns=names), dict(zip(names, map(int, sizes), strict=True))


def _dpmm(name: str, codes: np.ndarray, sizes: Sequence[int], call: Call, **options: Any):
    frame, domain = _named(codes, sizes)
    kind = getattr(import_module(f"dpmm.models.{name.lower()}"), f"{name}GM")
    model = kind(epsilon=1.0, delta=_DELTA, domain=domain, n_jobs=1, **options).generator
    model.rho, model.sigma = call.rho, np.sqrt(3 / (2 * call.rho))
    model.fit(frame)
    return model.generate(n_records=len(codes))[frame.columns].to_numpy()


def dpmm_mst(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """MST of dpmm, which is its authors' code on a copy of their first mbi."""
    return _dpmm("MST", codes, sizes, call)


def dpmm_aim(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """AIM of dpmm, which is its authors' code on a copy of their first mbi."""
    return _dpmm("AIM", codes, sizes, call, max_model_size=call.max_megabytes)


def dpmm_independent(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """Columns with equal noise, to which the estimator of dpmm's MST is fitted."""
    frame, domain = _named(codes, sizes)
    mbi = import_module("dpmm.models.base.mbi")
    noise = import_module("dpmm.models.base.utils").gaussian_noise
    sparse = import_module("scipy.sparse")
    stddev = float(np.sqrt(len(sizes) / (2 * call.rho)))
    measured = []
    for name, size in domain.items():
        counts = np.bincount(frame[name], minlength=size)
        measured.append((sparse.eye(size), counts + noise(stddev, (size,)), stddev, (name,)))
    engine = mbi.FactoredInference(mbi.Domain.fromdict(domain), iters=5_000)
    rows = engine.estimate(measured).synthetic_data(rows=len(codes))
    return rows.df[frame.columns].to_numpy()


def private_pgm_mwem(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """MWEM+PGM of its authors, from their checkout, on dpmm's copy of their first mbi.

    It is told the total, as its option ``bounded`` has it. That option forgets that a score then
    changes by up to 2, which is mended here.
    """
    sys.modules["mbi"] = import_module("dpmm.models.base.mbi")
    accounting: Any = types.ModuleType("cdp2adp")
    accounting.cdp_rho = lambda *_: call.rho
    sys.modules["cdp2adp"] = accounting
    path = Path(call.checkout, "mechanisms", "mwem+pgm.py")
    found = importlib.util.spec_from_file_location("mwem_pgm", path)
    assert found is not None
    assert found.loader is not None
    module: Any = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    choose = module.worst_approximated
    module.worst_approximated = lambda *given: choose(*given, bounded=True)
    frame, domain = _named(codes, sizes)
    data = module.Dataset(frame, sys.modules["mbi"].Domain.fromdict(domain))
    rows = module.mwem_pgm(data, 1.0, _DELTA, bounded=True, maxsize_mb=call.max_megabytes)
    return rows.df[frame.columns].to_numpy()


_DPMM = "pip install dpmm==0.1.9 with Python 3.11"

REFERENCES = {
    "dpmm Independent": Reference(
        dpmm_independent, "Independent", "add_remove", ("dpmm.models.mst",), _DPMM
    ),
    "dpmm MST": Reference(dpmm_mst, "MST", "add_remove", ("dpmm.models.mst",), _DPMM),
    "dpmm AIM": Reference(dpmm_aim, "AIM", "add_remove", ("dpmm.models.aim",), _DPMM),
    "private-pgm MWEM": Reference(
        private_pgm_mwem,
        "MWEM",
        "replace_one",
        ("dpmm.models.mst",),
        f"{_DPMM}, and --checkout with github.com/ryan112358/private-pgm at 02c78c42",
    ),
}


def main(source: str, target: str) -> None:
    """Runs a reference once on the codes of a file."""
    given = np.load(source)
    call = json.loads(str(given["call"]))
    reference = REFERENCES[call.pop("reference")]
    codes, sizes = given["codes"].astype(np.int64), given["sizes"].tolist()
    for module in reference.modules:
        import_module(module)
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")  # forgets the largest memory so far
    start, before = time.process_time(), _kibibytes("VmRSS")
    rows = reference.run(codes, sizes, Call(**call))
    seconds = time.process_time() - start
    peak = (_kibibytes("VmHWM") - before) / 2**10
    np.savez(target, codes=np.asarray(rows, dtype=np.int32))
    print(json.dumps({"seconds": seconds, "peak_mebibytes": peak}))


def _kibibytes(key: str) -> int:
    """An entry of Linux's memory report; elsewhere always the peak."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(key)]
    return int(line.split()[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
