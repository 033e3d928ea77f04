"""Methods of this package beside other people's implementations, at one budget. Not private.

    python tests/benchmarks rivals --reference "dpmm MST" --python dpmm/bin/python

``--python`` is an interpreter that has the reference (``--list`` says how to install each); nothing
of it comes into this package's environment. Both are given the same codes of all rows that
``compare`` fits, make as many rows, and have the same ``--max-megabytes`` if they have any. Epsilon
and delta are turned into mu^2, exactly for Gaussian noise, and the reference gets rho = mu^2 / 2:
noise with the same sum of squares, under the adjacency for which its noise is right. Its own
accounting would allow it less: at epsilon 1 and delta 1e-5, rho 0.031 in place of 0.036. A choice
of range epsilon e it counts as e^2 / 8 of rho, which is e^2 / 4 of mu^2, where ours is charged
e^2 / 2.55; this too is in its favour.

Every fit is a process of its own with one thread. Seconds are the processor's, of fit and rows,
without imports; those of compiled references include compiling. A line a method: half the L1 of all
pairs with its standard error over fits, that of all triples, and sliced W1 of pairs.
"""

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import reference_codes
from benchmarks.experiment import apart, means, options
from benchmarks.reference_codes import REFERENCES
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.benchmark.fits import PeakMemory
from sdv_privpgd.benchmark.methods import Compared
from sdv_privpgd.benchmark.tables import load
from sdv_privpgd.methods.pipeline import run
from sdv_privpgd.metrics.pairs import average, columns, differences, l1_by_pair, sw1_by_pair
from sdv_privpgd.privacy.accounting import mu_squared_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",  # of JAX
}


@options(
    list=False, reference=str, python=str, checkout="", table="adult", cells=32, only=["all"],
    epsilon=1.0, delta=1e-5, max_megabytes=80.0, seeds=5, own_seeds=20,
)  # fmt: skip
def rows(given):
    if given.list:
        for name, each in REFERENCES.items():
            yield {"reference": name, "beside": each.method, "install": each.install}
        return
    if given.reference is None or given.python is None:
        raise SystemExit("Name --reference and --python, or ask for a --list.")
    os.environ.update(ONE_THREAD)
    table, reference = load(given.table, given.data, given.cells), REFERENCES[given.reference]
    codes, domain = table.encode(table.split()[0]), table.domain
    if given.only != ["all"]:
        kept = [name for name in domain.attributes if name in given.only]
        codes, domain = codes[:, domain.axes(kept)], domain.project(kept)
    for name, number in {given.reference: given.seeds, reference.method: given.own_seeds}.items():
        runs = []
        for _ in range(number):
            found, made = fitted(name, given, codes, domain)
            runs.append({**errors(domain, codes, made), **found})
        yield {"method": name, "epsilon": given.epsilon, "runs": number, **means(runs)}


def rho_of(epsilon, delta):
    """The rho whose Gaussian noise is exactly (epsilon, delta)-private: half of mu^2."""
    return float(mu_squared_of(epsilon, delta)) / 2


def errors(domain, real, synthetic):
    """Half the L1 of all pairs and of all triples, and sliced W1 of pairs."""
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


def fitted(name, given, codes, domain):
    """The seconds and the memory of a fit in a process of its own, and its rows."""
    reference = REFERENCES[given.reference]
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "given.npz"), Path(folder, "rows.npz")
        limit = {"max_megabytes": given.max_megabytes}
        rho = rho_of(given.epsilon, given.delta)
        checkout = given.checkout and os.path.abspath(given.checkout)
        call = {"reference": given.reference, "rho": rho, "checkout": checkout, **limit}
        np.savez(source, codes=codes, sizes=np.array(domain.sizes), call=json.dumps(call))
        if name in REFERENCES:
            command = [given.python, "-I", reference_codes.__file__, str(source), str(target)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
        else:
            budget = {"epsilon": given.epsilon, "delta": given.delta}
            own = {**limit, **budget, "adjacency": reference.adjacency}
            found = apart(fit_ours, source=source, target=target, method=name, **own)
        return found, np.load(target)["codes"]


def fit_ours(source, target, **own):
    """Fits a method of ours to the codes of a file, as ``reference_codes`` does a reference."""
    given = np.load(source)
    sizes = tuple(given["sizes"].tolist())
    domain = Domain(tuple(f"c{axis}" for axis in range(len(sizes))), sizes)
    small = np.random.default_rng(0).integers(0, 2, (200, 3))
    rows_of(Domain(("a", "b", "c"), (2, 2, 2)), small, **own)  # so that imports do not count
    memory, start = PeakMemory(), time.process_time()
    made = rows_of(domain, given["codes"], **own)
    seconds = time.process_time() - start
    np.savez(target, codes=made)
    return {"seconds": seconds, "peak_mebibytes": memory.mebibytes()}


def rows_of(domain, codes, method, epsilon, delta, adjacency, max_megabytes):
    """As many synthetic rows of a method of ours."""
    asking: Any = Compared(name=method).made(0)
    if hasattr(asking, "max_megabytes"):
        asking = replace(asking, max_megabytes=max_megabytes)
    ledger = PrivacyLedger.open(epsilon, delta, Adjacency(adjacency))
    release = run(Curator(Dataset(domain, codes), FitLedger(ledger)), asking)
    return release.model.sample(len(codes), seed=0)
