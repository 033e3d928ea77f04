"""What it costs to protect people and not rows, where people have several rows.

The table is diabetes: 71,518 patients, 101,766 visits. ``visits``: every visit is protected for
itself, and its person is not. ``assumed``: all visits of a person, of which there are as many as
the largest number in the table. ``bounded``: all visits of a person, of whom no more than k are
read (``People("person", k)``). ``weighed``: the same, and each row that is read counts as 1 / the
number of its person's (``weighed=True``). ``--columns`` takes the first so many, and the label.

``used`` is the share of the rows that were read. ``of visits`` is the mean L1 distance of pairs of
columns from the table's rows, ``of people`` from people, each of whose rows counts as 1 / their
number. Not private.
"""

from itertools import combinations

import numpy as np
import pandas as pd

from benchmarks.experiment import means, options, particles, quiet
from sdv_privpgd import People, fit_table
from sdv_privpgd.benchmark.tables import TABLES, columns_of, rows_and_facts
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods import PrivPGD

_DELTA, _PERSON = 1e-6, "patient_nbr"


@options(epsilon=1.0, bounds=[1, 2, 3], seeds=3, columns=15, rows=int, num_particles=int)
def rows(given):
    frame, facts = rows_and_facts("diabetes", given.data)
    declared = TABLES["diabetes"]
    file = given.data / f"{declared.file}.parquet"
    frame[_PERSON] = pd.read_parquet(file, columns=[_PERSON])[_PERSON]
    frame = frame.head(given.rows or len(frame))
    named = [name for name in facts if name != declared.label][: given.columns]
    facts = {name: facts[name] for name in [*named, declared.label]}
    schema = Schema.from_sdv(facts, num_bins=32)
    number = frame.groupby(_PERSON)[_PERSON].transform("size").to_numpy()
    truths = {
        "of visits": _shares(frame, schema, np.ones(len(frame))),
        "of people": _shares(frame, schema, 1 / number),
    }
    for name, bound, settings in _arms(given.bounds, int(number.max())):
        found = means(_errors(frame, facts, truths, given, settings, s) for s in range(given.seeds))
        used = float(np.minimum(frame[_PERSON].value_counts(), bound).sum() / len(frame))
        yield {"protected": name, "k": bound, "used": used, **found}


def _arms(bounds, most):
    yield "visits", most, {"people": People(max_rows=1)}
    yield "assumed", most, {"people": People(max_rows=most)}
    for bound in bounds:
        yield "bounded", bound, {"people": People(_PERSON, bound)}
        if bound > 1:  # a person's only row counts as 1
            yield "weighed", bound, {"people": People(_PERSON, bound, weighed=True)}


def _errors(frame, facts, truths, given, settings, seed):
    # Nothing is discovered, so that all codes are those that are compared.
    settings = {**settings, "adjacency": "add_remove", "discovery_share": 0}
    engine = particles(given.num_particles, seed=seed)
    with quiet():
        fitted = fit_table(
            frame,
            facts,
            given.epsilon,
            _DELTA,
            method=PrivPGD(engine=engine, num_bins=32),
            **settings,
        ).fitted
    model = fitted.release.model
    return {
        name: float(
            np.mean([np.abs(model.marginal(pair) - own).sum() for pair, own in each.items()])
        )
        for name, each in truths.items()
    }


def _shares(frame, schema, weights):
    """The shares of all pairs' cells, where each row counts as its weight."""
    codes, domain = encode_table(columns_of(frame), schema).astype(np.int64), schema.domain()
    found = {}
    for a, b in combinations(range(len(domain)), 2):
        shape = domain.sizes[a], domain.sizes[b]
        cells = codes[:, a] * shape[1] + codes[:, b]
        table = np.bincount(cells, weights=weights, minlength=shape[0] * shape[1])
        pair = (domain.attributes[a], domain.attributes[b])
        found[pair] = (table / table.sum()).reshape(shape)
    return found
