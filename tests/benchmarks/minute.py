"""The first minute, in processor seconds: compiling, a new process's first fit, a plan.

Each line is a new process, of which "process" is the whole. "compile" has an empty folder for
compiled code; "again" is the same fit in a process after it. A plan is of as many numbers as
categories, none of them undeclared.
"""

import os
import tempfile
import time

import numpy as np
import pandas as pd

from benchmarks.experiment import apart, options, quiet

_CLOCK = time.process_time


@options(rows=[10_000, 1_000_000], columns=[10, 60])
def rows(given):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder  # the processes inherit it
        # An installed package has its bytecode: the second process does not write it any more.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        apart(process)
        for what in ("compile", "again"):
            yield {"what": what, **apart(first_fit)}
        for columns in given.columns:
            for number in given.rows:
                size = {"rows": number, "columns": columns}
                yield {"what": "plan", **size, **apart(plan, **size)}


def process():
    import sdv_privpgd.plugin  # noqa: F401

    return {}


def first_fit():
    from sdv_privpgd import fit_table

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.integers(0, 9, 1_500), "y": rng.choice(list("AB"), 1_500)})
    with quiet():
        fit_table(table, _columns(2, table.columns), epsilon=1.0).sample(1_000)
    return {"process": _CLOCK()}


def plan(rows, columns):
    from sdv_privpgd import plan_table

    plan_table(_columns(2), 1.0, num_rows=rows)  # imports what it needs
    began = _CLOCK()
    plan_table(_columns(columns), 1.0, num_rows=rows)
    return {"plan": _CLOCK() - began}


def _columns(number, names=None):
    from sdv_privpgd import Categorical, Numerical

    kinds = Numerical(0, 100, decimal_places=0), Categorical(list("ABCDE"))
    return {
        name: kinds[at % 2]
        for at, name in enumerate(names if names is not None else [f"c{n}" for n in range(number)])
    }
