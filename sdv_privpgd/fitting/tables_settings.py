"""What a fit of tables that belong together is told, checked before a row is read. Public."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.arguments import check_known, shown
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cuts import column_of
from sdv_privpgd.columns.declarations import Key
from sdv_privpgd.columns.links import Link, Tree, tree_of
from sdv_privpgd.columns.visits import as_read, read_by, time_facts
from sdv_privpgd.columns.vocabulary import MODELLED, words_of
from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.discovery.first_queries import reserved_delta
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.options import (
    check_match,
    checked_lost,
    opened,
    parse_options,
    require_sdtypes,
)
from sdv_privpgd.fitting.settings import People, Settings
from sdv_privpgd.inference.question_list import Question
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.counting import MOST
from sdv_privpgd.privacy.ledger import PrivacyLedger

PAIRS = ("siblings", "rows in order")
"""What pairs of children are called: any two, and those that follow each other."""


def check_by_table(argument: str, by_table: object, tree: Tree) -> None:
    """Raises ``ValueError`` unless it is a dictionary by some of the tables."""
    if not isinstance(by_table, Mapping):
        raise ValueError(f"{argument} is a dictionary of lists by table, got {shown(by_table)}.")
    check_known(argument, by_table, tree.tables, "tables")


@dataclass(frozen=True)
class TablesSettings:
    """What a fit of tables is told, and how the budget is divided. Public.

    ``columns`` are without keys that lead to others, ``constraints`` and ``questions`` by table.
    What else a fit of a table takes is ``options``.
    """

    columns: Mapping[str, Mapping[str, Mapping]]
    tree: Tree
    epsilon: float
    delta: float
    options: Mapping[str, Any]
    constraints: Mapping[str, Sequence[Constraint]]
    questions: Mapping[str, Sequence[Question]]

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Mapping[str, Mapping]],
        relationships: Link | Iterable[Link],
        epsilon: float,
        delta: float,
        constraints: Mapping[str, Sequence[Constraint]] = MappingProxyType({}),
        questions: Mapping[str, Sequence[Question]] = MappingProxyType({}),
        **options: Any,
    ) -> "TablesSettings":
        """Raises ``ValueError`` for what no fit can ask, before a table is opened."""
        tree = tree_of(relationships)
        tree.require(columns, MOST)
        check_by_table("constraints", constraints, tree)
        check_by_table("questions", questions, tree)
        own = {}
        for table in tree.tables:
            link, key = tree.above(table), tree.key_of(table)
            declared = {str(name): facts for name, facts in columns[table].items()}
            for name in {*tree.keys_of(table)} & declared.keys():
                if _sdtype(declared[name]) != "id":
                    raise ValueError(
                        f"columns[{table!r}][{name!r}] is a key by the links: declare it as Key(), "
                        "or leave it out."
                    )
            if link is not None:
                declared.pop(link.key, None)
                _require_order(link, declared, columns[link.parent])
                _require_whole("count", link.count, link.parent, columns[link.parent])
                _require_whole("numbered", link.numbered, link.child, declared)
                _require_free(link, constraints.get(link.parent, ()))
            own[table] = declared if key is None else {key: Key(), **declared}
        return cls(own, tree, epsilon, delta, options, constraints, questions)

    def options_of(
        self, table: str, parents: Mapping[str, Mapping] | None = None
    ) -> tuple[Settings, Description]:
        """Settings and description of a table, with what links add to its columns.

        ``parents`` are what is known of the parent's columns; by default what is declared.
        """
        settings, description = self._described(table, parents)
        known = self.given(table)
        settings = replace(
            settings,
            epsilon=self.part(table).epsilon if self._asks(table) else self.epsilon,
            family=self.tree.tables,
            method=settings.method.knowing(known),
        )
        added = *known, *self._time(table), *self.tree.numbers(table)
        size = self.tree.size(table)
        counted_by = () if size is None or not self._asks(table) else (size,)
        link = self.tree.above(table)
        by = () if link is None else (link.order, link.start and link.above(link.start))
        counts = {each.number: each.count for each in self.tree.below(table) if each.count}
        options: dict[str, Any] = {"counted_by": counted_by, "clocks": [*filter(None, by)]}
        description = replace(description, given=known, linked=added, counts=counts, **options)
        check_match(settings, description)
        return settings, description

    def _described(
        self, table: str, parents: Mapping[str, Mapping] | None = None
    ) -> tuple[Settings, Description]:
        """The same, with the epsilon of all tables."""
        link, tree = self.tree.above(table), self.tree
        if parents is None:
            parents = {} if link is None else self.carried(link.parent)
        columns = {**self.columns[table], **tree.numbers(table)}
        if link is not None and link.numbered is not None:
            columns[link.numbered] = Key()
        if self._asks(table):
            columns |= {**tree.joined(table, parents), **self._time(table)}
        elif link is not None:
            columns[link.key] = Key()
        return parse_options(
            columns,
            self.epsilon,
            self.delta,
            adjacency="add_remove",
            people=People(tree.root_key, self.most, weighed=True),
            constraints=self.constraints.get(table, ()),
            questions=self.questions.get(table, ()),
            **self.options,
        )

    def modelled(self, table: str) -> dict[str, Mapping]:
        """What is declared of the modelled columns of a table itself."""
        link = self.tree.above(table)
        made = None if link is None else link.numbered
        own = self.columns[table].items()
        return {name: facts for name, facts in own if name != made and _sdtype(facts) != "id"}

    def _time(self, table: str) -> dict[str, Mapping]:
        """What is declared of how long ago the row before was, of a table in order."""
        link, clocks = self.tree.above(table), self.clocks(table)
        if link is None or link.since is None or not clocks:
            return {}
        return {link.since: {"sdtype": "numerical", **words_of(time_facts(clocks[0]))}}

    def clocks(self, table: str) -> tuple[Column, ...]:
        """The column by which a table is in order, if it is, and the parent's where that begins."""
        link = self.tree.above(table)
        by = None if link is None else link.order or link.numbered
        if link is None or by is None:
            return ()
        clock = column_of(by, as_read(self.alone(table).stated[by]))
        if link.start is None:
            return (clock,)
        return clock, read_by(clock, link.start, self.alone(link.parent).facts[link.start])

    def alone(self, table: str) -> Description:
        """The description of a table's own columns."""
        if table not in self._alone:
            key = self.tree.key_of(table)
            kinds, others = require_sdtypes(self.columns[table], (*MODELLED, "id"))
            keys = {name: {"sdtype": "id"} for name in self.tree.keys_of(table)}
            self._alone[table] = Description.of(
                {**kinds, **keys},
                {name: facts for name, facts in others.items() if kinds[name]["sdtype"] != "id"},
                keys=() if key is None else (key,),
            )
        return self._alone[table]

    @cached_property
    def _alone(self) -> dict[str, Description]:
        """Those that were asked for: reading what is declared takes long."""
        return {}

    def carried(self, table: str) -> dict[str, Mapping]:
        """What is declared of all modelled columns that rows hand down to their children."""
        own = {name: self.modelled(name) for name in self.columns}
        return self.tree.carried(table, own)

    def given(self, table: str) -> tuple[str, ...]:
        """The columns of a table of which fits of other tables ask, if it has others, too."""
        link = self.tree.above(table)
        if link is None or not self._asks(table):
            return ()
        return tuple(self.tree.joined(table, self.carried(link.parent)))

    def _asks(self, table: str) -> int:
        """How many columns, or else questions, there are of a table itself; of keys alone none."""
        own = {*self.modelled(table), *self.tree.numbers(table), *self._time(table)}
        return len(own) or len(self.questions.get(table, ()))

    def require(self) -> None:
        """Raises ``ValueError`` for what no fit can ask of some table, before one is opened."""
        for table in self.tree.tables:
            self.options_of(table)

    def absurd(self, num_rows: int | None = None) -> list[str]:
        """Sentences on an epsilon or a delta that promises next to nothing for so many rows."""
        return self._described(self.tree.root)[0].absurd(num_rows)

    @property
    def siblings(self) -> dict[tuple[str, bool], int]:
        """The tables of which pairs of siblings are asked for, and of how many of each parent.

        They are any two (``False``), and of tables in order those that follow each other.
        """
        found = {}
        for link in map(self.tree.above, self.tree.tables[1:]):
            assert link is not None
            most = self.tree.most_siblings(link.child, MOST)
            if most and self.modelled(link.child):
                found[link.child, False] = most
                if link.order is not None:
                    found[link.child, True] = link.max_children
        return found

    def pairs_asked(self, table: str, in_order: bool) -> list[tuple[str, str]]:
        """The columns of pairs of siblings: what one has and the other one, or the next one.

        Of rows in order any two are asked about the same column alone.
        """
        names, link = self.tree.paired(table, list(self.modelled(table))), self.tree.above(table)
        if in_order:
            return [(a, b) for a in names for b in names]
        if link is not None and link.order is not None:
            return [(name, name) for name in names]
        return [(a, b) for place, a in enumerate(names) for b in names[place:]]

    @property
    def most(self) -> int:
        """The most rows of a family, of a table or of pairs of siblings."""
        tree = self.tree
        pairs = [
            tree.most_of(link.parent) * most * (most - 1)
            for (name, in_order), most in self.siblings.items()
            if (link := tree.above(name)) is not None and not in_order
        ]
        return max([*map(tree.most_of, tree.tables), *pairs])

    @property
    def shares(self) -> dict[tuple[str, str], Fraction]:
        """The part of the budget of each table, and of its pairs of siblings, by what is asked.

        The noise of each of k pairs of columns grows as the root of k / part. So the noise of all
        parts together is the least if they are as the cube roots of k. That of siblings counts half
        as much as that of a table, so that they are as those of k / 4.
        """
        pairs = {}
        for name in self.tree.tables:
            if number := self._asks(name):
                asked = math.comb(number, 2) + number * len(self.given(name))
                pairs[name, ""] = max(asked, 1)
        parts = {name: k ** (1 / 3) for name, k in pairs.items()}
        for name in dict.fromkeys(name for name, _ in self.siblings):
            of = {PAIRS[o]: len(self.pairs_asked(name, o)) for n, o in self.siblings if n == name}
            whole, apart = (sum(of.values()) / 4) ** (1 / 3), sum(k ** (1 / 3) for k in of.values())
            parts |= {(name, kind): whole * k ** (1 / 3) / apart for kind, k in of.items()}
        parts = {name: Fraction(part).limit_denominator(100) for name, part in parts.items()}
        return {name: part / sum(parts.values()) for name, part in parts.items()}

    @property
    def ledger(self) -> PrivacyLedger:
        """The empty ledger of all tables."""
        settings, _ = self._described(self.tree.root)
        kept = sum(self._reserved.values(), Fraction(0))
        return replace(settings, family=self.tree.tables).ledger(kept)

    def part(self, table: str, pairs: str = "") -> PrivacyLedger:
        """The empty ledger of a table, or of its pairs of siblings."""
        kept = Fraction(0) if pairs else self._reserved[table]
        budget = self.ledger.budget * self.shares.get((table, pairs), Fraction(0))
        epsilon = epsilon_of(budget, float(Fraction(self.delta) - kept))
        return replace(self.ledger, budget=budget, reserved=kept, epsilon=epsilon)

    @cached_property
    def _reserved(self) -> dict[str, Fraction]:
        """The part of delta that is kept for the thresholds of each table, half of it in all."""
        found = {
            table: reserved_delta(self._described(table)[1].undeclared, self.delta)
            for table in self.tree.tables
        }
        most = Fraction(self.delta) / 2
        times = min(most / (sum(found.values()) or most), Fraction(1))
        return {table: kept * times for table, kept in found.items()}

    def opened(self, tables: Mapping[str, Any]) -> tuple[dict, dict, dict]:
        """The tables with what is added, pairs of siblings, and keys. None is read."""
        if not isinstance(tables, Mapping) or set(tables) != set(self.tree.tables):
            given = sorted(map(str, tables)) if isinstance(tables, Mapping) else type(tables)
            raise ValueError(
                f"The links are of the tables {sorted(self.tree.tables)!r}: give a dictionary of "
                f"them, got {given!r}."
            )
        names = self.tree.tables
        private = {name: self._opened(name, tables[name]) for name in names}
        self.tree.require_free(self.columns, {name: private[name].dtypes for name in names})
        read = {name: list(self.modelled(name)) for name in names}
        clocks = {name: self.clocks(name) for name in names}
        return PrivateTable.together(private, self.tree, read, self.siblings, self.most, clocks)

    def _opened(self, name: str, table: Any) -> PrivateTable:
        try:
            return opened(table, self.alone(name), None)
        except ValueError as error:
            error.args = (f"{name}: {error}",)
            raise

    @property
    def first_numbers(self) -> dict[str, int]:
        """What the rows of tables are numbered from, of those that are."""
        numbered = {each.child: each.numbered for each in self.tree.links if each.numbered}
        return {table: int(self.columns[table][n]["range_min"]) for table, n in numbered.items()}

    def let_pass(self, table: str, names: Collection[str]) -> tuple[str, ...]:
        """The columns for which the fit of a table does not stop: what links add, and these.

        Raises ``ValueError`` for names of no column.
        """
        _, description = self.options_of(table)
        own = self.modelled(table)
        added = (name for name in description.modelled if name not in own)
        return (*checked_lost(names, description), *added)

    def output(self, table: str) -> list[str]:
        """The names of a table's columns that rows have."""
        return list(dict.fromkeys([*self.tree.keys_of(table), *self.columns[table]]))


def _require_order(
    link: Link, columns: Mapping[str, Mapping], parents: Mapping[str, Mapping]
) -> None:
    """Raises ``ValueError`` unless a column by which rows are in order has a declared range."""
    if link.order is None:
        return
    facts = columns.get(link.order, {})
    kind = _sdtype(facts)
    if link.start is not None and _sdtype(parents.get(link.start, {})) != kind:
        raise ValueError(
            f"Link.start names {link.start!r}, which must be a column of {link.parent!r} with "
            f"the sdtype of {link.order!r}, {kind!r}."
        )
    if kind not in ("numerical", "datetime") or None in map(facts.get, ("range_min", "range_max")):
        raise ValueError(
            f"Link.order, or a sequence_index of metadata, names {link.order!r}, which must be a "
            f"column of numbers or dates of {link.child!r} with a declared range."
        )


def _require_whole(said: str, name: str | None, table: str, columns: Mapping[str, Mapping]) -> None:
    """Raises ``ValueError`` unless a column can be made of the number of children."""
    facts = columns.get(str(name), {})
    if name is not None and (
        (_sdtype(facts), facts.get("decimal_places")) != ("numerical", 0)
        or None in map(facts.get, ("range_min", "range_max"))
    ):
        raise ValueError(
            f"Link.{said} names {name!r}, which must be a column of whole numbers of "
            f"{table!r} with a declared range, such as Numerical(0, 20, decimal_places=0)."
        )


def _require_free(link: Link, constraints: Sequence[Constraint]) -> None:
    """Raises ``ValueError`` for constraints about the number of children."""
    if link.count is not None and any(
        not each.columns or link.count in each.columns for each in constraints
    ):
        raise ValueError(
            f"Link.count names {link.count!r}, which follows from the number of rows: a "
            f"constraint of {link.parent!r} cannot be about it."
        )


def _sdtype(facts: Any) -> str | None:
    is_said = isinstance(facts, Mapping)
    return (getattr(facts, "sdtype", None) or facts.get("sdtype")) if is_said else None
