"""What it costs to protect people and not rows, where people have several rows.

    python -m sdv_privpgd.benchmark people   # the diabetes table: 71,518 patients, 101,766 visits

``visits``: every visit is protected for itself, and its person is not. ``assumed``: all visits of a
person, of which there are as many as the largest number in the table. ``bounded``: all visits of a
person, of whom no more than k are read (``person_column``). ``weighed``: the same, and each row
that is read counts as 1 / the number of its person's (``weigh_people``).

``used`` is the share of the rows that were read. ``of visits`` is the mean L1 distance of pairs of
columns from the table's rows, ``of people`` from people, each of whose rows counts as 1 / their
number. Compared with real rows: not private.
"""

import argparse
import warnings
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.benchmark.fits import FOLDER, columns_of
from sdv_privpgd.benchmark.meters import print_table
from sdv_privpgd.domain import Clique

if TYPE_CHECKING:
    import pandas as pd

    from sdv_privpgd.columns.schema import Schema

DELTA = 1e-6
PERSON = "patient_nbr"


def add_command(commands) -> None:
    """Adds ``people`` to the command line."""
    parser = commands.add_parser("people", help="people protected, and not rows, of diabetes")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--bounds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--seeds", type=int, default=3, help="repetitions with fresh noise")
    parser.add_argument("--columns", type=int, default=15, help="the first so many, and the label")
    parser.add_argument("--rows", type=int, help="of the table; default: all")
    parser.add_argument("--num-particles", type=int)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.set_defaults(run=_people)


def _people(arguments: argparse.Namespace) -> None:
    import pandas as pd

    from sdv_privpgd.benchmark.declarations import TABLES
    from sdv_privpgd.benchmark.tables import rows_and_facts
    from sdv_privpgd.columns.schema import Schema

    frame, facts = rows_and_facts("diabetes", arguments.data)
    file = arguments.data / f"{TABLES['diabetes'].file}.parquet"
    frame[PERSON] = pd.read_parquet(file, columns=[PERSON])[PERSON]
    frame = frame.head(arguments.rows or len(frame))
    label = str(TABLES["diabetes"].label)
    named = [*[name for name in facts if name != label][: arguments.columns], label]
    facts = {name: facts[name] for name in named}
    schema = Schema.from_sdv(facts, num_bins=32)
    number = frame.groupby(PERSON)[PERSON].transform("size").to_numpy()
    truths = {
        "of visits": shares(frame, schema, np.ones(len(frame))),
        "of people": shares(frame, schema, 1 / number),
    }
    for place, (name, bound, settings) in enumerate(_arms(arguments.bounds, int(number.max()))):
        found = [
            _errors(frame, facts, truths, arguments, settings, s) for s in range(arguments.seeds)
        ]
        means = {key: float(np.mean([run[key] for run in found])) for key in truths}
        used = float(np.minimum(frame[PERSON].value_counts(), bound).sum() / len(frame))
        row = {"protected": name, "k": bound, "used": used, **means}
        print_table([row], header=place == 0)


def _arms(bounds: list[int], most: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    yield "visits", most, {"rows_per_person": 1}
    yield "assumed", most, {"rows_per_person": most}
    for bound in bounds:
        people = {"rows_per_person": bound, "person_column": PERSON}
        yield "bounded", bound, people
        if bound > 1:  # a person's only row counts as 1
            yield "weighed", bound, {**people, "weigh_people": True}


def _errors(
    frame: "pd.DataFrame",
    facts: Mapping[str, Mapping],
    truths: Mapping[str, Mapping[Clique, np.ndarray]],
    arguments: argparse.Namespace,
    settings: Mapping[str, Any],
    seed: int,
) -> dict[str, float]:
    from sdv_privpgd import ParticleGradientDescent, fit_table

    engine = ParticleGradientDescent(num_particles=arguments.num_particles, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Nothing is discovered, so that all codes are those that are compared.
        fitted = fit_table(
            frame,
            facts,
            arguments.epsilon,
            DELTA,
            adjacency="add_remove",
            discovery_share=0,
            num_bins=32,
            engine=engine,
            **settings,
        ).fitted
    assert fitted.release is not None
    model = fitted.release.model
    return {
        name: float(
            np.mean([np.abs(model.marginal(pair) - own).sum() for pair, own in each.items()])
        )
        for name, each in truths.items()
    }


def shares(
    frame: "pd.DataFrame", schema: "Schema", weights: np.ndarray
) -> dict[Clique, np.ndarray]:
    """The shares of all pairs' cells, where each row counts as its weight.

    >>> import pandas as pd
    >>> from sdv_privpgd.columns.schema import Schema
    >>> schema = Schema.from_sdv({"a": {"sdtype": "boolean"}, "b": {"sdtype": "boolean"}})
    >>> rows = pd.DataFrame({"a": [True, False], "b": [True, True]})
    >>> float(shares(rows, schema, np.array([1.0, 3.0]))["a", "b"].max())
    0.75
    """
    from sdv_privpgd.columns.encoding import encode_table

    codes, domain = encode_table(columns_of(frame), schema).astype(np.int64), schema.domain()
    found = {}
    for a, b in combinations(range(len(domain)), 2):
        shape = domain.sizes[a], domain.sizes[b]
        cells = codes[:, a] * shape[1] + codes[:, b]
        table = np.bincount(cells, weights=weights, minlength=shape[0] * shape[1])
        pair = (domain.attributes[a], domain.attributes[b])
        found[pair] = (table / table.sum()).reshape(shape)
    return found
