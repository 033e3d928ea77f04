"""Answers about tables that belong together: by rows, by families, and of those that hold some row.

All rows that a family has of a table count as one. So a function of columns, summed over the rows,
is a sum over families of its mean over their k rows: the reading by families. Rows know their k, so
that k times the function gives the reading by rows, from the same noisy tables.

A family of which g of k rows meet a condition holds such a row if g > 0. With a = g / k and the
share r = g (g - 1) / (k (k - 1)) of its pairs of siblings that both meet it, that is at least a, or
2 a - r where k > 1, and at most g - r: equal for two rows, and bounds for more (Bonferroni; Kounias
1968). Tables tell the sums of all three.

Rows of a family may be alike. Families are drawn and not rows, and by Cauchy and Schwarz the square
of a family's sum is at most k times the sum of squares: so wide are intervals of the population.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.links import sibling
from sdv_privpgd.estimate.support import grid_noise
from sdv_privpgd.inference.acceptance import Acceptance, Criterion, Verdict, accepted
from sdv_privpgd.inference.answers import MODEL, TABLES, Answer, Origin, extremes_of
from sdv_privpgd.inference.conditions import code_values, meeting, shares_by_column
from sdv_privpgd.inference.intervals import Enclosed, Open, Ratio, Sum, middle_of, possible
from sdv_privpgd.inference.linear import Product
from sdv_privpgd.inference.question_list import COEFFICIENT
from sdv_privpgd.inference.questions import (
    ParsedQuestion,
    Questions,
    Sums,
    enclosed,
    parse_question,
    weighed,
)
from sdv_privpgd.inference.regression import Regression
from sdv_privpgd.sampling.conditions import Between

if TYPE_CHECKING:
    from sdv_privpgd.fitting.families import FittedTables


_BOUNDED = (
    "The measured tables bound this and do not determine it: the estimate is the model's, of {:,} "
    "families, and intervals reach from the least that it can be to the most."
)


def by_families(tables: "FittedTables", name: str, what: str, **how: Any) -> Any:
    """An answer of a table in which each family counts as one, with the mean of its rows."""
    found: Any = tables.tables[name].answer(what, **how)  # pyright: ignore
    notes = *found.notes, *_on_read(tables, name)
    found = replace(found, question=f"{name}: {found.question}", notes=notes)
    is_root = name == tables.tree.root
    if getattr(found, "unit", "") == "people":
        found = replace(found, unit="rows" if is_root else "families")
    return found


def regression_of(tables: "FittedTables", name: str, *args: Any, **how: Any) -> Regression:
    """A regression of a table in which each family counts as one, with the mean of its rows."""
    found = tables.tables[name].regression(*args, **how)
    counted = [] if name == tables.tree.root else ["Each family counts as one, by its rows' mean."]
    return replace(found, notes=(*found.notes, *counted, *_on_read(tables, name)))


def by_rows(tables: "FittedTables", name: str, what: str, **how: Any) -> Answer:
    """An answer of a table in which each row counts as one.

    Raises ``ValueError`` for what cannot be asked.
    """
    can_be, repetitions = ("count", "share", "mean", "sum"), how.pop("bootstrap", None)
    others = how.keys() - {"of", "where", "among"}
    if what not in can_be or others:
        raise ValueError(
            f"Of rows of {name!r} ask for one of {', '.join(map(repr, can_be))}, with of=, where= "
            f"and among= alone, got {what!r} and {sorted(others)!r}. Of families there is more: "
            "each='family'."
        )
    own, fitted = _Rows.of(tables, name), tables.tables[name]
    parsed = parse_question(own.columns, what, **how)
    found = own.answer(parsed)
    notes = *found.notes, *_on_read(tables, name)
    found = replace(found, question=f"{name}: {parsed.question}", notes=notes)

    def estimate(questions: Questions) -> float:
        return replace(own, questions=questions).answer(parsed).estimate

    return fitted._with_bootstrap(found, own.questions, repetitions, what, estimate)  # noqa: SLF001


def of_holding(
    tables: "FittedTables",
    what: str,
    holding: Mapping[str, Mapping[str, Any]],
    *,
    where: Mapping[str, Any] | None = None,
    among: Mapping[str, Any] | None = None,
) -> Answer:
    """How many rows of the root, or what share of them, hold a row of a table that meets this.

    Raises ``ValueError`` for what cannot be asked.
    """
    tree = tables.tree
    if what not in ("count", "share") or len(holding) != 1 or set(holding) - {*tree.tables[1:]}:
        raise ValueError(
            "holding= is for a count or a share of rows of the root, and names one table below it, "
            f"as in holding={{{tree.tables[-1]!r}: {{...}}}}, got {what!r} and {holding!r}."
        )
    ((name, holds),) = holding.items()
    root, link = _questions(tables, tree.root), tree.above(name)
    assert link is not None
    if not holds and link.parent == tree.root:  # the number of its rows says it
        some = {**(where or {}), link.number: Between(1, link.max_children)}
        return by_families(tables, tree.root, what, where=some, among=among)
    columns, conditions = root.schema.named, (where, among)
    words = [
        [part.words for part in shares_by_column(columns, each).values()] for each in conditions
    ]
    own = _Rows.of(tables, name)
    holds = holds or {own.size: Between(1, tree.most_of(name))}
    meets, base = (
        {tree.handed(name, each): condition for each, condition in (own or {}).items()}
        for own in conditions
    )
    parsed = parse_question(own.columns, what, where={**meets, **holds}, among=base or None)
    asked_base = parse_question(columns, "count", where=among)
    pairs = None if any(words) else _pairs_that_meet(tables, name, holds, parsed)
    ends = [
        own.bound(root, rows, below, what, pairs, is_most=is_most)
        for is_most, rows, below in (
            (False, parsed.least[0], asked_base.most[0]),
            (True, parsed.most[0], asked_base.least[0]),
        )
    ]
    bounds = [each for each in ends if each is not None]
    question = f"{what.capitalize()} of {tree.root} that hold a row of {name} where "
    question += " and ".join(part.words for part in shares_by_column(own.columns, holds).values())
    for word, said in zip(("and where", "among those where"), words, strict=True):
        question += f" {word} {' and '.join(said)}" if said else ""
    notes = (*parsed.notes, *own.notes, *_on_read(tables, name))
    knows_pairs = pairs is not None and pairs[0][0] == pairs[1][0]
    is_told = link.max_children == 1 or (link.max_children == 2 and knows_pairs)
    if len(bounds) == 2 and is_told and not parsed.is_cut:
        statistic: Any = bounds[0]
        estimate, stddev, basis = possible(statistic), statistic.stddev, TABLES
    else:
        (estimate, number), statistic = _sampled(tables, name, holds, *conditions), None
        if what == "count":
            estimate *= float(root.linear.answers([asked_base.rows]).values[0])
        if len(bounds) == 2:
            estimate = _between(estimate, *bounds)
            statistic = Enclosed(bounds[0], *bounds)
            notes = (_BOUNDED.format(number), *notes)
        stddev, basis = None, MODEL
    return Answer(
        question=question,
        estimate=float(estimate),
        stddev=stddev,
        basis=basis,
        statistic=statistic,
        notes=notes,
        unit="rows" if what == "count" else "share",
    )


def accepted_tables(
    tables: "FittedTables",
    criteria: Mapping[str, Sequence[Criterion]],
    rows: Mapping[str, pd.DataFrame],
    level: float,
) -> Acceptance:
    """The verdicts on rows of tables, each of which counts as one.

    Raises ``ValueError`` for what cannot be asked.
    """
    verdicts: list[Verdict] = []
    for name, own in criteria.items():
        is_root = name == tables.tree.root
        if not is_root and any(getattr(each, "what", None) == COEFFICIENT for each in own):
            raise ValueError(
                f"The coefficients that tables tell are of families, and rows of {name!r} have "
                f"others. Ask for those of {tables.tree.root!r}, or for shares and means."
            )
        ask = partial(by_families if is_root else by_rows, tables, name, bootstrap=0)
        found = accepted(_questions(tables, name), rows[name], own, level, ask).verdicts
        named = [each.question.removeprefix(f"{name}: ") for each in found]
        verdicts += [
            replace(each, question=f"{name}: {question}")
            for each, question in zip(found, named, strict=True)
        ]
    return Acceptance(tuple(verdicts), level)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a table, and the column of how many of them their family has."""

    questions: Questions
    columns: Mapping[str, Column]
    size: str

    @classmethod
    def of(cls, tables: "FittedTables", name: str) -> "_Rows":
        questions, size = _questions(tables, name), tables.tree.size(name)
        assert size is not None
        return cls(questions, questions.schema.named, size)

    @property
    def notes(self) -> list[str]:
        """A sentence if large numbers of rows share codes."""
        said = "Numbers of rows of a family share cells, and were taken by the means of these."
        return [] if code_values(self.columns[self.size]).are_single else [said]

    @property
    def numbers(self) -> np.ndarray:
        """How many rows a family has, by the codes of their column."""
        return np.asarray(code_values(self.columns[self.size]).means, dtype=np.float64)

    def times(self, product: Product, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The product times a number for each code of how many rows the family has."""
        return {**product, self.size: product.get(self.size, np.ones(len(numbers))) * numbers}

    def answer(self, parsed: ParsedQuestion) -> Answer:
        """What is asked of rows."""
        statistic, basis, why = self.statistic(parsed)
        middle, is_known, ends = middle_of(statistic), basis == TABLES, (False, False)
        form = self.questions.form(parsed, middle)
        form = [(weight, self.times(product, self.numbers)) for weight, product in form]
        lowest, highest = (float(each.value) for each in extremes_of(statistic))
        for name in [
            each.name for each in parsed.columns if each.name in self.questions.undetected
        ]:
            undetected = self.questions.undetected[name]
            ends = undetected.below, undetected.above
            statistic = Open(statistic, *ends)
        limits = middle.low, middle.high
        return Answer(
            question=parsed.question,
            estimate=possible(middle),
            stddev=middle.stddev if is_known else None,
            basis=basis,
            statistic=statistic if is_known else None,
            notes=(*parsed.notes, *why, *self.notes),
            unit={"count": "rows", "share": "share"}.get(parsed.what, ""),
            origin=Origin(self.questions, ends, form, (lowest, highest), limits),
        )

    def statistic(self, parsed: ParsedQuestion) -> tuple[Any, str, Sequence[str]]:
        """What is asked of rows, and what it rests on; enclosed where cells hide some, and why."""

        def of_rows(rows: Product, base: Product) -> tuple[Sum | Ratio, str]:
            return self._ratio_or_total(parsed.what, (rows, rows), base)

        def of_numbers(numbers: np.ndarray) -> tuple[Sum | Ratio, str]:
            (column,) = parsed.columns
            values = code_values(column)
            powers = [weighed(parsed.rows, column, numbers**power) for power in (1, 2, 0)]
            limits = float(values.lows.min()), float(values.highs.max())
            return self._ratio_or_total(parsed.what, (powers[0], powers[1]), powers[2], limits)

        def sums(products: Sequence[Product]) -> Sums:
            return self.questions.sums([self.times(each, self.numbers) for each in products])

        noise = grid_noise(self.questions.release.ledger)
        found = enclosed(parsed, of_rows, of_numbers, sums, noise)
        if found[1] == MODEL and self.questions.model is None:
            return replace(self, questions=self.questions.of_model).statistic(parsed)
        return found

    def _ratio_or_total(
        self,
        what: str,
        above: tuple[Product, Product],
        below: Product,
        limits: tuple[float, float] = (0.0, 1.0),
    ) -> tuple[Sum | Ratio, str]:
        """A sum over rows of values, given with their squares, or that sum over another one."""
        once, twice = self.numbers, self.numbers**2
        value, square = above
        if what in ("count", "sum"):
            products = [self.times(value, once), self.times(square, twice), {}]
            (total, squares, families), noise, basis = self.questions.sums(products)
            low = 0.0 if what == "count" or limits[0] >= 0 else -np.inf
            spread = squares - total**2 / max(families, 1.0)
            return Sum(total, noise[0, 0], np.inf, low=low, drawn=spread), basis
        products = [self.times(each, once) for each in (value, below)]
        products += [self.times(each, twice) for each in (square, value, below)]
        found, noise, basis = self.questions.sums(products)
        low, high = limits
        drawn = np.array([[found[2], found[3]], [found[3], found[4]]])
        ratio = Ratio(found[0], found[1], noise[:2, :2], low=low, high=high, drawn=drawn)
        return ratio, basis

    def bound(
        self,
        root: Questions,
        rows: Product,
        below: Product,
        what: str,
        pairs: Sequence[tuple[float, float]] | None,
        *,
        is_most: bool,
    ) -> Sum | Ratio | None:
        """The least number of families that hold such a row, or the largest, or a share of them.

        ``None`` where the tables do not tell.
        """
        twice = 0.0 if pairs is None else 1.0
        each = self.numbers if is_most else 1 + twice * (self.numbers > 1)
        weights = each, self.numbers**2
        found, noise, basis = self.questions.sums([self.times(rows, w) for w in weights])
        (number,), whole, of_root = root.sums([below])
        if MODEL in (basis, of_root):
            return None
        value, variance = found[0], noise[0, 0]
        if pairs is not None:
            both, of_both = pairs[not is_most]
            value, variance = value - both, variance + of_both
        # A family counts as one at most; what bounds it from above counts all its rows.
        squares = found[1] if is_most else value
        if what == "count":
            if is_most and value > number:  # no more hold one than there are
                value, variance, squares = number, whole[0, 0], number
            drawn = squares - value**2 / max(number, 1.0)
            return Sum(value, variance, np.inf, low=0.0, drawn=drawn)
        noise, drawn = np.diag([variance, whole[0, 0]]), [[squares, value], [value, number]]
        return Ratio(value, number, noise, drawn=np.array(drawn))


def _between(estimate: float, least: Sum | Ratio, most: Sum | Ratio) -> float:
    """The model's estimate, or what is nearest to it between bounds, whose order noise may turn."""
    low, high = sorted((float(least.value), float(most.value)))
    first, last = (each.interval("table", 0.95) for each in (least, most))
    return min(max(estimate, low, first.low), max(high, first.low), last.high)


def _pairs_that_meet(
    tables: "FittedTables", name: str, holds: Mapping[str, Any], parsed: ParsedQuestion
) -> list[tuple[float, float]] | None:
    """What was answered on pairs of which both meet a condition on one column, if it was asked.

    These are families' shares of such pairs, summed, and the noise's variance: least and most.
    """
    siblings, link = tables.siblings.get(name), tables.tree.above(name)
    assert link is not None
    if siblings is None or link.parent != tables.tree.root or len(holds) != 1:
        return None
    (column,) = map(str, holds)
    clique, grouping = (column, sibling(column)), siblings.grouping
    answers = [each for each in tables.answers[name] if each.query.clique == clique]  # pyright: ignore
    if not answers or siblings.most < link.max_children or column not in grouping.attributes:
        return None
    (answer,), groups, found = answers, grouping[column], []
    for (product, _), end in ((parsed.least, np.min), (parsed.most, np.max)):
        own = [end(product[column][groups == group]) for group in range(groups.max() + 1)]
        weights = np.outer(own, own)
        counts = np.asarray(answer.answer, dtype=np.float64).reshape(weights.shape)
        noise = (answer.stddev**2 + 1 / 12) * np.square(weights).sum()
        found.append((float((counts * weights).sum()), float(noise)))
    return found


def _sampled(
    tables: "FittedTables",
    name: str,
    holds: Mapping[str, Any],
    where: Mapping[str, Any] | None,
    among: Mapping[str, Any] | None,
) -> tuple[float, int]:
    """The share of sampled rows of the root that hold such a row, and how many were sampled."""
    (made, family), root = tables.first_families(), tables.tree.root

    def met(table: str, conditions: Mapping[str, Any] | None) -> np.ndarray:
        rows, known = made[table], tables.tables[table].fitted.schema.named
        each = [
            meeting(known[n], pd.Series(rows[n]), condition)
            for n, condition in (conditions or {}).items()
        ]
        return np.logical_and.reduce([np.ones(len(rows), dtype=bool), *each])

    held = np.isin(family[root], family[name][met(name, holds)])
    base = met(root, among)
    those = held & base & met(root, where)
    return float(those.sum() / max(base.sum(), 1)), len(held)


def _questions(tables: "FittedTables", name: str) -> Questions:
    fitted = tables.tables[name].fitted
    if fitted.release is None:
        link = tables.tree.above(name)
        told = "" if link is None else f" The sum of {link.number!r} of {link.parent!r} counts it."
        raise ValueError(f"No column of {name!r} is modelled, so nothing was measured.{told}")
    return Questions(fitted.release, fitted.schema, undetected=fitted.undetected)


def _on_read(tables: "FittedTables", name: str) -> list[str]:
    """A sentence on the rows that were read, of a table that leads to another."""
    link = tables.tree.above(name)
    if link is None:
        return []
    return [
        f"At most {link.max_children} rows of {name!r} were read of each row of {link.parent!r}: "
        "this is for those, and no interval covers what others had."
    ]
