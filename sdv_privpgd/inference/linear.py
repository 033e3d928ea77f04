"""The best linear unbiased estimate of counts from all noisy tables, with its exact variance.

Every measured table is a linear map of the full table, plus noise of one known variance in each
cell. Generalized least squares combine them. In the analysis of variance the noise of different
tables' effects is orthogonal: the effect of a set U of attributes is the average of what all tables
t that hold U say of it, with weights 1 / (s_t^2 x (cells of t) / (cells of U)). For a rectangle A x
B of a pair of k_a x k_b cells this gives the variance

    s_ab^2 |A|(1-|A|/k_a) |B|(1-|B|/k_b) + v_a |A|(1-|A|/k_a) (|B|/k_b)^2
        + v_b |B|(1-|B|/k_b) (|A|/k_a)^2 + (|A||B| / (k_a k_b))^2 Var(n)

Tables over groups of codes say nothing of what differs within groups, and that part of an effect is
orthogonal to the rest. The rest is ``between_groups.BetweenGroups``. If tables over several
groupings were measured (a fit that was finished later), the most precise ones are used.

It is computed before anything is shrunken, projected or clipped. So it is unbiased, counts may be
negative, and what is impossible by a constraint need not be 0.

**Second rounds.** Which pairs were asked again, and how precisely, was chosen by the first answers,
and so were the groups. The likelihood of all answers is that of a design fixed in advance, so
intervals hold on average over tables that seemed equally likely before. For one table the average
of two rounds is biased: a first answer that is large by luck gets company. A pair is chosen by the
squares of all its cells, so the part of one cell vanishes with their number. The worst case is a
pair of two by two cells, whose one interaction lies near the threshold for a second answer. There a
95 % interval of the interaction alone covers 92.6 % at least, and 99.6 % at most, however much more
precise the second answer is. A test computes it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    averaged,
    fresh_tables,
    grouped_tables,
    own_variance,
)
from sdv_privpgd.inference.between_groups import ROUNDING, BetweenGroups, Groups
from sdv_privpgd.privacy.queries import CountQuery, Measurement

Product = Mapping[str, np.ndarray]
"""A function of each of some attributes' codes, float64; of a row it is their product, and 1
where no attribute is named. Summed over the rows it is an answer: a count where all functions are
0 and 1."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of several products, each summed over the rows. Public.

    Attributes:
        values: The unbiased estimates, shape (product,).
        covariance: The exact covariance of their noise.
        known: Which of them the tables determine, bool. The others' numbers mean nothing.
    """

    values: np.ndarray
    covariance: np.ndarray
    known: np.ndarray


class LinearEstimate:
    """Estimates of any linear function of the counts that the measured tables determine. Public.

    Args:
        domain: Of the codes.
        measurements: All noisy answers. What is not a table or the number of rows is left out.
    """

    def __init__(self, domain: Domain, measurements: Iterable[Measurement]) -> None:
        self.domain = domain
        measured = [replace(each, stddev=_stddev(each)) for each in measurements]
        tables = fresh_tables(domain, measured)
        counts = [
            NoisyTable(each.answer[0].astype(np.float64), each.stddev**2)
            for each in measured
            if isinstance(each.query, CountQuery)
        ]
        if counts:
            tables = {(): averaged([*counts, *([tables[()]] if () in tables else [])]), **tables}
        self._tables = tables
        grouping, self._grouped = _most_precise(grouped_tables(domain, measured))
        self._groups = {
            name: _groups(grouping, name, size)
            for name, size in zip(domain.attributes, domain.sizes, strict=True)
        }
        self._between = BetweenGroups(self._groups, tables, self._grouped)
        self._effects: dict[Clique, NoisyTable] = {}

    @cached_property
    def _holders(self) -> dict[Clique, list[Clique]]:
        """The measured tables over codes that hold each set of attributes."""
        found: dict[Clique, list[Clique]] = {}
        for clique in self._tables:
            for degree in range(len(clique) + 1):
                for subset in combinations(clique, degree):
                    found.setdefault(subset, []).append(clique)
        return found

    def _effect(self, subset: Clique) -> NoisyTable:
        """The effect of a set of attributes, by all tables over codes that hold it."""
        if subset not in self._effects:
            margins = []
            for clique in self._holders[subset]:
                table = self._tables[clique]
                others = tuple(axis for axis, name in enumerate(clique) if name not in subset)
                margin = table.counts.sum(axis=others)
                larger = self.domain.size(clique) // self.domain.size(subset)
                margins.append(NoisyTable(margin, table.variance * larger))
            best = averaged(margins)
            effect = best.counts
            for axis in range(len(subset)):
                effect = effect - effect.mean(axis=axis, keepdims=True)
            self._effects[subset] = NoisyTable(effect, best.variance)
        return self._effects[subset]

    def in_groups(self, product: Product) -> Product:
        """The product with the mean over its group in place of each number.

        Coarse tables of three attributes know such a one.
        """
        return {name: self._groups[name].spread(np.asarray(own)) for name, own in product.items()}

    def answers(self, products: Sequence[Product]) -> Estimates:
        """Estimates of products that are summed over the rows, and their joint covariance.

        Attributes may differ from product to product. Sums of products are sums of estimates, so
        all that is linear in the counts follows from the values and the covariance.

        Raises:
            ValueError: For an attribute that is not in the domain, or a function of another size.
        """
        names = [name for name in self.domain.attributes if any(name in own for own in products)]
        self.domain.axes({name for product in products for name in product})
        functions = {name: self._functions(name, products) for name in names}
        values, covariance, known = self._between.answers(
            [
                {name: self._groups[name].means(each) for name, each in product.items()}
                for product in products
            ]
        )
        means = {name: own.mean(axis=1) for name, own in functions.items()}
        wholes = {name: own - means[name][:, None] for name, own in functions.items()}
        betweens = {name: self._groups[name].spread(own) for name, own in wholes.items()}
        squares = np.prod([np.square(own).mean(axis=1) for own in functions.values()], axis=0)
        for subset in _subsets(names, products):
            scale = np.prod([means[name] for name in names if name not in subset], axis=0)
            within = _inner(wholes, subset) - _inner(betweens, subset)
            within *= np.multiply.outer(scale, scale)
            if subset in self._holders:
                effect = self._effect(subset)
                covariance += effect.variance * within
                read = _read(effect.counts, wholes, subset) - _read(effect.counts, betweens, subset)
                values += scale * read
            else:
                known &= np.diagonal(within) <= ROUNDING * squares * self.domain.size(subset)
        return Estimates(values, covariance, known)

    def table(self, clique: Clique) -> tuple[np.ndarray, np.ndarray] | None:
        """The estimated counts of a clique and the variance of each; ``None`` if none was measured.

        Tables agree on all that they share. The axes are in the clique's order, which must be that
        of the domain.
        """
        if clique not in self._holders:
            return None
        own = [self._groups[name] for name in clique]
        shape = tuple(len(groups.sizes) for groups in own)
        units = [
            {name: np.eye(size)[at] for name, size, at in zip(clique, shape, cell, strict=True)}
            for cell in np.ndindex(shape)
        ]
        sums, covariance, _ = self._between.answers(units)
        places = np.ix_(*(groups.of_codes for groups in own))
        cells = _outer([groups.sizes[groups.of_codes] for groups in own])
        counts = sums.reshape(shape)[places] / cells
        variances = np.diagonal(covariance).reshape(shape)[places] / cells**2
        for degree in range(1, len(clique) + 1):
            for subset in combinations(clique, degree):
                effect, axes = self._effect(subset), [clique.index(name) for name in subset]
                others = tuple(axis for axis in range(len(clique)) if axis not in axes)
                share = self.domain.size(subset) / self.domain.size(clique)
                within = effect.counts
                for axis, name in enumerate(subset):
                    within = self._groups[name].spread(within, axis)
                counts = counts + share * np.expand_dims(effect.counts - within, others)
                sizes = self.domain.shape(subset)
                whole = math.prod(1 - 1 / size for size in sizes)
                between = _outer(
                    [
                        1 / self._groups[name].sizes[self._groups[name].of_codes] - 1 / size
                        for name, size in zip(subset, sizes, strict=True)
                    ]
                )
                own_part = effect.variance * share**2 * (whole - between)
                variances = variances + np.expand_dims(own_part, others)
        return counts, variances

    def _functions(self, name: str, products: Sequence[Product]) -> np.ndarray:
        """Each product's function of an attribute's codes, shape (product, code)."""
        (size,) = self.domain.shape((name,))
        found = np.ones((len(products), size))
        for row, product in zip(found, products, strict=True):
            if name in product:
                if np.shape(product[name]) != (size,):
                    raise ValueError(
                        f"A function of {name!r} needs a number for each of its {size} codes, got "
                        f"shape {np.shape(product[name])}."
                    )
                row[:] = product[name]
        return found


def _stddev(measurement: Measurement) -> float:
    """The noise's standard deviation, its rounding included; of what is no table 0 is exact."""
    least = 1e-3  # the least standard deviation of a table's noise: all tables are noisy
    stddev = math.sqrt(own_variance(measurement))
    return stddev if isinstance(measurement.query, CountQuery) else max(stddev, least)


def _most_precise(
    grouped: Mapping[Grouping, Mapping[Clique, NoisyTable]],
) -> tuple[Grouping, Mapping[Clique, NoisyTable]]:
    """The grouping whose tables tell most, and its tables."""
    none = Grouping((), ())
    told = {
        grouping: sum(1 / table.variance for table in tables.values())
        for grouping, tables in grouped.items()
    }
    best = max(told, key=told.__getitem__, default=none)
    return best, grouped.get(best, {})


def _groups(grouping: Grouping, name: str, size: int) -> Groups:
    """The groups of an attribute; one group of all codes if it has none."""
    if name in grouping.attributes:
        return Groups(grouping[name])
    return Groups(np.zeros(size, dtype=np.int64))


def _subsets(names: Sequence[str], products: Sequence[Product]) -> list[Clique]:
    """The sets of attributes that products name together, but for the empty one."""
    found: dict[Clique, None] = {}
    for product in products:
        named = [name for name in names if name in product]
        for degree in range(1, len(named) + 1):
            found.update(dict.fromkeys(combinations(named, degree)))
    return list(found)


def _inner(functions: Mapping[str, np.ndarray], subset: Clique) -> np.ndarray:
    """The inner products of products of functions, shape (product, product)."""
    return np.prod([functions[name] @ functions[name].T for name in subset], axis=0)


def _read(counts: np.ndarray, functions: Mapping[str, np.ndarray], subset: Clique) -> np.ndarray:
    """The sums of a table times each product of functions, shape (product,)."""
    found = np.einsum("pc,c...->p...", functions[subset[0]], counts)
    for name in subset[1:]:
        found = np.einsum("pc,pc...->p...", functions[name], found)
    return found


def _outer(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The product of arrays of one axis each, one axis a part."""
    found = np.ones(())
    for part in parts:
        found = np.multiply.outer(found, part)
    return found
