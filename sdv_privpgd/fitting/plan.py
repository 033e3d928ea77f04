"""A plan: the questions of a fit, put to made-up rows, and how large its errors are. Public.

How large the noise of an answer is does not depend on the table, but which questions are asked may.
So a method asks rows that are made up by a public rule: all columns follow one hidden trait.
The noise of the best linear estimate (``inference.linear``) from these questions is known exactly.
The default method is asked as if all pairs got equal budgets, so that no answer matters.

What decides is how large the noise is beside the rows. So a thousand made-up rows stand for any
number of rows, on a budget that makes the noise as large beside them.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Progress
from sdv_privpgd.columns.cuts import MOST_CATEGORIES
from sdv_privpgd.columns.facts import (
    CategoryFacts,
    ColumnFacts,
    DateFacts,
    NumberFacts,
    without_domain,
)
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fates import fates, least_rows, on_lost, said_before
from sdv_privpgd.fitting.fit import Fit, codes_paid_for
from sdv_privpgd.fitting.prior import foretold
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.fitting.tables_settings import TablesSettings
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.inference.question_list import values_asked
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.method import CHOSEN
from sdv_privpgd.privacy.accounting import mu_squared_of
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.counting import Bound, Tables
from sdv_privpgd.privacy.dataset import Records
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.about import CONFIDENT
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.plan import AnswerErrors, Curve, ExpectedErrors, plan_report
from sdv_privpgd.report.release import plans_report

_MADE_UP = 1_000
"""Made-up rows: enough to find groups and strong pairs in, and quickly counted."""

_TRAIT = 0.7
"""The correlation of each column with the trait."""

_FEW_PAIRS = 12
"""Pairs that a mean on a curve is from, evenly spread. What noise does to a pair's table grows with
its cells, which are known of all pairs."""

_UNEVEN = 1.1
"""Pairs' noise is so many times that of equal budgets, on average, where a second round favors some
(0.98 to 1.22 in fits to four real tables at epsilon 0.2, 1, 2.5: ``tests/benchmarks forecast``)."""


def planned(settings: Settings, description: Description, num_rows: int) -> Report:
    """What a fit to so many rows would ask, and how large its errors are to be expected."""
    num_rows = check_integer("num_rows", num_rows, least=0)
    settings = settings.for_rows(num_rows)
    times = max(-(-num_rows // _MADE_UP), 1)
    number = round(num_rows / times)
    missing = pd.Series(np.full(number, np.nan))
    own = filter(None, [settings.people.weight_column])
    columns = dict.fromkeys([*description.columns, *description.measured, *own], missing)
    # Rare categories, so that both questions about those that nobody declared are planned.
    for name in description.uncategorized:
        own = pd.Series(range(number)) // 10
        if asked := values_asked(description.questions, name):
            own = own.astype(object)
            own[::2] = np.resize(np.array(asked, dtype=object), len(own[::2]))
        columns[name] = own
    table = _Repeated(columns, settings.people.limit, num_rows, times)
    # What is asked of rows of missing values needs no good model of them.
    quick = replace(settings, method=settings.method.small())
    fit = Fit(quick, description)
    fit.discover(table)
    left = fit.shared.ledger
    fit.ask(table)
    listed = [each for each in fit.shared.ledger.charges if each.what == pipeline.LISTED]
    left = replace(left, charges=(*left.charges, *listed))
    expected = expected_errors(quick, fit.description, left, num_rows)
    if expected is not None:
        expected = replace(expected, questions=_of_questions(fit) if description.questions else {})
    notes = [
        *foretold(settings, description, num_rows),
        *on_lost(fates(settings, description, num_rows)),
        *([] if settings.family else [*settings.people.on_counts, *settings.absurd(num_rows)]),
        *said_before(settings, description, num_rows),
    ]
    return plan_report(without_choices(fit.shared.ledger), num_rows, expected, notes)


def planned_tables(linked: TablesSettings, num_rows: int) -> Report:
    """What a fit of tables with so many rows of the root would ask. Public."""
    plans = {table: planned(*linked.options_of(table), num_rows) for table in linked.tree.tables}
    shares = {f"{pairs} of {n}" if pairs else n: part for (n, pairs), part in linked.shares.items()}
    notes = linked.absurd(num_rows)
    return plans_report(plans, linked.tree, linked.ledger, shares, num_rows, notes)


class _Repeated(PrivateTable):
    """Made-up rows of which each is counted several times, so that many take no longer."""

    __slots__ = ("_num_rows", "_times")

    def __init__(
        self, columns: Mapping[str, pd.Series], bound: Bound, num_rows: int, times: int
    ) -> None:
        super().__init__(columns, bound=bound)
        self._num_rows, self._times = num_rows, times

    def known_rows(self, adjacency: Adjacency) -> int:
        """The assumed number of rows, whatever the adjacency: no row is private."""
        del adjacency
        return self._num_rows

    def _records(self, schema: Schema, progress: Progress) -> Records:
        return _RepeatedRecords(super()._records(schema, progress), self._times)


class _RepeatedRecords(Records):
    """The codes of repeated rows."""

    __slots__ = ("_records", "_times")

    def __init__(self, records: Records, times: int) -> None:
        super().__init__(records.domain)
        self._records, self._times = records, times

    @property
    def units(self) -> int:
        return self._records.units

    def blocks(self) -> Iterator[np.ndarray]:
        return self._records.blocks()

    def total(self, tally: Any) -> Tables:
        return [table * self._times for table in self._records.total(tally)]


def _of_questions(fit: Fit) -> dict[str, float]:
    """The 95 % error of the number of rows that each listed question is about, if it has any."""
    assert fit.curator is not None
    linear = LinearEstimate(fit.curator.domain, fit.curator.measurements)
    found = {}
    for question in fit.description.questions:
        for words, product in question.numbers(fit.description.attributes.named).items():
            variance = float(linear.answers([product]).covariance[0, 0])
            found[words] = CONFIDENT * math.sqrt(max(variance, 0.0))
    return {words: error for words, error in found.items() if error}


def without_choices(ledger: PrivacyLedger) -> PrivacyLedger:
    """Returns the ledger without the cliques that answers on missing values happened to choose."""
    unnamed = (
        replace(charge, what=re.sub(f"{CHOSEN}: .*", CHOSEN, charge.what))
        for charge in ledger.charges
    )
    return replace(ledger, charges=tuple(unnamed))


def expected_errors(
    settings: Settings, description: Description, left: PrivacyLedger, num_rows: int
) -> ExpectedErrors | None:
    """How large the errors of a fit's answers will be, as far as public facts tell.

    The description is that after a look into made-up rows, of which differences alone are used.
    What the ledger has left after discovery goes to the tables. ``None`` where nothing is asked.
    """
    if not description.modelled or not left.remaining:
        return None
    num_rows = max(num_rows, 1)
    assumed = _Assumed(settings, description, left)
    over_epsilon = over_rows = None
    # A choice among many pairs takes seconds.
    are_many = bool(settings.method.coarse_cliques(description.attributes.domain()))
    are_chosen = settings.method.chooses or are_many
    # Pairs that answers will choose are not listed: their mean alone is told.
    here = assumed.errors(left.remaining, num_rows, _FEW_PAIRS if are_chosen else None)
    here = replace(here, lost=assumed.lost(num_rows))
    if settings.method.is_quick and not are_many:
        kept, delta = left.remaining / left.budget, float(Fraction(left.delta) - left.reserved)
        epsilons = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
        budgets = {each: mu_squared_of(each, delta) * kept for each in epsilons}
        over_epsilon = Curve.of(
            {
                each: replace(
                    assumed.errors(budget, num_rows, _FEW_PAIRS), lost=assumed.lost(num_rows, each)
                )
                for each, budget in budgets.items()
            }
        )
        # As many rows more are worth what a budget of as much more mu is.
        mu = [math.sqrt(budget / left.remaining) for budget in budgets.values()]
        times = (0.2, 0.5, 1.0, 2.0, 5.0)
        others = [max(int(float(f"{num_rows * part:.2g}")), 1) for part in times]  # two digits
        numbers = [num_rows if part == 1 else n for part, n in zip(times, others, strict=True)]
        over_rows = over_epsilon.moved(mu, {each: each / num_rows for each in numbers})
        over_rows = replace(over_rows, lost=tuple(map(assumed.lost, numbers)))
    return ExpectedErrors(
        num_rows=num_rows,
        epsilon=settings.epsilon,
        are_chosen=are_chosen,
        listed=assumed.listed,
        assumed=assumed.unknown,
        here=here,
        over_epsilon=over_epsilon,
        over_rows=over_rows,
    )


@dataclass(frozen=True, eq=False)
class _Assumed:
    """What is assumed of a table before it is looked into."""

    settings: Settings
    description: Description
    left: PrivacyLedger

    def errors(self, budget: Fraction, num_rows: int, few: int | None = None) -> AnswerErrors:
        """The errors of a fit to so many rows; of so few pairs, if it is said."""
        domain = self._domain(budget, num_rows)
        linear = self._linear(domain, budget, num_rows)
        pairs = domain.cliques(2) if len(domain) > 1 else ()
        asked = pairs if few is None else pairs[:: -(-len(pairs) // few) or 1]
        tables = {each: linear.table(each) for each in (*domain.cliques(1), *asked)}
        variances = {clique: table[1] for clique, table in tables.items() if table is not None}
        columns = {
            clique[0]: CONFIDENT * math.sqrt(float(own.mean())) / num_rows
            for clique, own in variances.items()
            if len(clique) == 1
        }
        # Half the mean L1 norm of the noise. Where a second round favors some it is uneven.
        uneven = _UNEVEN if getattr(self.settings.method, "first_share", 1) < 1 else 1.0
        of_pairs = {
            pair: uneven * float(np.sqrt(variances[pair]).sum()) / math.sqrt(2 * math.pi) / num_rows
            for pair in asked
            if pair in variances
        }
        mean = None
        if of_pairs:
            each_cell = fmean(noise / domain.size(pair) for pair, noise in of_pairs.items())
            mean = each_cell * fmean(map(domain.size, pairs))
        return AnswerErrors(sizes=domain.size_of, columns=columns, pairs=of_pairs, pair=mean)

    def lost(self, num_rows: int, epsilon: float | None = None) -> float:
        """The part of the rows of a pair that discovery may lose, on average.

        A category is found if enough rows share it, and so is a range. Where each category has half
        as many rows as the one before, those that are not found have about as many as it takes.
        """
        settings = self.settings
        settings = settings if epsilon is None else replace(settings, epsilon=epsilon)
        least = least_rows(settings, self._declared, num_rows)
        kept = [1 - min(least.get(name, 0) / num_rows, 1.0) for name in self._declared.modelled]
        pairs = [one * other for one, other in combinations(kept, 2)] or kept
        return 1 - fmean(pairs)

    @cached_property
    def unknown(self) -> list[str]:
        """Columns of which neither the range nor the categories are declared."""
        return without_domain(self._declared.stated)

    @cached_property
    def listed(self) -> list[str]:
        """Columns whose number of codes is declared: categories, or cells of a number or date."""
        return [
            column.name
            for column in self._declared.declared_schema.columns
            if column.name in self._declared.stated
            and not self._is_cut(column.name)
            and column.sdtype != "boolean"
        ]

    @property
    def _declared(self) -> Description:
        return self.description.declared

    def _is_cut(self, name: str) -> bool:
        """Whether a column has as many codes as the noise can pay for."""
        facts = self._declared.stated[name]
        is_free = isinstance(facts, NumberFacts | DateFacts) and facts.num_bins is None
        return is_free and self._declared.num_bins is None and name in self._declared.undeclared

    def _domain(self, budget: Fraction, num_rows: int) -> Domain:
        """The attributes, with as many codes as they are likely to have."""
        declared, method = self._declared, self.settings.method
        codes = codes_paid_for(declared.measured, num_rows, self._ledger(budget), method)
        known = declared.declared_schema.named
        sizes = {}
        for name, facts in declared.stated.items():
            size, nullable = usual_size(facts, declared.most_bins) + 1, True
            if name in known:
                size, nullable = known[name].size, known[name].nullable
            sizes[name] = min(size, codes + nullable) if self._is_cut(name) else size
        if declared.visits is not None:
            behind = {declared.visits.before(name): name for name in declared.visits.previous}
            for name in declared.visits.added:
                sizes[name] = sizes[behind[name]] if name in behind else known[name].size
        for each in self.description.attributes.differences:
            sizes[each.name] = each.column.size
        return Domain(tuple(sizes), tuple(sizes.values()))

    def _linear(self, domain: Domain, budget: Fraction, num_rows: int) -> LinearEstimate:
        """The linear estimate from the questions of a fit, whose answers mean nothing."""
        scale = Fraction(num_rows, _MADE_UP)
        schema = Schema.of({name: _with_codes(size) for name, size in domain.size_of.items()})
        table = PrivateTable(_made_up(domain), bound=self.settings.people.limit)
        method, part = self.settings.method.plain(domain)
        curator = table.curator(schema, FitLedger(self._ledger(budget * part * scale**2)))
        pipeline.ask(curator, method)
        answers = curator.measurements
        return LinearEstimate(
            domain, [replace(each, stddev=each.stddev * float(scale)) for each in answers]
        )

    def _ledger(self, budget: Fraction) -> PrivacyLedger:
        """The ledger of the rest of a fit."""
        return replace(self.left, budget=budget, charges=())


def usual_size(facts: ColumnFacts, num_bins: int) -> int:
    """Returns the number of codes that is assumed of a column whose domain is not declared."""
    if isinstance(facts, NumberFacts | DateFacts):
        return num_bins if facts.num_bins is None else facts.num_bins
    return 12


def _with_codes(size: int) -> ColumnFacts:
    """Facts on a column of so many codes: categories, and numbers where these would be too many."""
    if size <= MOST_CATEGORIES:
        return CategoryFacts(values=tuple(range(size)), nullable=False)
    return NumberFacts(low=0, high=size - 1, decimal_places=0, num_bins=size, nullable=False)


def _made_up(domain: Domain) -> Mapping[str, pd.Series]:
    """Rows whose columns follow one trait, all codes of a column about equally often."""
    generator = np.random.default_rng(0)
    trait = generator.normal(size=_MADE_UP)
    found = {}
    for name, size in domain.size_of.items():
        own = generator.normal(size=_MADE_UP)
        level = ndtr(_TRAIT * trait + math.sqrt(1 - _TRAIT**2) * own)
        found[name] = pd.Series(np.minimum((level * size).astype(np.int64), size - 1))
    return found
