"""Questions of users: checked, put in words, answered from noisy tables or a model. Public."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.arguments import check_choice, check_positive, shown
from sdv_privpgd.base.domain import Clique
from sdv_privpgd.columns.bins import BELOW_ONE
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.noisy_tables import made_once
from sdv_privpgd.estimate.support import grid_noise
from sdv_privpgd.inference.answers import (
    MODEL,
    TABLES,
    Answer,
    Origin,
    TableAnswer,
    extremes_of,
    on_people,
)
from sdv_privpgd.inference.conditions import (
    CALENDAR,
    ConditionShares,
    as_users,
    code_values,
    column_named,
    not_missing,
    on_cut,
    shares_by_column,
    value_at,
)
from sdv_privpgd.inference.intervals import (
    Enclosed,
    Estimated,
    Open,
    Quantile,
    Ratio,
    Scaled,
    Sum,
    middle_of,
    possible,
)
from sdv_privpgd.inference.linear import LinearEstimate, Product, cell_products, times
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.synthesize.engine import Model

_WIDE = (
    "But much of it lies in a few wide cells, as at the end of a long tail, and nobody knows how "
    "rows are spread there: for these the intervals hold for any spread, and the estimate may be "
    "far off."
)

_FAR = (
    "A few rows may lie anywhere in a cell that reaches far beyond all others, and noise hides "
    "where: the intervals hold wherever they lie. A smaller range, or cut_points beyond the rows, "
    "makes them narrower."
)

_BELOW_ZERO = "Noise makes some counts negative: they stay, so that sums of cells are without bias."

_AS_DAYS = " (the first or the last day of the calendar stands for it)"


MOST_COLUMNS = 3
"""The columns that a question may name."""

ARGUMENTS = {
    "count": (),
    "share": ("among",),
    "mean": ("of",),
    "sum": ("of",),
    "quantile": ("of", "q"),
    "table": ("of",),
}
"""What can be asked, and what each takes besides ``where``."""

_OF_VALUES = ("mean", "sum", "quantile")
"""What values beyond a range can change."""


@dataclass(frozen=True, kw_only=True)
class Undetected:
    """The rows that may lie beyond a range that was found from noisy counts.

    They may lie on a side on which no end was declared.
    """

    rows: float
    below: bool
    above: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class ParsedQuestion:
    """A question that can be answered."""

    what: str  # a key of ``ARGUMENTS``
    question: str
    columns: tuple[Column, ...]  # the columns that it is about
    rows: Product  # for columns with a condition, the share of each code's rows that meets it
    base: Product  # the same for the rows that a share is among
    # The least of ``rows`` and of ``base``, however rows are spread in cells.
    least: tuple[Product, Product]
    most: tuple[Product, Product]  # the most of them
    q: float
    is_clipped: bool  # whether values beyond a range that was found count as its ends
    notes: tuple[str, ...]  # what to keep in mind, a sentence each

    @property
    def is_cut(self) -> bool:
        """Whether it depends on how rows are spread in cells."""
        ends = zip(self.least, self.most, strict=True)
        return any((low[name] < high[name]).any() for low, high in ends for name in high)


def parse_question(
    columns: Mapping[str, Column],
    what: str,
    *,
    of: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    among: Mapping[str, Any] | None = None,
    q: float | None = None,
    clipped: bool = False,
) -> ParsedQuestion:
    """Checks a question. Raises ``ValueError`` for what cannot be asked, and says what can."""
    check_choice("what", what, ARGUMENTS)
    for name, given in {"of": of, "among": among, "q": q}.items():
        if given is not None and name not in ARGUMENTS[what]:
            raise ValueError(f"answer({what!r}) takes no {name}=, got {shown(given)}.")
        if given is None and name in ARGUMENTS[what] and name != "among":
            raise ValueError(f"answer({what!r}) needs {name}=.")
    if clipped and what not in _OF_VALUES:
        raise ValueError(f"answer({what!r}) takes no clipped=: it is for {', '.join(_OF_VALUES)}.")
    if q is not None and not 0 < check_positive("q", q) < 1:
        raise ValueError(f"q must be above 0 and below 1, such as 0.5, got {shown(q)}.")
    events, base = shares_by_column(columns, where), shares_by_column(columns, among)
    if what == "share" and not events:
        raise ValueError("answer('share') needs where=, as in where={'ward': 'B'}.")
    for part in {**events, **base}.values():
        if what not in ("count", "share") and not part.weights.any():
            raise ValueError(
                f"The fit has put no rows where {part.words}, so there is no {what} of them. Count "
                "them: the interval says how many there may be."
            )
    about = _about(columns, what, of)
    involved = list(dict.fromkeys([*(column.name for column in about), *events, *base]))
    if len(involved) > MOST_COLUMNS:
        raise ValueError(
            f"A question may name {MOST_COLUMNS} columns, got {involved!r}. Count more in rows "
            "that were sampled."
        )
    return ParsedQuestion(
        what=what,
        question=_in_words(what, about, events, base, q, clipped=clipped),
        columns=about,
        rows=_weights("weights", events, base),
        base=_weights("weights", base),
        least=(_weights("least", events, base), _weights("least", base)),
        most=(_weights("most", events, base), _weights("most", base)),
        q=0.5 if q is None else q,
        is_clipped=clipped,
        notes=_notes(what, about, {**events, **base}),
    )


def _about(
    columns: Mapping[str, Column], what: str, of: str | Sequence[str] | None
) -> tuple[Column, ...]:
    """The columns that a question is about."""
    if of is None:
        return ()
    if what != "table" and not isinstance(of, str):
        raise ValueError(f"answer({what!r}) is of one column, got of={shown(of)}.")
    names = [of] if isinstance(of, str) else list(of)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"of= must name columns, each once, got {shown(of)}.")
    about = tuple(column_named(columns, name) for name in names)
    for column in about:
        if what in ("mean", "sum") and column.sdtype != "numerical":
            raise ValueError(
                f"Column {column.name!r} is {column.sdtype}, which has no {what}. Ask for a share "
                "of its values, or, of dates, for a quantile."
            )
        if what == "quantile" and not column.is_ordered:
            raise ValueError(
                f"Column {column.name!r} is {column.sdtype}: its values have no order, so it has "
                "no quantiles."
            )
    return about


def _weights(which: str, *events: Mapping[str, ConditionShares]) -> dict[str, np.ndarray]:
    """The share of each code's rows that meets all conditions, by column."""
    named = dict.fromkeys(name for parts in events for name in parts)
    return {
        name: reduce(np.minimum, (getattr(parts[name], which) for parts in events if name in parts))
        for name in named
    }


def _in_words(
    what: str,
    about: Sequence[Column],
    events: Mapping[str, ConditionShares],
    base: Mapping[str, ConditionShares],
    q: float | None,
    *,
    clipped: bool,
) -> str:
    """The question in words, without an end."""
    text = {"table": "Counts", "quantile": f"Quantile {q}"}.get(what, what.capitalize())
    if about:
        text += " of " + " x ".join(column.name for column in about)
    if clipped:
        values = code_values(about[0])
        low, high = (as_users(about[0], end) for end in (values.lows.min(), values.highs.max()))
        text += f" clipped to {low} to {high}"
    for word, parts in {"where": events, "among rows where": base}.items():
        if parts:
            text += f" {word} {' and '.join(part.words for part in parts.values())}"
    return text


def _notes(
    what: str, about: Sequence[Column], parts: Mapping[str, ConditionShares]
) -> tuple[str, ...]:
    """What the answer takes for granted beyond the noise."""
    cut = [name for name, part in parts.items() if part.is_cut]
    holds = "the intervals hold for any spread, and the estimate may be far off"
    notes = []
    if cut:
        holds_all = what in ("count", "share", "table")
        notes.append(on_cut(cut, holds) if holds_all else on_cut(cut))
    if what in ("mean", "sum") and not code_values(about[0]).are_single:
        notes.append(
            f"Values of {about[0].name!r} were taken to be spread in their cells as in sampled "
            "rows, and no interval covers what that hides."
        )
    return tuple(notes)


class Sums(NamedTuple):
    """Sums over rows, the covariance of their noise (zeros for the model's), and the basis."""

    values: np.ndarray
    covariance: np.ndarray
    basis: str


@dataclass(frozen=True, eq=False)
class Questions:
    """What can be asked of a release. Public: it sees noisy answers and a model of them."""

    release: Release
    schema: Schema
    model: Model | None = None  # if given, this model answers, even what the tables determine
    undetected: Mapping[str, Undetected] = field(default_factory=dict)
    """For each column whose range was found, the rows that may lie beyond it."""

    @property
    def linear(self) -> LinearEstimate:
        """The linear estimate from all measured tables."""
        return made_once(LinearEstimate, self.release.domain, self.release.measurements)

    def answer(self, what: str, **how: Any) -> Answer | TableAnswer:
        """Answers a question, as ``FittedTable.answer`` describes it."""
        parsed = parse_question(self.schema.named, what, **how)
        if what == "table":
            return self.table_of(parsed)
        if what == "quantile":
            return self._quantile(parsed)
        statistic, basis, notes = self.statistic(parsed)
        is_known, ends = basis == TABLES, self._open(parsed)
        scaled, middle, units = statistic, middle_of(statistic), 1.0
        if what in ("count", "sum") and self._units is not None:
            units = self._units
            scaled = Scaled(statistic, units)
        reach = units * np.array([each.value for each in extremes_of(statistic)])
        limits = units * middle.low, units * middle.high
        if any(ends):
            scaled = Open(scaled, *ends)
        return Answer(
            question=parsed.question,
            estimate=possible(middle) * units,
            stddev=middle.stddev * units if is_known else None,
            basis=basis,
            statistic=scaled if is_known else None,
            origin=Origin(self, ends, self.form(parsed, middle), tuple(reach.tolist()), limits),
            notes=(
                *parsed.notes,
                *notes,
                *self._on_out_of_range(parsed, is_open=any(ends)),
                *on_people(self.release),
            ),
            unit={"count": self._counted, "share": "share"}.get(what, ""),
        )

    def statistic(self, parsed: ParsedQuestion) -> tuple[Any, str, Sequence[str]]:
        """What is asked, what it rests on, and why it is enclosed, where it is."""
        ask = partial(self._of_rows, parsed), partial(self._with_numbers, parsed), self.sums
        found = enclosed(parsed, *ask, grid_noise(self.release.ledger))
        is_open = found[1] == MODEL and self.model is None
        return self.of_model.statistic(parsed) if is_open else found

    @property
    def of_model(self) -> "Questions":
        """The same questions to the model, also of what the tables determine."""
        return replace(self, model=self.release.model)

    @property
    def _counted(self) -> str:
        """What counts are numbers of, in a word."""
        ledger = self.release.ledger
        if ledger.weights is not None:
            return "units"
        return "people" if ledger.weighed else "rows"

    @property
    def _units(self) -> float | None:
        """What a row that counts as one stands for, where rows have weights."""
        weights = self.release.ledger.weights
        return None if weights is None else weights.high

    @property
    def _alike(self) -> int:
        """How many rows there are of one person at most, each of which counts as one."""
        return self.release.ledger.rows_counted

    def _drawn(self, rows: float) -> float:
        """The number of rows that were drawn: with weights their sum is drawn as well."""
        return rows if self._units is None else np.inf

    def form(self, parsed: ParsedQuestion, middle: Any) -> tuple[tuple[float, Product], ...]:
        """The error of an answer as a sum of errors of sums over rows, to first order."""
        rows, base = parsed.rows, parsed.base
        if parsed.columns:
            (column,) = parsed.columns
            means = code_values(column).means
            rows, base = (weighed(rows, column, means**power) for power in (1, 0))
        if isinstance(middle, Sum):
            return ((1.0, rows),)
        if middle.below <= 0:
            return ()
        return ((1 / middle.below, rows), (-middle.value / middle.below, base))

    def apart(self, answer: Answer) -> list[str]:
        """The pairs of an answer's columns that no table holds, in words."""
        held = {name for _, product in answer.origin.form or () for name in product}
        order = self.release.domain.attributes
        parsed = [each.query for each in self.release.measurements]
        tables = [
            {*q.clique} for q in parsed if isinstance(q, MarginalQuery | GroupedMarginalQuery)
        ]
        pairs = combinations(sorted(held, key=order.index), 2)
        return [
            f"{one!r} and {other!r}"
            for one, other in pairs
            if not any({one, other} <= table for table in tables)
        ]

    def noise_in(self, answer: Answer) -> float:
        """The standard deviation of the noise in what the tables know of an answer."""
        form = answer.origin.form
        if not form:
            return 0.0
        weights = np.array([weight for weight, _ in form])
        covariance = self.linear.answers([product for _, product in form]).covariance
        units = self._units or 1.0 if answer.unit != "share" and len(form) == 1 else 1.0
        return units * float(np.sqrt(max(weights @ covariance @ weights, 0.0)))

    def _open(self, parsed: ParsedQuestion) -> tuple[bool, bool]:
        """Whether rows beyond a range that was found may move the answer, below and above."""
        (column,) = parsed.columns or (None,)
        if column is None or parsed.is_clipped or column.name not in self.undetected:
            return False, False
        values, undetected = code_values(column), self.undetected[column.name]
        meets = parsed.most[0].get(column.name, np.ones(column.num_values)) > 0
        below, above = meets[values.lows.argmin()], meets[values.highs.argmax()]
        return bool(undetected.below and below), bool(undetected.above and above)

    def _of_rows(
        self, parsed: ParsedQuestion, met: Product, base: Product
    ) -> tuple[Sum | Ratio, str]:
        """The count of the rows that meet a condition, or their share."""
        if parsed.what == "share":
            sums = self.sums([met, base])
            count, rows = sums.values
            return Ratio(count, rows, sums.covariance, alike=self._alike), sums.basis
        sums = self.sums([{}, met])
        rows, count = sums.values
        most = rows if sums.covariance[0, 0] == 0 else np.inf
        # All rows are no sample of the rows.
        squares = None if met or self._units is not None else count
        variance = sums.covariance[1, 1]
        how = {"low": 0.0, "high": most, "alike": self._alike}
        return Sum(count, variance, self._drawn(rows), squares, **how), sums.basis

    def _with_numbers(self, parsed: ParsedQuestion, numbers: np.ndarray) -> tuple[Ratio | Sum, str]:
        """The mean or the sum with a number for each code."""
        (column,) = parsed.columns
        values = code_values(column)
        powers = [weighed(parsed.rows, column, numbers**power) for power in range(3)]
        sums = self.sums([*powers, {}])
        count, total, squares, rows = sums.values
        low, high = float(values.lows.min()), float(values.highs.max())
        if parsed.what == "sum":
            least = 0.0 if low >= 0 else -np.inf
            variance, drawn = sums.covariance[1, 1], self._drawn(rows)
            found = Sum(total, variance, drawn, squares, low=least, alike=self._alike)
            return found, sums.basis
        covariance = sums.covariance[np.ix_([1, 0], [1, 0])]
        found = Ratio(total, count, covariance, squares, low=low, high=high, alike=self._alike)
        return found, sums.basis

    def _quantile(self, parsed: ParsedQuestion) -> Answer:
        (column,), q = parsed.columns, parsed.q
        size, values = column.num_values, code_values(column)
        up_to = [weighed(parsed.rows, column, 1.0 * (np.arange(size) <= at)) for at in range(size)]
        sums = self.sums(up_to)
        # Each count less q times the last one, which is that of all rows with a value.
        weights = np.eye(size)
        weights[:, -1] -= q
        excess, count = weights @ sums.values, float(sums.values[-1])
        # Counts up to an end grow with it: where noise says otherwise, the largest before counts.
        rising = np.maximum.accumulate(np.append(0.0, sums.values))
        code = int(np.flatnonzero(np.append(rising[1:-1] >= q * count, True))[0])
        inside = (q * count - rising[code]) / max(rising[code + 1] - rising[code], 1e-9)
        below, above = (
            self.undetected[column.name].rows if end else 0.0 for end in self._open(parsed)
        )
        statistic = Quantile(
            q,
            excess,
            np.maximum(np.einsum("ij,jk,ik->i", weights, sums.covariance, weights), 0.0),
            count,
            lows=[as_users(column, value) for value in values.lows],
            highs=[as_users(column, value) for value in values.highs],
            below=below,
            above=above,
            limits=CALENDAR if column.unit is not None else (-np.inf, np.inf),
            alike=self._alike,
        )
        ends = zip(statistic.interval("population", 0.95), statistic.limits, strict=True)
        is_open = tuple(bool(end == limit) for end, limit in ends)
        return Answer(
            question=parsed.question,
            estimate=value_at(column, code, float(np.clip(inside, 0.0, BELOW_ONE))),
            basis=sums.basis,
            statistic=statistic if sums.basis == TABLES else None,
            notes=(
                *parsed.notes,
                *self._on_out_of_range(parsed, is_open=any(is_open)),
                *on_people(self.release),
            ),
            origin=Origin(self, is_open),
            datetime_format=column.datetime_format,
        )

    def _on_out_of_range(self, parsed: ParsedQuestion, *, is_open: bool) -> list[str]:
        """A sentence on rows that may lie beyond the range that was found, if they matter."""
        (column,) = parsed.columns or (None,)
        if column is None or not (
            is_open or (parsed.is_clipped and column.name in self.undetected)
        ):
            return []
        if parsed.is_clipped:
            return self.on_ends([column.name])
        return [
            f"{self._on_beyond(column.name)}, nobody knows how far: an interval that they could "
            f"move has no end on that side{_AS_DAYS * (column.unit is not None)}. Declare the "
            "range, or ask for values clipped to the one that was found: answer(..., clipped=True)."
        ]

    def on_ends(self, names: Sequence[str]) -> list[str]:
        """Sentences on rows beyond ranges of columns that were found, which count as their ends."""
        found = [name for name in names if name in self.undetected]
        return [f"{self._on_beyond(name)} and count as its ends." for name in found]

    def on_wide_cells(self, names: Sequence[str]) -> list[str]:
        """Sentences on columns of numbers, of which no regression knows how rows are spread."""
        columns = [self.schema.named[name] for name in names]
        noise = grid_noise(self.release.ledger)
        return [
            f"Much of {column.name!r} lies, or may lie, in a few wide cells, as at the end of a "
            "long tail, and nobody knows how rows are spread there: coefficients may be far off."
            for column in columns
            if column.sdtype == "numerical" and unknown_codes(column, {}, self.sums, noise)[1]
        ]

    def _on_beyond(self, name: str) -> str:
        return (
            f"The range of {name!r} was found from noisy counts: up to about "
            f"{self.undetected[name].rows:,.0f} rows may lie beyond it"
        )

    def table_of(self, parsed: ParsedQuestion) -> TableAnswer:
        """The table that is asked for, with its extremes where a condition cuts cells."""
        names = tuple(column.name for column in parsed.columns)
        order = tuple(name for name in self.release.domain.attributes if name in names)
        found = None if parsed.rows or self.model is not None else self.linear.table(order)
        if found is None:
            counts, variances, basis = self._cells(parsed, order)
        else:
            counts, variances, basis = *found, TABLES
        axes = [order.index(name) for name in names]
        labels = [code_labels(column) for column in parsed.columns]
        index = pd.MultiIndex.from_product(labels, names=names)
        if len(names) == 1:
            index = pd.Index(labels[0], name=names[0])
        estimate, variance = (
            pd.Series(each.transpose(axes).ravel(), index=index) for each in (counts, variances)
        )
        ends = (parsed.least, parsed.most) if parsed.is_cut and basis == TABLES else ()
        whole = (replace(parsed, rows=each[0], least=each, most=each) for each in ends)
        extremes = tuple(map(self.table_of, whole))
        if any(each.basis == MODEL for each in extremes):
            return self.of_model.table_of(parsed)
        return TableAnswer(
            question=parsed.question,
            estimate=estimate * (self._units or 1.0),
            stddev=variance.pow(0.5) * (self._units or 1.0) if basis == TABLES else None,
            num_rows=float(self.sums([{}]).values[0]),
            basis=basis,
            notes=(
                *parsed.notes,
                *[_BELOW_ZERO] * bool((counts < 0).any()),
                *on_people(self.release),
            ),
            units=self._units,
            alike=self._alike,
            extremes=extremes,
        )

    def _cells(self, parsed: ParsedQuestion, order: Clique) -> tuple[np.ndarray, np.ndarray, str]:
        """The counts of the cells of a table, and their variances, product by product."""
        # Products whose covariance is computed at once, where only their variances are wanted.
        at_once = 256
        shape = self.release.domain.shape(order)
        products = [times(parsed.rows, cell) for cell in cell_products(order, map(np.eye, shape))]
        blocks = [
            self.sums(products[start : start + at_once])
            for start in range(0, len(products), at_once)
        ]
        if any(block.basis == MODEL for block in blocks):
            values = np.array([self._of_model(product) for product in products])
            return values.reshape(shape), np.zeros(shape), MODEL
        values = np.concatenate([block.values for block in blocks])
        variances = np.concatenate([np.diagonal(block.covariance) for block in blocks])
        return values.reshape(shape), variances.reshape(shape), TABLES

    def sums(self, products: Sequence[Product]) -> Sums:
        """Sums over rows: the linear estimates, or the model's if the tables leave one open."""
        found = None if self.model is not None else self.linear.answers(products)
        if found is not None and found.known.all():
            return Sums(found.values, found.covariance, TABLES)
        values = np.array([self._of_model(product) for product in products])
        return Sums(values, np.zeros((len(values), len(values))), MODEL)

    def _of_model(self, product: Product) -> float:
        """The model's sum over as many rows as there are."""
        clique = tuple(name for name in self.release.domain.attributes if name in product)
        if clique not in self._marginals:
            model = self.release.model if self.model is None else self.model
            self._marginals[clique] = model.marginal(clique) if clique else np.ones(())
        table = self._marginals[clique]
        for name in reversed(clique):
            table = table @ product[name]
        return float(table) * self._num_rows

    @cached_property
    def _marginals(self) -> dict[Clique, np.ndarray]:
        return {}

    @cached_property
    def _num_rows(self) -> float:
        """The number of rows, which each fit has measured."""
        return float(self.linear.answers([{}]).values[0])


def enclosed(
    parsed: ParsedQuestion,
    of_rows: Callable[[Product, Product], tuple[Estimated, str]],
    of_numbers: Callable[[np.ndarray], tuple[Estimated, str]],
    sums: Callable[[Sequence[Product]], Sums],
    noise: float,
) -> tuple[Estimated | Enclosed, str, Sequence[str]]:
    """An answer, its basis, and why it lies between its extremes, if it does.

    That of rows does if a condition cuts cells, that of a number for each code if much lies, or may
    lie, in a few wide ones. Where rows lie in codes was found from fine cells with so much noise.
    The basis is the model's where the tables leave one of the three open.
    """
    if not parsed.columns:
        middle, basis = of_rows(parsed.rows, parsed.base)
        if not parsed.is_cut:
            return middle, basis, ()
        (fewest, least_base), (most, most_base) = parsed.least, parsed.most
        ends = of_rows(fewest, most_base), of_rows(most, least_base)
        return *_together((middle, basis), *ends), ()
    (column,) = parsed.columns
    values = code_values(column)
    middle, basis = of_numbers(values.means)
    unknown, why = unknown_codes(column, parsed.rows, sums, noise)
    if not why:
        return middle, basis, ()
    ends = (np.where(unknown, end, values.means) for end in (values.lows, values.highs))
    return *_together((middle, basis), *map(of_numbers, ends)), (why,)


def unknown_codes(
    column: Column, rows: Product, sums: Callable[[Sequence[Product]], Sums], noise: float
) -> tuple[np.ndarray, str]:
    """Which codes of numbers hide what a mean depends on, and a sentence if any do."""
    values = code_values(column)
    counts = sums([weighed(rows, column, unit) for unit in np.eye(column.num_values)])
    confident = 2.0  # standard deviations of noise that may hide where rows are
    errors = confident * np.sqrt(np.maximum(np.diagonal(counts.covariance), 0.0))
    heavy = values.heavy(counts.values, noise=confident * noise)
    unknown = heavy | values.far_reaching(counts.values, errors)
    if heavy.any():
        return unknown, _WIDE
    return unknown, _FAR if unknown.any() else ""


def _together(*found: tuple[Estimated, str]) -> tuple[Enclosed, str]:
    estimates, bases = zip(*found, strict=True)
    return Enclosed(*estimates), MODEL if MODEL in bases else TABLES


def weighed(rows: Product, column: Column, values: np.ndarray) -> dict[str, np.ndarray]:
    """The rows that have a value in the column, each with a number that depends on its code."""
    weights = np.append(values, np.zeros(int(column.nullable)))
    return {**rows, column.name: rows.get(column.name, not_missing(column)) * weights}
