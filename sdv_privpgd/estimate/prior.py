"""A prior: public rows that are weighted until their tables fit the noisy ones.

Rows that are like the private ones and public, such as last year's release, say how many columns
go together where noise hides it. Their weights w minimize

    kappa KL(w || first weights) + sum over tables of |table of w - noisy table|^2 / (2 variance),

which is solved by its dual: one number for each noisy cell, by L-BFGS. The larger kappa is, the
more the rows are trusted. They are bent to the answers as long as they still tell as much as half
of them do: few rows would bring more chance into pairs than they take noise out. What is left
between a column and its weighted rows is raked away, pair by pair, so rows that are hardly bent do
no harm. They are left out where most of their columns surely lie elsewhere. As far as answers show
that columns are not related as theirs are, they get columns of different rows.

Everything here is post-processing of noisy answers and of public rows: public and free.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix  # pyright: ignore[reportMissingTypeStubs]
from scipy.special import gammaincc  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.domain import Clique, Domain, Grouping, table_of
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.consistency import ConsistentTables, agreeing, consistent_tables
from sdv_privpgd.estimate.interactions import of_largest_entropy
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    grouped_tables,
    margin_estimates,
    noisy_tables,
)
from sdv_privpgd.estimate.signals import signal_shares
from sdv_privpgd.privacy.queries import Measurement

TRUSTS = tuple(10.0 ** (power / 2) for power in range(4, -3, -1))
"""The values of kappa that are tried, each times the number of records: 100 to 0.1. With 0.03 pairs
of Georgia with Illinois, 10,000 rows at epsilon 0.2, were 13 % further off than with 0.1."""

_KEPT = 0.5
"""The part of what they tell that rows keep as they are bent. With 0.33 pairs of 24 fits of three
tables were 13 % further off where noise is loudest, and with 0.7 as near within 4 %."""

MOST_ROWS, _JUDGED, _MOST_MEMBERS = 30_000, 8_000, 1 << 22
"""Rows of a prior that are weighted, those of them by which it is judged how far to trust them, and
rows times tables, so that it takes seconds."""

LEAST_DRAWN = 20_000
"""Of weighted rows that are drawn as they are. Pairs of four fits were up to 3 % nearer than with
5,000 or 10,000."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicRows:
    """Rows that are public, as codes of a domain."""

    domain: Domain
    # Shape (row, attribute). What it has of attributes that it is ``lacking`` is not read.
    codes: np.ndarray
    weights: np.ndarray  # how much each row counts, shape (row,), positive
    lacking: frozenset[str] = frozenset()  # the attributes that it knows nothing of

    @property
    def chances(self) -> np.ndarray:
        """The weights as parts of all."""
        return self.weights / self.weights.sum()

    def cut(self, most: int, seed: int) -> "PublicRows":
        """Returns at most so many rows, drawn at random without replacement."""
        number = len(self.codes)
        if number <= most:
            return self
        rows = np.sort(np.random.default_rng(seed).choice(number, most, replace=False))
        return replace(self, codes=self.codes[rows], weights=self.weights[rows])

    def loosened(self, part: float, seed: int) -> "PublicRows":
        """Returns rows of which a part is as it was. Others have columns of different rows."""
        rng, codes = np.random.default_rng(seed), np.array(self.codes)
        rows = np.flatnonzero(rng.random(len(codes)) >= part)
        for column in codes.T:
            column[rows] = rng.choice(column, len(rows), p=self.chances)
        return replace(self, codes=codes)

    def completed(self, one_way: Mapping[str, np.ndarray], seed: int) -> "PublicRows":
        """Returns the rows with codes of what is lacking, independent of all others."""
        rng, codes = np.random.default_rng(seed), np.array(self.codes)
        for axis, name in enumerate(self.domain.attributes):
            if name in self.lacking:
                codes[:, axis] = rng.permutation(_dealt(one_way[name], len(codes)))
        return replace(self, codes=codes)


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedRows:
    """Public rows with the weights at which they fit noisy tables."""

    rows: PublicRows  # the rows, and the weights that they had
    weights: np.ndarray  # their new ones, which sum to 1
    trust: float  # the kappa that was chosen, divided by the number of records

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight tell as much."""
        return effective_rows(self.weights)

    def shares(self, clique: Clique, grouping: Grouping | None = None) -> np.ndarray:
        """The probabilities of a clique's cells, or of its groups'. None is 0.

        As much as chance makes of so few rows is taken back to where attributes are independent:
        one row at least, as what no public row has may still be there. Of a prior of 30 rows pairs
        of 18 fits were 0.5 to 1.02 times as far off as without it, and 0.6 to 2.2 with one row.
        """
        table, number = _table(self.rows, self.weights, clique, grouping), self.effective_rows
        axes = range(table.ndim)
        apart = np.ones(())
        for axis in axes:
            margin = table.sum(axis=tuple({*axes} - {axis}))
            even = (margin + 1 / (margin.size * number)) / (1 + 1 / number)
            apart = np.multiply.outer(apart, even)
        # What a chi-squared test of independence has by chance, beside what it has.
        chance = table.size - 1 - sum(size - 1 for size in table.shape)
        found = number * float((np.square(table - apart) / apart).sum())
        more = min(max(1 / (1 + number), chance / max(found, 1e-300)), 1.0)
        return (1 - more) * table + more * apart

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute), int64: each row as often as it weighs to within one."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self.weights))
        places = _dealt(self.weights[order], num_rows, rng.random())
        return self.rows.codes[order[places]].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class PriorUse:
    """What became of a prior. Public."""

    num_rows: int  # the public rows that were weighted
    # How many of equal weight tell as much as the weighted ones; 0 if the prior was left out.
    effective_rows: float = 0.0
    # The kappa that was chosen, divided by the number of records; 0 if it was left out.
    trust: float = 0.0
    # By column or pair, the share of rows that would have to move from the prior's table to the
    # believed one, largest first.
    moved: Mapping[Clique, float] = field(default_factory=dict)

    @property
    def is_used(self) -> bool:
        """Whether the fit leans on its relations."""
        return self.trust > 0


def effective_rows(weights: np.ndarray) -> float:
    """Returns how many rows of equal weight tell as much (Kish 1965)."""
    return float(weights.sum() ** 2 / np.square(weights).sum())


class PriorComparison(NamedTuple):
    """Columns of public rows beside noisy answers, an entry of each.

    Attributes:
        is_wrong: Private rows surely lie elsewhere: beyond a chi-squared distance of 0.5. In eleven
            pairs of ``tests/benchmarks prior`` 65 of 76 columns are nearer, 20 if it is uniform.
        is_rough: Public rows are so few that chance moves their shares more than noise the answers.
    """

    is_wrong: np.ndarray
    is_rough: np.ndarray

    @classmethod
    def of(
        cls,
        rows: PublicRows,
        num_rows: float,
        measurements: Sequence[Measurement],
        total: float,
    ) -> "PriorComparison":
        """Compares public rows, which tell as much as so many, with the answers on private ones.

        Columns that they lack are left out.
        """
        far, found, is_rough = 0.5, [], []
        for clique, answer in margin_estimates(noisy_tables(rows.domain, measurements), 1).items():
            if rows.lacking & set(clique):
                continue
            own = _table(rows, rows.chances, clique)
            scales = np.maximum(own, 1 / len(own))
            noise, chance = answer.variance / total**2 / scales, own / num_rows / scales
            is_rough.append(chance.sum() > noise.sum())
            spread, square = noise + chance, np.square(answer.counts / total - own) / scales
            # Sums of weighted squares of normal numbers, of which any may be far from 0.
            moments = [(spread**k).sum() + k * far * (spread ** (k - 1)).mean() for k in (1, 2, 3)]
            found.append(_chance_beyond(square.sum(), *moments))
        # Half of the false alarms are for single columns, half for all others together. Up to two
        # of 100 simulated fits doubted what is near (500 to 10,000 rows, epsilon 0.2 and 1).
        chances, level = np.array(found), 0.01
        is_wrong = chances * len(chances) < level
        logs = np.log(np.maximum(chances[~is_wrong], 1e-300))  # of Fisher's sum (1925)
        is_wrong |= gammaincc(max(len(logs), 1), -logs.sum()) < level
        return cls(is_wrong, np.array(is_rough))


def _chance_beyond(square: float, mean: float, second: float, third: float) -> float:
    """The chance of a larger sum of weighted squares, by the sums of its weights' powers.

    A chi-squared number has the same first three moments (Imhof 1961, section 4).
    """
    freedom = second**3 / third**2
    place = freedom + (square - mean) * math.sqrt(freedom / second)
    return float(gammaincc(freedom / 2, max(place, 0.0) / 2))


def weighted(
    domain: Domain,
    measurements: Sequence[Measurement],
    rows: PublicRows,
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> WeightedRows | None:
    """Returns public rows weighted to fit the noisy tables; ``None`` if they do not help."""
    over = {None: noisy_tables(domain, measurements), **grouped_tables(domain, measurements)}
    noisy = {(each, clique): own for each, some in over.items() for clique, own in some.items()}
    if all(len(clique) == 1 for _, clique in noisy):
        return None
    agreed = consistent_tables(domain, measurements)
    rows = rows.cut(min(MOST_ROWS, max(_MOST_MEMBERS // len(noisy), 1)), seed)
    rows = rows.completed(agreed.one_way, seed)
    number = effective_rows(rows.weights)
    elsewhere = PriorComparison.of(rows, number, measurements, agreed.total).is_wrong
    if elsewhere.sum() > len(elsewhere) / 2:  # relations may then lie elsewhere as well
        return None
    rows = rows.loosened(_shown(noisy, agreed, rows), seed)
    judged = _Dual.of(rows.cut(_JUDGED, seed), list(noisy))
    least, trust, start = _KEPT * effective_rows(judged.rows.chances), TRUSTS[0], None
    for each, weights, multipliers in judged.path(noisy, agreed.total, progress):
        if effective_rows(weights) < least:
            break
        trust, start = each, multipliers
    whole = judged if len(rows.codes) <= _JUDGED else _Dual.of(rows, list(noisy))
    ((_, weights, _),) = whole.path(noisy, agreed.total, silent, [trust], start)
    return WeightedRows(rows=rows, weights=weights, trust=trust)


def _shown(noisy: "_Tables", agreed: ConsistentTables, rows: PublicRows) -> float:
    """The part of what public rows say of relations that answers show, from 0 to 1.

    That is by least squares, and two standard errors more: what noise hides is believed. With
    columns of the prior in opposite orders pairs of seven tables of R were 1.3 times as far off as
    without a prior before, and 0.7 times since (3 seeds, epsilon 0.2 and 1); with other rows of the
    table 0.4 to 0.6 times both before and since. With one error a fourth of the fits with a prior
    that was near, at 0.2, lost a part of it, and their pairs were 3 % further off.
    """
    first = WeightedRows(rows=rows, weights=rows.chances, trust=math.inf)
    together = square = 0.0
    for (grouping, clique), table in noisy.items():
        if len(clique) == 1 or rows.lacking & set(clique):
            continue
        counts = [agreed.one_way[name] for name in clique]
        if grouping is not None:
            counts = [np.bincount(grouping[n], own) for n, own in zip(clique, counts, strict=True)]
        apart = reduce(np.multiply.outer, counts) / agreed.total ** (len(counts) - 1)
        margins = {(axis,): own[None] for axis, own in enumerate(counts)}
        (like,) = of_largest_entropy(margins, first.shares(clique, grouping)[None], agreed.total)
        step, variance = like - apart, table.weighed_variance
        together += float((step * (table.counts - apart)).sum()) / variance
        square += float(np.square(step).sum()) / variance
    return min(max((together + 2 * math.sqrt(square)) / square, 0.0), 1.0) if square else 1.0


def towards(
    tables: ConsistentTables, measurements: Sequence[Measurement], prior: WeightedRows
) -> ConsistentTables:
    """Returns tables whose noise is believed to be noise where it departs from the prior.

    Single columns are the prior's and what was measured beyond it, shrunk to the share that is
    signal. ``denoised`` does the same with pairs.
    """
    domain = prior.rows.domain
    one_way = _one_way(tables, margin_estimates(noisy_tables(domain, measurements), 1), prior)
    noisy = {
        clique: NoisyTable(counts, tables.variances[clique])
        for clique, counts in tables.tables.items()
    }
    found = agreeing(noisy, one_way, tables.total)
    expected = {}
    for pair in (clique for clique in found if len(clique) == 2):
        margins = {(axis,): one_way[name][None] for axis, name in enumerate(pair)}
        # A pair with these columns, and the rows' odds ratios.
        (expected[pair],) = of_largest_entropy(margins, prior.shares(pair)[None], tables.total)
    return replace(tables, one_way=one_way, tables=found, expected=expected, start=prior.shares)


def are_as_good_as_own(tables: ConsistentTables, prior: WeightedRows) -> bool:
    """Returns whether public rows are as good as rows of the table.

    They count for as many, and no pair is further from the believed one than half of what chance
    makes of so many rows. Such rows keep what no pair tells.
    """
    total = tables.total
    pairs = {own: counts for own, counts in tables.tables.items() if len(own) > 1}
    if tables.completed or not pairs or prior.effective_rows < total:
        return False
    for clique, counts in pairs.items():
        believed = np.clip(counts / total, 0.0, 1.0)
        chance = np.sqrt(2 / math.pi * believed * (1 - believed) / total).sum()
        if np.abs(_table(prior.rows, prior.weights, clique) - believed).sum() > chance / 2:
            return False
    return True


def use_of(rows: PublicRows, prior: WeightedRows | None, tables: ConsistentTables) -> PriorUse:
    """Returns what became of a prior: how far the believed tables are from it."""
    if prior is None:
        return PriorUse(num_rows=len(rows.codes))
    own = prior.rows
    believed = {(name,): counts for name, counts in tables.one_way.items()} | {
        clique: counts for clique, counts in tables.tables.items() if len(clique) == 2
    }
    moved = {
        clique: float(np.abs(counts / tables.total - _table(own, own.chances, clique)).sum() / 2)
        for clique, counts in believed.items()
        if not own.lacking & set(clique)
    }
    return PriorUse(
        num_rows=len(own.codes),
        effective_rows=prior.effective_rows,
        trust=prior.trust,
        moved=dict(sorted(moved.items(), key=lambda each: -each[1])),
    )


def _one_way(
    tables: ConsistentTables, measured: Mapping[Clique, NoisyTable], prior: WeightedRows
) -> dict[str, np.ndarray]:
    """Each column's counts: the prior's, and the share of what is measured beyond it.

    Codes that the prior has, and those that it lacks, depart from it by as much as they show.
    """
    total, effects = tables.total, []
    for name, counts in tables.one_way.items():
        shares = _table(prior.rows, prior.weights, (name,))
        for part in (shares > 0, shares == 0):
            best = measured.get((name,))
            if part.any() and best is not None:
                apart = (counts - total * shares)[part]
                square = float(np.square(apart).sum()) / max(best.variance, 1e-9)
                effects.append((name, part, apart, square))
    kept = signal_shares(
        np.array([square for *_, square in effects]),
        np.array([max(int(part.sum()) - 1, 1) for _, part, *_ in effects]),
    )
    found = {
        name: total * _table(prior.rows, prior.weights, (name,)) if (name,) in measured else counts
        for name, counts in tables.one_way.items()
    }
    for (name, part, apart, _), share in zip(effects, kept, strict=True):
        found[name][part] = np.maximum(found[name][part] + share * apart, 0.0)
    return {name: counts * (total / counts.sum()) for name, counts in found.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Dual:
    """Weights of rows that fit tables, by the dual of their problem."""

    rows: PublicRows
    names: list["_Name"]  # grouping and clique of each table, one after the other in flat arrays
    member: csr_matrix  # which cells each row is in, shape (row, cell)

    @classmethod
    def of(cls, rows: PublicRows, names: list["_Name"]) -> "_Dual":
        number, start = len(rows.codes), 0
        cells = np.empty((number, len(names)), dtype=np.int32)
        for place, (grouping, clique) in enumerate(names):
            columns, shape = _columns(rows, clique, grouping)
            cells[:, place] = start + np.ravel_multi_index(columns, shape)
            start += math.prod(shape)
        ends = np.arange(0, cells.size + 1, max(len(names), 1))
        member = csr_matrix((np.ones(cells.size), cells.ravel(), ends), shape=(number, start))
        return cls(rows=rows, names=names, member=member)

    def path(
        self,
        noisy: "_Tables",
        total: float,
        progress: Progress,
        trusts: Sequence[float] = TRUSTS,
        start: np.ndarray | None = None,
    ) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        """Each trust, its weights, and the numbers of the cells that lead to them.

        Each is solved from the one before, and the first from the ``start``.
        """
        tables = [noisy[name] for name in self.names]
        shares = np.concatenate([np.ravel(table.counts) for table in tables]) / total
        variances = [table.weighed_variance / total**2 for table in tables]
        variances = np.repeat(variances, [table.counts.size for table in tables])
        multipliers = np.zeros(len(shares)) if start is None else start
        for trust in progress(trusts, "prior"):
            weights, multipliers = self._solved(shares, variances, trust * total, multipliers)
            yield trust, weights, multipliers

    def _solved(
        self, shares: np.ndarray, variances: np.ndarray, kappa: float, start: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weights for a kappa, and the numbers of the cells that lead to them."""
        first = self.rows.chances
        # Steps are of one size in all cells if each is scaled by its curvature.
        scales = 1 / np.sqrt(variances + self.member.T @ first / kappa)

        def weights_of(multipliers: np.ndarray) -> tuple[np.ndarray, float]:
            logs = -(self.member @ multipliers) / kappa
            top = float(logs.max())
            raw = first * np.exp(logs - top)
            return raw / raw.sum(), top + math.log(float(raw.sum()))

        def negative(scaled: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal slope
            multipliers = scaled * scales
            weights, log_sum = weights_of(multipliers)
            slope = shares + variances * multipliers - self.member.T @ weights
            value = kappa * log_sum + multipliers @ (shares + variances * multipliers / 2)
            return float(value), slope * scales

        def ends(_: np.ndarray) -> None:
            if slope @ (slope / variances) <= near * len(slope):
                raise StopIteration

        # What is left of the slope, in units of noise, and steps. Pairs of Nebraska with Colorado
        # at epsilon 1 are then off by 0.004 (half L1), in half the steps, and with ten times as
        # much left by 0.025.
        near, slope, options = 0.001, start, {"maxiter": 40, "ftol": 0.0, "gtol": 0.0}
        how: dict[str, Any] = {"method": "L-BFGS-B", "options": options, "callback": ends}
        multipliers = minimize(negative, start / scales, jac=True, **how).x * scales
        return weights_of(multipliers)[0], multipliers


_Name = tuple[Grouping | None, Clique]
"""The groups that a table is over, ``None`` for codes, and its clique."""

_Tables = Mapping[_Name, NoisyTable]


def _columns(
    rows: PublicRows, clique: Clique, grouping: Grouping | None
) -> tuple[tuple[np.ndarray, ...], tuple[int, ...]]:
    """The codes or groups of each row on each axis of a clique's table, and its shape."""
    axes = rows.domain.axes(clique)
    columns = tuple(rows.codes[:, axis].astype(np.int64) for axis in axes)
    if grouping is None:
        return columns, rows.domain.shape(clique)
    groups = (grouping[name][own] for name, own in zip(clique, columns, strict=True))
    return tuple(groups), grouping.domain.shape(clique)


def _table(
    rows: PublicRows, weights: np.ndarray, clique: Clique, grouping: Grouping | None = None
) -> np.ndarray:
    """The sums of weights in a clique's cells."""
    return table_of(*_columns(rows, clique, grouping), weights)


def _dealt(counts: np.ndarray, number: int, start: float = 0.5) -> np.ndarray:
    """So many codes, each as often as its count says to within one. ``start`` is from 0 to 1."""
    ends = np.cumsum(counts)
    places = np.searchsorted(ends / ends[-1], (np.arange(number) + start) / number)
    return np.minimum(places, len(counts) - 1)
