"""The best linear unbiased estimate of counts from all noisy tables, with its exact variance.

Every measured table is a linear map of the full table, plus noise of one known variance in each
cell. Generalized least squares combine them. In the analysis of variance the noise of different
tables' effects is orthogonal: the effect of a set U of attributes is the average of what all tables
t that hold U say of it, with weights 1 / (s_t^2 x (cells of t) / (cells of U)). For a rectangle A x
B of a pair of k_a x k_b cells this gives the variance

    s_ab^2 |A|(1-|A|/k_a) |B|(1-|B|/k_b) + v_a |A|(1-|A|/k_a) (|B|/k_b)^2
        + v_b |B|(1-|B|/k_b) (|A|/k_a)^2 + (|A||B| / (k_a k_b))^2 Var(n)

Tables over groups of codes say nothing of what differs within groups, and that part of an effect is
orthogonal to the rest. In the sums of a table over codes noise grows with the numbers of codes in
the groups. Where these differ, the effects of such tables are not orthogonal, so ``BetweenGroups``
solves their weighted least squares as one sparse system. Its unknowns are the effects of sets of
attributes on groups; the noise in one meets that in another only in a table that holds both, so it
is nearly block-diagonal. Tables over other groupings, as those of listed questions, are few. The
estimate of their cells from all the rest is known, with its covariance. So they correct it, as in a
Kalman filter, and what nothing else holds is read off them.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, combinations
from itertools import product as every_cell

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import SuperLU, splu

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Clique, Domain, Grouping, axes_without
from sdv_privpgd.estimate.effects import contrasts
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    averaged,
    fresh_tables,
    grouped_tables,
    own_variance,
)
from sdv_privpgd.privacy.queries import CountQuery, Measurement

Product = Mapping[str, np.ndarray]
"""A function of each of some attributes' codes, float64; of a row it is their product, and 1
where no attribute is named. Summed over the rows it is an answer: a count where all functions are
0 and 1."""


def times(one: Product, other: Product) -> Product:
    """The product of two products."""
    found = dict(one)
    for name, values in other.items():
        found[name] = found[name] * values if name in found else values
    return found


def values_in(codes: np.ndarray, domain: Domain, products: Sequence[Product]) -> np.ndarray:
    """The products of each row, shape (row, product)."""
    found = np.ones((len(codes), len(products)))
    for column, product in zip(found.T, products, strict=True):
        for name, axis in zip(product, domain.axes(product), strict=True):
            column *= product[name][codes[:, axis]]
    return found


_FIXED, _UNKNOWN = -2, -1
"""Places of the number of rows where it is public, and of effects that no table holds."""

ROUNDING = 1e-9
"""The part of a functional's square that rounding may leave where nothing is."""


@dataclass(frozen=True)
class Groups:
    """The groups of an attribute's codes: the group of each code, int64, from 0 on without gaps."""

    of_codes: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of codes in each group."""
        return np.bincount(self.of_codes)

    @cached_property
    def holds(self) -> np.ndarray:
        """1 for the codes of each group, float64, shape (group, code)."""
        return (np.arange(len(self.sizes))[:, None] == self.of_codes).astype(np.float64)

    @cached_property
    def effects(self) -> np.ndarray:
        """Columns that span the functions of groups: an even share, then orthonormal contrasts."""
        number = len(self.sizes)
        return np.column_stack([np.full(number, 1 / number), contrasts(number)])

    def means(self, functions: np.ndarray) -> np.ndarray:
        """The means of functions of the codes over each group, shape (..., group)."""
        return functions @ (self.holds / self.sizes[:, None]).T

    def spread(self, functions: np.ndarray, axis: int = -1) -> np.ndarray:
        """Functions of the codes, on one axis, with their mean over its group in place of each."""
        means = self.means(np.moveaxis(functions, axis, -1))
        return np.moveaxis(means[..., self.of_codes], -1, axis)


class BetweenGroups:
    """The least squares estimate of all sums over groups.

    Args:
        groups: Of each attribute; one group of all codes where no table is over groups of it.
        tables: Over codes. The empty clique has the number of rows.
        grouped: Over the same groups.
    """

    def __init__(
        self,
        groups: Mapping[str, Groups],
        tables: Mapping[Clique, NoisyTable],
        grouped: Mapping[Clique, NoisyTable],
    ) -> None:
        self._groups, self._tables, self._grouped = groups, tables, grouped
        total = tables.get(())
        self._total = float(total.counts) if total is not None and total.variance == 0 else None
        self._positions: dict[Clique, np.ndarray] = {}
        self._size = 0
        for clique in [*tables, *grouped]:
            for subset in _within(clique):
                self._place(subset)

    def _place(self, subset: Clique) -> None:
        """Gives the effect of a set of attributes its places among the unknowns."""
        shape = tuple(len(self._groups[name].sizes) - 1 for name in subset)
        number = math.prod(shape)
        if subset in self._positions or not number:
            return
        if not subset and self._total is not None:
            self._positions[subset] = np.asarray(_FIXED)
            return
        self._positions[subset] = np.arange(self._size, self._size + number).reshape(shape)
        self._size += number

    def _places(self, clique: Clique) -> np.ndarray:
        """The places of all effects in a clique: one axis an attribute, the even share first."""
        shape = tuple(len(self._groups[name].sizes) for name in clique)
        places = np.full(shape, _UNKNOWN)
        for subset in _within(clique):
            if subset in self._positions:
                inner = tuple(slice(1, None) if name in subset else 0 for name in clique)
                places[inner] = self._positions[subset]
        return places.ravel()

    @cached_property
    def _solved(self) -> "tuple[SuperLU, np.ndarray] | None":
        """The factors of the normal equations, and the effects; ``None`` if none is unknown."""
        if not self._size:
            return None
        right = np.zeros(self._size)
        rows, columns, entries = [], [], []
        for clique, table in self._tables.items():
            if table.variance == 0:
                continue
            own = [self._groups[name] for name in clique]
            counts = table.counts
            for axis, each in enumerate(own):
                counts = np.moveaxis(np.tensordot(each.holds, counts, (1, axis)), 0, axis)
            spread = _outer([each.sizes for each in own])
            design = reduce(np.kron, [each.effects for each in own], np.ones((1, 1)))
            weighted = design.T / (table.variance * spread.ravel())
            places, normal = self._places(clique), weighted @ design
            is_free = places != _FIXED
            free = places[is_free]
            known = np.zeros(len(places)) if self._total is None else (~is_free) * self._total
            right[free] += (weighted @ counts.ravel() - normal @ known)[is_free]
            rows.append(np.repeat(free, len(free)))
            columns.append(np.tile(free, len(free)))
            entries.append(normal[np.ix_(is_free, is_free)].ravel())
        for clique, table in self._grouped.items():
            # The noise of one variance: effects are orthogonal, the contrasts of length 1.
            effects, sums = [self._groups[name].effects for name in clique], table.counts
            for axis, own in enumerate(effects):
                sums = np.moveaxis(np.tensordot(own.T, sums, (1, axis)), 0, axis)
            squares = _outer([np.square(own).sum(axis=0) for own in effects])
            places = self._places(clique)
            free = places[places != _FIXED]
            right[free] += sums.ravel()[places != _FIXED] / table.variance
            rows.append(free)
            columns.append(free)
            entries.append(squares.ravel()[places != _FIXED] / table.variance)
        where = np.concatenate(rows), np.concatenate(columns)
        shape = self._size, self._size
        normal = splu(
            coo_matrix((np.concatenate(entries), where), shape=shape).tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        return normal, normal.solve(right)

    def answers(
        self, products: Sequence[Mapping[str, np.ndarray]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Products of functions of groups, summed over rows: values, covariance, which are known.

        Each is a function of the groups of some attributes; of the others it is 1 everywhere.
        """
        at_once = 64  # right-hand sides that are solved together
        parts = [self._coordinates(product) for product in products]
        known = np.array([_is_known(places, values) for places, values in parts], dtype=bool)
        fixed = 0.0 if self._total is None else self._total
        found = np.array([fixed * values[places == _FIXED].sum() for places, values in parts])
        covariance = np.zeros((len(products), len(products)))
        if self._solved is None:
            return found, covariance, known
        normal, effects = self._solved
        loads = np.zeros((self._size, len(products)))
        for load, (places, values) in zip(loads.T, parts, strict=True):
            load[places[places >= 0]] = values[places >= 0]
        for start in range(0, len(products), at_once):
            block = slice(start, start + at_once)
            covariance[:, block] = loads.T @ normal.solve(loads[:, block])
        found += loads.T @ effects
        return found, (covariance + covariance.T) / 2, known

    def _coordinates(self, product: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The places of the effects that a product of functions reads, and how much of each."""
        clique = tuple(name for name in self._groups if name in product)
        values = _outer([product[name] @ self._groups[name].effects for name in clique])
        return self._places(clique), values.ravel()

    def unknown(self, functions: Mapping[str, np.ndarray], subset: Clique) -> np.ndarray | float:
        """The inner products of what products read of an effect that no table holds.

        ``functions`` are those of the groups, shape (product, group), of each attribute.
        """
        shape = [len(self._groups[name].sizes) - 1 for name in subset]
        if subset in self._positions or not math.prod(shape):
            return 0.0
        read = {name: own @ self._groups[name].effects for name, own in functions.items()}
        scale = np.prod([own[:, 0] for name, own in read.items() if name not in subset], axis=0)
        contrasts = {name: read[name][:, 1:] for name in subset}
        return _inner(contrasts, subset) * np.multiply.outer(scale, scale)


def _within(clique: Sequence[str]) -> Iterator[Clique]:
    """All sets of a clique's attributes, the empty one first."""
    return chain.from_iterable(combinations(clique, degree) for degree in range(len(clique) + 1))


def _is_known(places: np.ndarray, values: np.ndarray) -> bool:
    """Whether a functional reads nothing of the effects that no table holds."""
    squares = np.square(values)
    return bool(squares[places == _UNKNOWN].sum() <= ROUNDING * squares.sum())


@dataclass(frozen=True)
class Estimates:
    """Estimates of several products, each summed over the rows. Public."""

    values: np.ndarray  # the unbiased estimates, shape (product,)
    covariance: np.ndarray  # the exact covariance of their noise
    known: np.ndarray  # which of them the tables determine, bool. The others' numbers mean nothing


@dataclass(frozen=True)
class _Listed:
    """The cells of a few tables over groups of their own."""

    products: tuple[Product, ...]  # each is 1 for the rows of a cell
    counts: np.ndarray  # their noisy numbers, shape (product,)
    variances: np.ndarray  # those of their noise

    @classmethod
    def of(cls, grouped: Mapping[Grouping, Mapping[Clique, NoisyTable]]) -> "_Listed":
        """The cells of the most precise tables; of too many, these alone."""
        most = 500  # cells: with more an answer takes seconds
        tables = [(key, *each) for key, own in grouped.items() for each in own.items()]
        tables.sort(key=lambda each: each[2].variance)
        products, counts, variances = [], [np.zeros(0)], [np.zeros(0)]
        for grouping, clique, table in tables:
            if len(products) + table.counts.size > most:
                continue
            products += cell_products(clique, [Groups(grouping[name]).holds for name in clique])
            counts.append(table.counts.ravel())
            variances.append(np.full(table.counts.size, table.variance))
        return cls(tuple(products), np.concatenate(counts), np.concatenate(variances))

    def joined(self, alone: Estimates, unknown: np.ndarray) -> Estimates:
        """The best estimates from the cells and from what all else says, of the cells at the end.

        Of all weights of the cells' surprises that leave nothing ``unknown`` in an answer, those
        have the least variance. An answer is not known if no weights do that.
        """
        own = slice(0, len(alone.values) - len(self.counts))
        cells = slice(own.stop, None)
        noise = alone.covariance[cells, cells] + np.diag(self.variances)
        expected = np.linalg.solve(noise, alone.covariance[cells, own]).T
        values, vectors = np.linalg.eigh(unknown[cells, cells])
        held = values > ROUNDING * max(float(values.max()), 1.0)
        read = vectors[:, held] * np.sqrt(values[held])
        wanted = unknown[own, cells] @ vectors[:, held] / np.sqrt(values[held])
        certain = np.linalg.solve(noise, read)
        lacking = np.linalg.pinv(read.T @ certain, hermitian=True)
        weights = expected + (wanted - expected @ read) @ lacking @ certain.T
        squares = np.diagonal(unknown)[own]
        rest = squares - np.square(wanted).sum(axis=1)
        crossed = weights @ alone.covariance[cells, own]
        return Estimates(
            alone.values[own] + weights @ (self.counts - alone.values[cells]),
            alone.covariance[own, own] - crossed - crossed.T + weights @ noise @ weights.T,
            alone.known[own] | (rest <= ROUNDING * squares),
        )


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
        grouped = grouped_tables(domain, measured)
        grouping, self._grouped = _most_precise(grouped)
        self._listed = _Listed.of({key: own for key, own in grouped.items() if key != grouping})
        # One group of all codes of an attribute that has none.
        self._groups = {
            name: Groups(
                grouping[name] if name in grouping.attributes else np.zeros(size, np.int64)
            )
            for name, size in domain.size_of.items()
        }
        self._between = BetweenGroups(self._groups, tables, self._grouped)
        self._effects: dict[Clique, NoisyTable] = {}

    @cached_property
    def _tables_with(self) -> dict[Clique, list[Clique]]:
        """The measured tables over codes that hold each set of attributes."""
        found: dict[Clique, list[Clique]] = {}
        for clique in self._tables:
            for subset in _within(clique):
                found.setdefault(subset, []).append(clique)
        return found

    def _effect(self, subset: Clique) -> NoisyTable:
        """The effect of a set of attributes, by all tables over codes that hold it."""
        if subset not in self._effects:
            those = self._tables_with[subset]
            best = averaged([self._tables[each].margin(each, subset) for each in those])
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
        self.domain.axes({name for product in products for name in product})
        if not self._listed.products:
            return self._alone(products)[0]
        return self._listed.joined(*self._alone([*products, *self._listed.products]))

    def _alone(self, products: Sequence[Product]) -> tuple[Estimates, np.ndarray]:
        """The estimates without tables over other groups.

        And the inner products of what products read of what no table holds.
        """
        names = [name for name in self.domain.attributes if any(name in own for own in products)]
        functions = {name: self._functions(name, products) for name in names}
        in_groups = {name: self._groups[name].means(own) for name, own in functions.items()}
        values, covariance, known = self._between.answers(
            [
                {name: in_groups[name][place] for name in product}
                for place, product in enumerate(products)
            ]
        )
        means = {name: own.mean(axis=1) for name, own in functions.items()}
        wholes = {name: own - means[name][:, None] for name, own in functions.items()}
        betweens = {name: self._groups[name].spread(own) for name, own in wholes.items()}
        squares = np.prod([np.square(own).mean(axis=1) for own in functions.values()], axis=0)
        unknown = np.zeros((len(products), len(products)))
        for subset in _subsets(names, products):
            scale = np.prod([means[name] for name in names if name not in subset], axis=0)
            within = _inner(wholes, subset) - _inner(betweens, subset)
            within *= np.multiply.outer(scale, scale)
            unknown += self._between.unknown(in_groups, subset)
            if subset in self._tables_with:
                effect = self._effect(subset)
                covariance += effect.variance * within
                read = _read(effect.counts, wholes, subset) - _read(effect.counts, betweens, subset)
                values += scale * read
            else:
                unknown += within
                known &= np.diagonal(within) <= ROUNDING * squares * self.domain.size(subset)
        return Estimates(values, covariance, known), unknown

    def table(self, clique: Clique) -> tuple[np.ndarray, np.ndarray] | None:
        """The estimated counts of a clique and the variance of each; ``None`` if none was measured.

        Tables agree on all that they share. The axes are in the clique's order, which must be that
        of the domain.
        """
        if clique not in self._tables_with:
            return None
        if self._listed.products:
            shape = self.domain.shape(clique)
            cells = self.answers(cell_products(clique, map(np.eye, shape)))
            return cells.values.reshape(shape), np.diagonal(cells.covariance).reshape(shape)
        own = [self._groups[name] for name in clique]
        shape = tuple(len(groups.sizes) for groups in own)
        sums, covariance, _ = self._between.answers(cell_products(clique, map(np.eye, shape)))
        places = np.ix_(*(groups.of_codes for groups in own))
        cells = _outer([groups.sizes[groups.of_codes] for groups in own])
        counts = sums.reshape(shape)[places] / cells
        variances = np.diagonal(covariance).reshape(shape)[places] / cells**2
        for subset in filter(None, _within(clique)):
            effect, groups = self._effect(subset), [self._groups[name] for name in subset]
            others, sizes = axes_without(clique, subset), self.domain.shape(subset)
            share = math.prod(sizes) / self.domain.size(clique)
            within = effect.counts
            for axis, each in enumerate(groups):
                within = each.spread(within, axis)
            counts = counts + share * np.expand_dims(effect.counts - within, others)
            whole = math.prod(1 - 1 / size for size in sizes)
            between = _outer(
                [
                    1 / each.sizes[each.of_codes] - 1 / size
                    for each, size in zip(groups, sizes, strict=True)
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
    """The grouping of most tables, of as many the one that tells most, and its tables."""
    worth = {
        grouping: (len(tables), sum(1 / table.variance for table in tables.values()))
        for grouping, tables in grouped.items()
    }
    best = max(worth, key=worth.__getitem__, default=Grouping((), ()))
    return best, grouped.get(best, {})


def cell_products(clique: Clique, functions: Iterable[np.ndarray]) -> list[dict[str, np.ndarray]]:
    """The cells of a table, of which each attribute has a function a row, as products."""
    return [dict(zip(clique, cell, strict=True)) for cell in every_cell(*functions)]


def _subsets(names: Sequence[str], products: Sequence[Product]) -> list[Clique]:
    """The sets of attributes that products name together, but for the empty one."""
    found: dict[Clique, None] = {}
    for product in products:
        found.update(dict.fromkeys(_within([name for name in names if name in product])))
    return [subset for subset in found if subset]


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
    return reduce(np.multiply.outer, parts, np.ones(()))
