"""The price of not sharing: one table split over holders who measure alone, beside the whole table.

    python -m sdv_privpgd.benchmark holders                    # Adult over 2, 5 and 20 holders
    python -m sdv_privpgd.benchmark holders --refine --seeds 8  # 0.5 and 0.5 more beside 1 at once

The rows are dealt out at random (``even``), or sorted by a column (``--by``) and cut into parts of
one size, so that holders are unlike. Each holder spends epsilon; the releases are combined.

K holders' noise adds up to that of one table that was asked with a K-th of the mu^2. So

    error of K holders at epsilon  =  error of one table at the epsilon of mu^2 / K,

and before any model is made a pair's noisy table of so many cells lies, in L1, about
cells x sqrt(2 K / pi) x s / n from the true one (s: each holder's standard deviation, n: all rows).

``noise`` is that distance, averaged over all pairs, and ``foretold`` the formula's. ``rows`` is the
L1 distance of the combined model's pairs from the whole table's, ``rows_at`` that of a model of the
whole table at ``epsilon_at``, the epsilon of mu^2 / K, and ``whole`` at the full epsilon. ``alone``
is how far the model of one holder's release lies from the whole table (the mean over a few
holders), and ``own`` how far from that holder's own.

With ``--refine``: ``once`` spends epsilon at once, ``half`` a half of it, and ``refined`` is that
model with the other half, each with fresh noise. Compared with real rows: not private.
"""

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sdv_privpgd.benchmark.fits import FOLDER, columns_of
from sdv_privpgd.benchmark.meters import print_table
from sdv_privpgd.domain import Clique, Domain

if TYPE_CHECKING:
    import pandas as pd

    from sdv_privpgd.pipeline import Release

DELTA = 1e-5


def add_command(commands) -> None:
    """Adds ``holders`` to the command line."""
    parser = commands.add_parser("holders", help="a table split over holders, beside the whole")
    parser.add_argument("--table", default="adult", metavar="TABLE")
    parser.add_argument("--holders", nargs="+", type=int, default=[2, 5, 20])
    parser.add_argument("--by", default="education", help="column that makes holders unlike")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3, help="repetitions with fresh noise")
    parser.add_argument("--alone", type=int, default=2, help="holders of which to fit each alone")
    parser.add_argument("--refine", action="store_true", help="more budget later, beside at once")
    parser.add_argument("--rows", type=int, help="of the table; default: all")
    parser.add_argument("--num-particles", type=int)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.set_defaults(run=_holders)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """A table with what is declared of it. Not private."""

    frame: "pd.DataFrame"
    facts: Mapping[str, Mapping]
    num_particles: int | None

    @cached_property
    def domain(self) -> Domain:
        from sdv_privpgd.releases.measured import described

        return described(self.facts, None).attributes.domain()

    def shares(self, frame: "pd.DataFrame") -> dict[Clique, np.ndarray]:
        """The true shares of all pairs' cells."""
        from sdv_privpgd.columns.encoding import encode_table
        from sdv_privpgd.privacy.dataset import Dataset
        from sdv_privpgd.releases.measured import described

        codes = encode_table(columns_of(frame), described(self.facts, None).attributes)
        pairs = self.domain.cliques(2)
        counts = Dataset(self.domain, codes).counts_of(list(pairs))
        return {pair: own / len(frame) for pair, own in zip(pairs, counts, strict=True)}

    def released(self, parts: "Sequence[pd.DataFrame]", epsilon: float, seed: int) -> "Release":
        """The combined release of holders of these parts."""
        from sdv_privpgd import ParticleGradientDescent, combine
        from sdv_privpgd.releases.measuring import prepared

        # A holder of one kind of people may have all of them at an end of a range.
        measured = [
            prepared(part, self.facts, epsilon, DELTA, holder=f"holder {place}").run(stops=False)
            for place, part in enumerate(parts)
        ]
        engine = ParticleGradientDescent(num_particles=self.num_particles, seed=seed)
        release = combine(measured, engine=engine, seed=seed).fitted.release
        assert release is not None
        return release


def _holders(arguments: argparse.Namespace) -> None:
    from sdv_privpgd.benchmark.forecast import declared_table
    from sdv_privpgd.benchmark.tables import SPLIT_SEED

    frame, facts = declared_table(arguments.table, arguments.data)
    if arguments.rows is not None and arguments.rows < len(frame):
        frame = frame.sample(n=arguments.rows, random_state=SPLIT_SEED)
    task = _Task(frame=frame, facts=facts, num_particles=arguments.num_particles)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rows are few
        if arguments.refine:
            _refine(task, arguments)
        else:
            _compare(task, arguments)


def _compare(task: _Task, arguments: argparse.Namespace) -> None:
    truth = task.shares(task.frame)
    whole = _mean(
        _rows(task.released([task.frame], arguments.epsilon, seed), truth)
        for seed in range(arguments.seeds)
    )
    header = True
    for number in arguments.holders:
        weaker = epsilon_of_part(arguments.epsilon, number)
        at = _mean(
            _rows(task.released([task.frame], weaker, seed), truth)
            for seed in range(arguments.seeds)
        )
        for way in ("even", arguments.by):
            runs = [
                _run(task, arguments, truth, way, number, seed) for seed in range(arguments.seeds)
            ]
            means = {key: _mean(run[key] for run in runs) for key in runs[0]}
            row = {"split": way[:10], "holders": number, **means}
            row |= {"rows_at": at, "epsilon_at": weaker, "whole": whole}
            print_table([row], header=header)
            header = False


def _run(
    task: _Task,
    arguments: argparse.Namespace,
    truth: Mapping[Clique, np.ndarray],
    way: str,
    number: int,
    seed: int,
) -> dict[str, float]:
    parts = split(task.frame, number, None if way == "even" else way, seed)
    release = task.released(parts, arguments.epsilon, seed)
    found = {
        **_noise(release, truth, len(task.frame)),
        "rows": _rows(release, truth),
    }
    alone, own = [], []
    for place in range(0, number, max(number // max(arguments.alone, 1), 1))[: arguments.alone]:
        single = task.released([parts[place]], arguments.epsilon, seed)
        alone.append(_rows(single, truth))
        own.append(_rows(single, task.shares(parts[place])))
    return {**found, "alone": _mean(alone), "own": _mean(own)}


def split(frame: "pd.DataFrame", number: int, by: str | None, seed: int) -> "list[pd.DataFrame]":
    """Parts of one size: of rows in random order, or of rows sorted by a column.

    >>> import pandas as pd
    >>> [len(part) for part in split(pd.DataFrame({"age": range(10)}), 3, "age", seed=0)]
    [4, 3, 3]
    """
    from sdv_privpgd.benchmark.adult import SCHOOL

    order = np.random.default_rng(seed).permutation(len(frame))
    if by is not None:
        ranks = {name: rank for rank, name in enumerate(SCHOOL)} if by == "education" else {}
        keys = [ranks.get(value, value) for value in frame[by].iloc[order]]
        order = order[np.argsort(np.array(keys), kind="stable")]
    return [frame.iloc[own] for own in np.array_split(order, number)]


def epsilon_of_part(epsilon: float, number: int, delta: float = DELTA) -> float:
    """The epsilon of a K-th of the mu^2 that epsilon allows.

    >>> round(epsilon_of_part(1.0, 1), 6), round(epsilon_of_part(1.0, 4), 3)
    (1.0, 0.469)
    """
    from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of

    return epsilon_of(mu_squared_of(epsilon, delta) / number, delta)


def _refine(task: _Task, arguments: argparse.Namespace) -> None:
    from sdv_privpgd import ParticleGradientDescent, fit_table

    truth, found = task.shares(task.frame), []
    for seed in range(arguments.seeds):
        engine = ParticleGradientDescent(num_particles=task.num_particles, seed=seed)
        # Nothing is discovered, so that all codes are those that are compared.
        asked = {"discovery_share": 0, "num_bins": 32, "engine": engine}
        once = fit_table(task.frame, task.facts, arguments.epsilon, DELTA, **asked)
        half = fit_table(task.frame, task.facts, arguments.epsilon / 2, DELTA, **asked)
        refined = half.refine(task.frame, arguments.epsilon / 2)
        errors = {}
        for name, fitted in (("once", once), ("half", half), ("refined", refined)):
            assert fitted.fitted.release is not None
            errors[name] = _rows(fitted.fitted.release, truth)
        errors["ratio"] = errors["refined"] / errors["once"]
        found.append(errors)
        print_table([{"seed": str(seed), **errors}], header=seed == 0)
    means = {key: _mean(run[key] for run in found) for key in found[0]}
    error = 0.0
    if len(found) > 1:
        error = float(np.std([run["ratio"] for run in found], ddof=1) / np.sqrt(len(found)))
    print_table([{"seed": "mean", **means, "+-": error}], header=True)


def _rows(release: "Release", truth: Mapping[Clique, np.ndarray]) -> float:
    """The mean over pairs of the L1 distance of the model's shares from the true ones."""
    return _mean(
        float(np.abs(release.model.marginal(pair) - own).sum()) for pair, own in truth.items()
    )


def _noise(
    release: "Release", truth: Mapping[Clique, np.ndarray], num_rows: int
) -> dict[str, float]:
    """The mean distance of the noisy pairs from the true ones, and what the formula says of it."""
    from sdv_privpgd.estimate.noisy_tables import noisy_tables

    noisy = noisy_tables(release.domain, release.measurements)
    pairs = [pair for pair in truth if pair in noisy]
    return {
        "noise": _mean(
            float(np.abs(noisy[pair].counts / num_rows - truth[pair]).sum()) for pair in pairs
        ),
        "foretold": _mean(
            noisy[pair].counts.size * np.sqrt(2 * noisy[pair].variance / np.pi) / num_rows
            for pair in pairs
        ),
    }


def _mean(numbers) -> float:
    return float(np.mean(list(numbers)))
