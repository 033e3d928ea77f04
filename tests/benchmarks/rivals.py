"""Methods of this package beside other people's implementations, at one budget. Not private.

    python -m sdv_privpgd.benchmark rivals --table adult --reference "dpmm MST"
        --python dpmm/bin/python --seeds 5 --out rivals.parquet

``--python`` is an interpreter that has the reference (``--list`` says how to install each); nothing
of it comes into this package's environment. Both are given the same codes of all rows that
``compare`` fits, and make as many rows. Epsilon and delta are turned into mu^2, exactly for
Gaussian noise, and the reference gets rho = mu^2 / 2: noise with the same sum of squares, under
the adjacency for which its noise is right. Its own accounting would allow it less: at epsilon 1 and
delta 1e-5, rho 0.031 in place of 0.036. A choice of range epsilon e it counts as e^2 / 8 of rho,
which is e^2 / 4 of mu^2, where ours is charged e^2 / 2.55; this too is in its favour.

Every fit is a process of its own with one thread. Seconds are the processor's, of fit and rows,
without imports; those of compiled references include compiling.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.benchmark import reference_codes
from sdv_privpgd.benchmark.compare import (
    Run,
    add_table_arguments,
    append,
    canonical,
    held,
    name_of,
    read,
)
from sdv_privpgd.benchmark.fits import PeakMemory, print_table
from sdv_privpgd.benchmark.methods import Compared
from sdv_privpgd.benchmark.reference_codes import REFERENCES
from sdv_privpgd.benchmark.single import table_of
from sdv_privpgd.methods.pipeline import run
from sdv_privpgd.metrics.pairs import average, columns, differences, l1_by_pair, sw1_by_pair
from sdv_privpgd.privacy.accounting import mu_squared_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

if TYPE_CHECKING:
    import pandas as pd

_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",  # of JAX
}


def add_command(commands) -> None:
    """Adds ``rivals``, and ``rivals-once`` for a fit of ours, to the command line."""
    rivals = commands.add_parser("rivals", help="our methods beside other implementations")
    rivals.add_argument("--list", action="store_true", help="the references, and how to get them")
    rivals.add_argument("--reference", choices=list(REFERENCES))
    rivals.add_argument("--python", help="an interpreter that has the reference")
    rivals.add_argument("--checkout", default="", help="of a reference that has no package")
    rivals.add_argument("--seeds", type=int, default=5, help="repetitions with fresh noise")
    rivals.add_argument("--own-seeds", type=int, default=20, help="repetitions of ours")
    rivals.add_argument("--out", type=Path, help="the Parquet file of results")
    rivals.set_defaults(run=_rivals)
    once = commands.add_parser("rivals-once", help="one fit of ours; prints JSON")
    once.add_argument("source", type=Path)
    once.add_argument("target", type=Path)
    once.set_defaults(run=_once)
    add_table_arguments(rivals)
    rivals.add_argument("--only", nargs="+", help="columns that are kept; all if not given")
    rivals.add_argument("--epsilon", type=float, default=1.0)
    rivals.add_argument("--delta", type=float, default=1e-5)
    rivals.add_argument("--max-megabytes", type=float, default=80.0, help="of AIM's model")


def rho_of(epsilon: float, delta: float) -> float:
    """The rho whose Gaussian noise is exactly (epsilon, delta)-private: half of mu^2."""
    return float(mu_squared_of(epsilon, delta)) / 2


def errors(domain: Domain, real: np.ndarray, synthetic: np.ndarray) -> dict[str, float]:
    """Half the L1 of all pairs and of all triples, and sliced W1 of pairs. Not private."""
    ours, theirs = columns(domain, real), columns(domain, synthetic)
    triples = [
        float(np.abs(differences(domain, triple, ours, theirs)[1]).sum()) / 2
        for triple in domain.cliques(3)
    ]
    return {
        "half_l1": average(l1_by_pair(domain, real, synthetic)) / 2,
        "half_l1_of_triples": float(np.mean(triples)),
        "sw1": average(sw1_by_pair(domain, real, synthetic)),
    }


def _rivals(arguments: argparse.Namespace) -> None:
    if arguments.list:
        for name, each in REFERENCES.items():
            print(f"{name}, beside {each.method}: {each.install}")
        return
    if arguments.reference is None or arguments.python is None or arguments.out is None:
        raise SystemExit("Name --reference, --python and --out, or ask for a --list.")
    table = table_of(arguments)
    codes, domain = table.encode(table.split()[0]), table.domain
    if arguments.only:
        kept = [name for name in domain.attributes if name in arguments.only]
        codes, domain = codes[:, domain.axes(kept)], domain.project(kept)
    reference = REFERENCES[arguments.reference]
    given = {
        "codes": codes,
        "sizes": np.array(domain.sizes),
        "ours": json.dumps(
            {key: getattr(arguments, key) for key in ("epsilon", "delta", "max_megabytes")}
            | {"method": reference.method, "adjacency": reference.adjacency}
        ),
        "call": json.dumps(
            {key: getattr(arguments, key) for key in ("reference", "max_megabytes", "checkout")}
            | {"rho": rho_of(arguments.epsilon, arguments.delta)}
        ),
    }
    shared = {key: getattr(arguments, key) for key in ("cells", "delta", "max_megabytes", "only")}
    settings = canonical({**shared, "adjacency": reference.adjacency})
    asked = {arguments.reference: arguments.seeds, reference.method: arguments.own_seeds}
    for name, seed in [(name, seed) for name, number in asked.items() for seed in range(number)]:
        each = Run(
            method=name,
            table=name_of(arguments, table.name),
            epsilon=arguments.epsilon,
            seed=seed,
            settings=settings,
        )
        if each in held(arguments.out):
            continue
        found, rows = _fitted(name, arguments.python, given)
        facts = {
            "delta": arguments.delta,
            "adjacency": reference.adjacency,
            "rows": len(codes),
            "columns": len(domain),
            "fit_seconds": found["seconds"],
            "peak_mebibytes": found["peak_mebibytes"],
        }
        append(arguments.out, each, facts, errors(domain, codes, rows))
    both = (arguments.reference, reference.method)
    print_table(summary(read(arguments.out), both, settings), header=True)


def _fitted(name: str, python: str, given: Mapping) -> tuple[dict, np.ndarray]:
    """The facts and the rows of a fit in a process of its own."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "given.npz"), Path(folder, "rows.npz")
        np.savez(source, **given)
        if name in REFERENCES:
            command = [python, "-I", reference_codes.__file__]
        else:
            command = [sys.executable, "-m", "sdv_privpgd.benchmark", "rivals-once"]
        done = subprocess.run(
            [*command, str(source), str(target)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, **_ONE_THREAD},
        )
        return json.loads(done.stdout.splitlines()[-1]), np.load(target)["codes"]


def _once(arguments: argparse.Namespace) -> None:
    """Fits a method of ours to the codes of a file, as ``reference_codes`` does a reference."""
    given = np.load(arguments.source)
    codes, call = given["codes"], json.loads(str(given["ours"]))
    sizes = tuple(given["sizes"].tolist())
    domain = Domain(tuple(f"c{axis}" for axis in range(len(sizes))), sizes)
    rng = np.random.default_rng(0)
    small = Domain(("a", "b", "c"), (2, 2, 2))
    _rows_of(small, rng.integers(0, 2, (200, 3)), call)  # so that imports do not count
    memory, start = PeakMemory(), time.process_time()
    rows = _rows_of(domain, codes, call)
    found = {"seconds": time.process_time() - start, "peak_mebibytes": memory.mebibytes()}
    np.savez(arguments.target, codes=rows)
    print(json.dumps(found))


def _rows_of(domain: Domain, codes: np.ndarray, call: Mapping) -> np.ndarray:
    """As many synthetic rows of a method of ours."""
    method = Compared(name=call["method"], max_megabytes=call["max_megabytes"])
    adjacency = Adjacency(call["adjacency"])
    ledger = PrivacyLedger.open(call["epsilon"], call["delta"], adjacency)
    curator = Curator(Dataset(domain, codes), Books(ledger))
    release = run(curator, method.made(0))
    return release.model.sample(len(codes), seed=0)


def summary(results: "pd.DataFrame", methods: tuple[str, ...], settings: str) -> list[dict]:
    """One row a method and epsilon: means with standard errors, of the runs with these settings."""
    own: Any = results[(results["settings"] == settings) & results["method"].isin(methods)]
    rows = []
    for (epsilon, method), runs in own.groupby(["epsilon", "method"]):
        row: dict = {"method": method, "epsilon": float(epsilon)}
        for place, (metric, each) in enumerate(runs.groupby("metric")):
            mean, error = float(each["value"].mean()), float(each["value"].sem())
            row |= {str(metric): mean, "+-" + " " * place: error}
        once = runs.drop_duplicates("seed")
        row |= {
            "runs": len(once),
            "seconds": once["fit_seconds"].mean(),
            "MiB": once["peak_mebibytes"].mean(),
        }
        rows.append(row)
    return rows
