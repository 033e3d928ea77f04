"""Tables that belong together: one budget, a model of each table, and rows that lead to rows.

Each table is fitted as ``fit_table`` would fit it, with what the row has that its rows lead to, and
with the number of rows that lead to them. How children of one parent go together is asked beside
that. Rows are made from the root down: each row gets as many children as it says, from the model of
children, and these are exchanged until they go with their parents and with each other.

Privacy: all rows of a family count as one, in any table and among pairs of siblings, so that each
question has sensitivity 1 for a family (``sources/families.py``). One ledger holds the charges of
all tables, which add up.
"""

import math
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Clique, Grouping, table_of
from sdv_privpgd.base.progress import Progress, heard, silent
from sdv_privpgd.base.words import share
from sdv_privpgd.columns.keys import too_few
from sdv_privpgd.columns.links import Link, Tree, following, sibling
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.vocabulary import MODELLED
from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.discovery.transcript import Transcript
from sdv_privpgd.estimate.consistency import consistent_tables
from sdv_privpgd.estimate.denoising import denoised, equal_groups, over_groups
from sdv_privpgd.estimate.interactions import of_largest_entropy
from sdv_privpgd.estimate.noisy_tables import NoisyTable, averaged
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.door import on_labels, running_fit
from sdv_privpgd.fitting.families import AT_ONCE, FittedTables, given_tables
from sdv_privpgd.fitting.fates import said_before
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.fitted_table import FittedTable
from sdv_privpgd.fitting.mismatch import DomainMismatchError, part_for_first, stopped
from sdv_privpgd.fitting.model_file import on_unkept
from sdv_privpgd.fitting.options import require_sdtypes
from sdv_privpgd.fitting.prior import Prior, leaning, of_families, require_others
from sdv_privpgd.fitting.resume import by_table, gone, note_on
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.fitting.tables_settings import PAIRS, TablesSettings, check_by_table
from sdv_privpgd.inference.question_list import Question
from sdv_privpgd.methods.method import Method
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery, Measurement
from sdv_privpgd.report.measures import MANY, SOME, SURE
from sdv_privpgd.report.warnings import warn_after
from sdv_privpgd.sampling.families import Siblings, paired
from sdv_privpgd.sampling.sampler import encoded_rows

_GROUPS = 8
"""Groups of each column by which pairs of siblings are counted, at most. In the survey at epsilon 1
the error of first and second children is .060, .049, .049 and .046 with 2, 4, 8 and 16 of them, and
that of any two .054, .041, .041 and .043 (means of three fits; ``tests/benchmarks linked``)."""


def fit_tables(
    tables: Mapping[str, Any],
    columns: Mapping[str, Mapping[str, Mapping]],
    relationships: Link | Iterable[Link],
    epsilon: float,
    delta: float,
    *,
    discovery_share: float = 0.2,
    method: Method | str = "privpgd",
    constraints: Mapping[str, Sequence[Constraint]] = MappingProxyType({}),
    questions: Mapping[str, Sequence[Question]] = MappingProxyType({}),
    allow_lost: Mapping[str, Collection[str]] = MappingProxyType({}),
    prior: Any = None,
    seed: int = 0,
    progress: Progress = silent,
) -> FittedTables:
    """Fits differentially private models to tables that belong together, without SDV.

    Privacy: what is returned, warned or raised is (epsilon, delta)-differentially private for one
    row of the root table with all rows that lead to it: whether they are there. At most
    ``max_children`` rows are used of each link and parent. A row that leads nowhere is left out,
    and so is a row of the root whose key is missing or that other rows have, too. Of their keys it
    is asked how many there are, with noise: each is protected as a family is.

    Args:
        tables: The private tables by name, each as ``fit_table`` takes it.
        columns: What is public of each table's columns, as ``fit_table`` takes it. Columns of keys
            may be left out, or declared as ``Key()``.
        relationships: A ``Link``, or several that make a tree. Its root is what is protected: the
            table of households, patients or accounts.
        epsilon: What all tables together may spend.
        delta: Choose it far below 1 / (number of rows of the root).
        discovery_share: Part of the budget, at most, for what is not declared.
        method: As ``fit_table`` takes it, for each table.
        constraints: What all rows of a table will meet, by table, as ``fit_table`` takes it.
        questions: What a table will be asked, by table, as ``fit_table`` takes it.
        allow_lost: By table, columns for which the fit does not stop, whatever it would lose.
        prior: Families that are public and like the private ones: tables as these are, the
            ``FittedTables`` of an earlier release, or a ``Prior`` with either as its rows.
        seed: Of engines and rows, never of the noise.
        progress: Told of the steps.

    Raises:
        ValueError: For settings, links and declarations that cannot be meant, and for columns that
            are missing, before a row is read.
        ColumnsLostError: A ``ValueError``, for columns that noise would hide.
        DomainMismatchError: If a column's cells are not as declared, or no categories are found. A
            note says what was spent: name the column in ``allow_lost`` if that is how it is.
        SourceError: If rows cannot be read.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, Link
    >>> shops = pd.DataFrame({"shop": range(900), "open": [True, False, True] * 300})
    >>> sales = pd.DataFrame({"shop": [*range(900)] * 2, "big": [True, False] * 900})
    >>> declared = {"shops": {"open": Boolean()}, "sales": {"big": Boolean()}}
    >>> link = Link("shops", "sales", "shop", max_children=3)
    >>> fitted = fit_tables({"shops": shops, "sales": sales}, declared, link, 5.0, 1e-6)
    >>> fitted.ledger.spent() <= 5.0
    True
    >>> fitted.sample(50)["shops"].shape
    (50, 2)
    """
    others: dict[str, Any] = {"discovery_share": discovery_share, "method": method, "seed": seed}
    linked = TablesSettings.of(
        columns, relationships, epsilon, delta, constraints, questions, **others
    )
    running = RunningTables.of(linked, tables, allow_lost, prior)
    before = running.told_before
    if said := [*before, *on_labels(columns.values()), *on_unkept(dict(linked.constraints))]:
        warnings.warn(" ".join(said), stacklevel=2)
    fitted = running.run(progress)
    warn_after(fitted.warnings, but=before, kept=fitted)
    return fitted


def _as_public(linked: TablesSettings, tables: Mapping[str, Any]) -> FittedTables:
    """A fit of public tables, as if there were no noise. They may lack columns, and lose others."""
    tables = {name: tables[name] for name in linked.tree.tables if name in tables}
    opened = {n: PrivateTable.opened(own, {}, {}, has_others=True)[0] for n, own in tables.items()}
    # Without patterns, and ranges but for links: what leans on them says how many are beyond.
    kept = {n for e in linked.tree.links for n in (e.order, e.start, e.count, e.numbered)}
    ends = "range_min", "range_max", "cut_points", "regex_format"
    columns: dict[str, dict] = {}
    for table, own in linked.columns.items():
        kinds, facts = require_sdtypes(own, (*MODELLED, "id"))
        for name in [n for n, kind in kinds.items() if kind["sdtype"] in ("numerical", "id")]:
            facts[name] = {k: e for k, e in facts[name].items() if name in kept or k not in ends}
        held = opened[table].dtypes if table in opened else own
        columns[table] = {name: {**kinds[name], **facts[name]} for name in own if name in held}
    tree = Tree(tuple(each.within(columns) for each in linked.tree.links))
    rules = {
        name: own
        for name, own in linked.constraints.items()
        if len(tree.carried(name, columns)) == len(tree.carried(name, linked.columns))
    }
    linked = replace(
        linked, tree=tree, epsilon=1e3, columns=columns, constraints=rules, questions={}
    )
    lost = {name: list(linked.modelled(name)) for name in tree.tables}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            running = RunningTables.of(linked, tables, lost)
            # Public rows may lead nowhere, if not all of them do.
            running.keys = {n: own for n, own in running.keys.items() if n[0] == linked.tree.root}
            return running.run()
        except ValueError as error:
            said = error.args[0]  # without what was spent
            raise ValueError(f"The prior's tables are not as the private ones: {said}") from None


@dataclass(eq=False)
class RunningTables:
    """A fit of tables that is about to run, or did: it holds the ledger, however it ends.

    It has the ``private`` tables, whose ``names`` are in the order in which they were given, the
    pairs of siblings of some of them, the ``keys`` in some of their columns and the noisy
    ``numbers`` of those by which what leads there is used, and lost, the columns of each table for
    which it does not stop, the links
    that must lead somewhere, and what is asked of a table that leans on public families.
    """

    linked: TablesSettings
    names: Sequence[str]
    private: Mapping[str, PrivateTable]
    pairs: Mapping[tuple[str, bool], PrivateTable]
    keys: Mapping[tuple[str, str], PrivateTable]
    let_pass: Mapping[str, Collection[str]]
    leading: Sequence[Link]
    ledger: PrivacyLedger
    public: Mapping[str, Prior]
    leant: dict[str, Description] = field(default_factory=dict)
    numbers: dict[tuple[str, str], Measurement] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        linked: TablesSettings,
        tables: Mapping[str, Any],
        allow_lost: Mapping[str, Collection[str]] = MappingProxyType({}),
        prior: Any = None,
    ) -> "RunningTables":
        """What ``fit_tables`` does, before a row is read: all is checked, and nothing is spent."""
        check_by_table("allow_lost", allow_lost, linked.tree)
        require_others(prior, tables)
        let_pass = {
            name: linked.let_pass(name, allow_lost.get(name, ())) for name in linked.columns
        }
        private, pairs, keys = linked.opened(tables)
        for each in linked.tree.counted:
            where, column = linked.tree.allows(*each)
            if column in allow_lost.get(where, ()):
                del keys[each]
        links = [each for name in linked.tree.tables for each in linked.tree.below(name)]
        leading = [each for each in links if each.number not in allow_lost.get(each.parent, ())]
        public = (
            {} if prior is None else of_families(prior, linked.tree, partial(_as_public, linked))
        )
        own = private, pairs, keys, let_pass, leading, linked.ledger, public
        found = cls(linked, list(tables), *own)
        _ = [found._options_of(table) for table in public]  # it raises for what cannot lean on them
        return found

    @property
    def told_before(self) -> list[str]:
        """Sentences on what is worth a look before anything is spent, by table. Public."""
        return self.linked.absurd() + [
            f"{table}: {said}"
            for table in self.linked.tree.tables
            for said in said_before(*self._options_of(table), None, self.linked.output(table))
        ]

    def run(self, progress: Progress = silent) -> FittedTables:
        """Asks about all tables, and makes the models. Errors say what was spent."""
        linked, fitted, pairs, progress = self.linked, {}, {}, heard(progress)
        try:
            begun = {table: self._begun(table) for table in linked.tree.tables}
            for table, key in self.keys:
                asks = table if begun[table].description.modelled else linked.tree.root
                with self._charging(begun[asks].shared, asks):
                    self._count_keys(table, key, begun[asks].shared)
            self._require_led({table: fit.transcript for table, fit in begun.items()})
            looked: dict[str, Fit] = {}
            for table in linked.tree.tables:
                looked[table] = self._looked(table, begun[table], looked, progress)
            for table in linked.tree.tables:
                fitted[table] = self._fitted(table, looked[table], fitted, progress)
                if (table, False) in self.pairs:
                    pairs[table] = self._asked_of_siblings(table, fitted, progress)
        except BaseException as error:
            if isinstance(error, DomainMismatchError):
                error.after(self.ledger).ledger = self.ledger
            note_on(error, gone(self.ledger, linked.epsilon))
            raise
        found = self._so_far(fitted, pairs)
        said, root = list(found.warnings), linked.tree.root
        for link in self.leading[::-1]:
            made: Any = fitted[link.parent].fitted.sampler
            on_numbers = link.on_numbers(made.first(AT_ONCE)[link.number].to_numpy(float))
            hidden = _is_hidden(fitted[link.child])
            said[:0] = [linked.tree.hides(link.child)] if hidden else on_numbers
        said[:0] = [linked.tree.hides(root)] if _is_hidden(fitted[root]) else []
        count: Any = fitted[root].answer("count")
        sure = SURE + 1  # of several columns
        said[:0] = self._on_left_out(count.estimate, count.stddev, SOME, sure).values()
        return replace(found, warnings=tuple(said))

    def _so_far(
        self,
        fitted: Mapping[str, FittedTable],
        pairs: Mapping[str, tuple[Sequence[Measurement], Siblings]] = MappingProxyType({}),
    ) -> FittedTables:
        """What was fitted of these tables, and of pairs of siblings."""
        names = [name for name in self.names if name in fitted]
        return FittedTables(
            tables={name: fitted[name] for name in names},
            tree=self.linked.tree,
            columns={name: self._in_order(name) for name in names},
            siblings={name: siblings for name, (_, siblings) in pairs.items()},
            answers={name: answers for name, (answers, _) in pairs.items()},
            numbers=self.linked.first_numbers,
            ledger=self.ledger,
            warnings=by_table({name: fitted[name].warnings for name in names}),
            date=date.today().isoformat(),
            seed=self.linked.options.get("seed", 0),
        )

    def _in_order(self, table: str) -> list[str]:
        """The columns of a table that rows have, as they are declared; keys where it has them."""
        names, keys = self.linked.output(table), self.linked.tree.keys_of(table)
        found = [name for name in names if name not in keys]
        for place, name in enumerate(n for n in self.private[table].dtypes if n in names):
            if name in keys:
                found.insert(place, name)
        return found

    def _options_of(
        self, table: str, found: Mapping[str, Description] = MappingProxyType({})
    ) -> tuple[Settings, Description]:
        """What is asked of a table, which is told what was ``found`` of its parent's columns."""
        link, known = self.linked.tree.above(table), None
        if link is not None and link.parent in found:
            above = found[link.parent]
            known = {
                name: {"sdtype": above.facts[name].sdtype, **above.in_words[name]}
                for name in self.linked.carried(link.parent)
            }
        settings, description = self.linked.options_of(table, known)
        dtypes = self.private[table].dtypes
        public = self.public.get(table) if description.modelled else None  # of keys alone nothing
        description = description.of_dtypes(dtypes)
        if table not in self.leant:  # once, as its cells are others each time
            self.leant[table] = leaning(settings, description, public, None, dtypes)
        leant = self.leant[table]
        facts = {**leant.facts, **{name: description.facts[name] for name in description.given}}
        return settings, replace(description, facts=facts, public=leant.public)

    def _begun(self, table: str) -> Fit:
        """What the first question about a table has found: no table is fitted if one stops."""
        fit = Fit(*self._options_of(table), begun=self.linked.part(table))
        stops_at = set(fit.description.modelled) - set(self.let_pass[table])
        with self._charging(fit.shared, table):
            fit.ask_first(self.private[table], stops_at=stops_at)
        return fit

    def _count_keys(self, table: str, key: str, shared: FitLedger) -> None:
        """Asks how many keys a column has, and of how many it is lost what leads by them.

        The root's have as much of the budget of the ledger as the first question, others two fifths
        (``KeySource``).
        """
        part = part_for_first(shared.ledger, {}, None)
        part *= 1 if table == self.linked.tree.root else Fraction(2, 5)
        schema = Schema.from_sdv({"lost": {"sdtype": "boolean", "range_is_nullable": False}})
        curator = self.keys[table, key].curator(schema, shared)
        asked, what = [MarginalQuery(("lost",))], f"number of keys in {table}.{key}"
        (self.numbers[table, key],) = curator.measure(asked, part, what=what)

    def _on_left_out(
        self, used: float, apart: float, least: float, sure: float
    ) -> dict[tuple[str, str], str]:
        """Sentences on columns of keys by which surely more than a part is lost.

        So many of the root's are ``used``, with this standard deviation of the noise. One is
        ``sure`` from so many of those on.
        """
        found, tree = {}, self.linked.tree
        for (table, key), answered in self.numbers.items():
            most, (kept, out) = tree.most_keys(table, key), answered.answer
            fewest, number = out + min(most, 2) * kept, out + most * kept
            error = answered.stddev * math.hypot(1, least * most)
            if table == tree.root:
                fewest, number, out = kept, kept, kept - used
                error = math.hypot(apart, answered.stddev)
            if out - sure * error > least * number:
                part = share(float(out / max(fewest, 1)))
                said = part if number == fewest else f"up to {part}"
                found[table, key] = tree.leaves_out(table, key, said)
        return found

    def _require_led(self, first: Mapping[str, Transcript]) -> None:
        """Raises ``DomainMismatchError`` where next to no family seems to have rows of a table.

        The first questions were about all that are used, each family as one.
        """
        found = {}
        for table, own in first.items():
            if own.answered:
                answers = own.answered[-1].found
                error = answers[0].stddev * math.sqrt(answers[0].answer.size / len(answers))
                found[table] = float(np.mean([each.answer.sum() for each in answers])), error
        families, apart = found[self.linked.tree.root]
        _, root = self._options_of(self.linked.tree.root)
        patterns = {name: root.patterns[name] for name in root.keys}
        wrong = self._on_left_out(families, apart, MANY, 5)
        for link in self.leading:
            counts = [found[link.child]] if link.child in found else []
            keys = self.numbers.get((link.child, link.key))
            if keys is not None and link.parent == self.linked.tree.root:  # so many families again
                counts.append((float(keys.answer[0]), keys.stddev))
            if not counts:
                continue
            both = averaged([NoisyTable(np.asarray(count), error**2) for count, error in counts])
            number, error = float(both.counts), math.sqrt(both.variance)
            if number < SURE * error and number + (SURE + 1) * error < families * MANY:
                wrong[link.child, link.key] = link.leads_nowhere
        if said := [*wrong.values(), *too_few(patterns, math.floor(families - 5 * apart))]:
            raise stopped("the first questions", said, self.ledger)

    def _looked(self, table: str, begun: Fit, above: Mapping[str, Fit], progress: Progress) -> Fit:
        """What was found of a table's columns: no table is fitted if one has no categories."""
        fit = Fit(
            *self._options_of(table, {name: each.description for name, each in above.items()}),
            begun=begun.shared.ledger,
            answered=begun.transcript.answered,
        )
        stops_at = set(fit.description.modelled) - set(self.let_pass[table])
        with self._charging(fit.shared, table):
            fit.discover(self.private[table], progress, stops_at=stops_at)
        return fit

    def _fitted(
        self, table: str, looked: Fit, above: Mapping[str, FittedTable], progress: Progress
    ) -> FittedTable:
        """The fit of a table of whose columns it was looked what they have."""
        asked = self._options_of(table, {n: each.fitted.description for n, each in above.items()})
        link, given = self.linked.tree.above(table), None
        if link is not None and asked[1].given:
            given = given_tables(self._so_far(above), link, AT_ONCE)
        running = running_fit(
            *asked,
            self.private[table],
            begun=looked.shared.ledger,
            allow_lost=self.let_pass[table],
            given=given,
            answered=looked.transcript.answered,
        )
        with self._charging(running.fit.shared, table):
            return replace(running.run(progress, stops=True), name=table)

    def _asked_of_siblings(
        self, table: str, fitted: Mapping[str, FittedTable], progress: Progress
    ) -> tuple[Sequence[Measurement], Siblings]:
        """How children of one parent go together, each two columns over a few groups of codes.

        Of children in order it is also asked what the next one has. They are expected to go
        together as far as their parents say.
        """
        release, schema = fitted[table].fitted.release, fitted[table].fitted.schema
        assert release is not None
        names = self.linked.tree.paired(table, list(self.linked.modelled(table)))
        groups = {
            name: equal_groups(np.asarray(release.model.marginal((name,)), dtype=float), _GROUPS)
            for name in names
        }
        link, number = self.linked.tree.above(table), fitted[self.linked.tree.root].num_rows or 0
        assert link is not None
        made, family = self._so_far(fitted).first_families(min(max(number, 1), AT_ONCE), -1)
        children = {
            name: encoded_rows(schema.named[name], pd.Series(made[table][name])) for name in names
        }
        whose = pd.factorize(made[table][link.key])[0], family[table]
        most, answers, found = self.linked.siblings, [], {}
        for in_order in (False, True):
            if (table, in_order) in self.pairs:
                pairs = paired(*whose, most[table, in_order], in_order=in_order)
                asked, found[in_order] = self._asked_of_pairs(
                    table, schema, groups, children, pairs, in_order, progress
                )
                answers += asked
        return answers, Siblings(
            grouping=Grouping.of(groups),
            tables=found[False],
            followed=found.get(True, {}),
            most=most[table, False],
        )

    def _asked_of_pairs(
        self,
        table: str,
        schema: Schema,
        groups: Mapping[str, np.ndarray],
        children: Mapping[str, np.ndarray],
        paired: tuple[np.ndarray, np.ndarray, np.ndarray],
        in_order: bool,
        progress: Progress,
    ) -> tuple[list[Measurement], dict[Clique, np.ndarray]]:
        """What any two children have, or one and the next one: answers, and the groups' shares.

        Privacy: all that its part of the budget has. Each pair counts as 1 / the number of such
        pairs in the family, any two in both orders: a table of them has sensitivity 1 for it.
        """
        own, names = schema.named, list(groups)
        other = following if in_order else sibling
        both = [replace(own[name], name=of(name)) for of in (str, other) for name in names]
        grouping = Grouping.of({of(name): groups[name] for of in (str, other) for name in names})
        named: dict[Clique, tuple[str, str]] = {
            (a, other(b)): (a, b) for a, b in self.linked.pairs_asked(table, in_order)
        }
        shared = FitLedger(self.linked.part(table, PAIRS[in_order]))
        with self._charging(shared, table):
            pairs = self.pairs[table, in_order]
            curator = pairs.curator(Schema(tuple(both)), shared, progress=progress)
            answers = curator.measure(
                [GroupedMarginalQuery(clique, grouping) for clique in named],
                shared.ledger.remaining,
                what=f"pairs of {PAIRS[in_order]}, in groups",
                progress=progress,
            )
        tables = over_groups(consistent_tables(curator.domain, answers), grouping)
        first, second, weights = paired
        # Categories that share groups are expected to go with themselves as their groups do.
        again = {
            name: float(np.average(codes[first] == codes[second], weights=weights))
            for name, codes in children.items()
            if len(first)
            and not own[name].is_ordered
            and groups[name].max() + 1 < len(groups[name])
        }
        expected = {}
        for clique, (a, b) in named.items():
            shares = [tables.one_way[name] / tables.total for name in clique]
            codes = groups[a][children[a][first]], groups[b][children[b][second]]
            start = table_of(codes, tuple(map(len, shares)), weights)
            # One pair more counts, of any two: what is not among these may still be there.
            start = start / max(start.sum(), 1e-9) + np.outer(*shares) / (1 + len(first))
            margins = {(axis,): tables.total * own[None] for axis, own in enumerate(shares)}
            (expected[clique],) = of_largest_entropy(margins, start[None], tables.total)
        tables = replace(tables, expected=expected)
        found = {}
        for clique, counts in denoised(tables, progress, "compare").tables.items():
            a, b = named[clique]
            shares = np.maximum(counts + counts.T if a == b and not in_order else counts, 0)
            found[a, b] = shares / max(float(shares.sum()), 1e-9)
            if a == b and a in again:
                before, now = np.trace(expected[clique]) / tables.total, np.trace(found[a, b])
                if now < before:
                    same = again[a] * now / before
                else:
                    same = 1 - (1 - again[a]) * (1 - now + 1e-9) / (1 - before + 1e-9)
                found[(a,)] = np.array([1 - same, same])
        return answers, found

    @contextmanager
    def _charging(self, shared: FitLedger, table: str) -> Iterator[None]:
        """Puts what is spent on a table meanwhile on the ledger of all, however it ends."""
        before = len(shared.ledger.charges)
        try:
            yield
        except DomainMismatchError as error:
            error.args = (f"{table}: {error.args[0]}",)
            raise
        finally:
            spent = shared.ledger.charges[before:]
            own = (replace(each, what=f"{table}: {each.what}") for each in spent)
            self.ledger = replace(self.ledger, charges=(*self.ledger.charges, *own))


def _is_hidden(fitted: FittedTable) -> bool:
    """Whether noise hides that any row of a table is used; not of one that was asked nothing."""
    if fitted.fitted.release is None:
        return False
    count: Any = fitted.answer("count")
    return count.estimate < 3 * count.stddev
