"""How tables belong together: which rows lead to which, and the columns that say so. Public.

One table is the root, and every other one has one parent. A row of the root with all that leads to
it is a family. Columns are added to the rows of a table that say what is known of their family: how
many rows of each table below lead to a row, and what the row has that it leads to.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.arguments import check_flag, check_integer
from sdv_privpgd.base.domain import FieldsAlone
from sdv_privpgd.base.words import listed
from sdv_privpgd.columns.declarations import Key
from sdv_privpgd.columns.facts import NumberFacts
from sdv_privpgd.columns.visits import since
from sdv_privpgd.columns.vocabulary import MODELLED, facts_in, words_of


@dataclass(frozen=True)
class Link:
    """Rows of a table that lead to a row of another one.

    Attributes:
        parent: The table that is led to.
        child: The table whose rows lead there.
        key: The column of the child that says whereto.
        max_children: How many rows of the child are used of one row of the parent. Others are left
            out, by chance. The number is public: take it from documentation.
        parent_key: The parent's column of keys; by default it is called as the child's.
        siblings: Whether it is asked how children of one parent go together, and what the first
            one has, the second one, and so on, in the order of the rows.
        order: A column of the child, of numbers or dates of a declared range, by which the rows of
            one parent are in order. Of too many such rows those that are used follow each other.
            It is asked how long after the row before each one is, and what the next row has.
        start: A column of the parent, of dates or numbers as ``order`` has them, at which the order
            begins. It is asked how long after it the first row is, and none comes before it.
        count: A column of the parent, of whole numbers of a declared range, that says how many
            rows of the child there are: synthetic rows have as many, or more than ``max_children``.
        numbered: A column of the child, of whole numbers of a declared range, that numbers the rows
            of one parent, from the least of that range on. They are in its order, unless ``order``
            says another one. It is not asked about: synthetic rows are numbered.

    Raises:
        ValueError: For what names no table or column, and for a number that is none.

    >>> Link("households", "persons", "household", max_children=6).parent_key
    'household'
    """

    parent: str
    child: str
    key: str
    max_children: int
    parent_key: str | None = None
    siblings: bool = True
    order: str | None = None
    start: str | None = None
    count: str | None = None
    numbered: str | None = None

    def __post_init__(self) -> None:
        if self.order is not None and self.order == self.numbered:  # then nothing is to be asked
            object.__setattr__(self, "order", None)
        if self.parent_key is None:
            object.__setattr__(self, "parent_key", self.key)
        for name in ("parent", "child", "key", "parent_key"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"Link.{name} must be a name, got {getattr(self, name)!r}.")
        object.__setattr__(self, "max_children", check_integer("max_children", self.max_children))
        check_flag("siblings", self.siblings)
        if self.order is not None and not (self.siblings and isinstance(self.order, str)):
            raise ValueError(
                f"Link.order must name a column by which siblings are in order, got {self.order!r} "
                f"with siblings={self.siblings!r}."
            )
        if self.start is not None and not (self.order and isinstance(self.start, str)):
            raise ValueError(
                f"Link.start must name the parent's column at which order begins, got "
                f"{self.start!r} with order={self.order!r}."
            )

    def within(self, columns: Mapping[str, Collection[str]]) -> "Link":
        """The same link without the columns that tables do not have."""
        own, above = columns[self.child], columns[self.parent]
        named = {"order": own, "numbered": own, "start": above, "count": above}
        gone = [name for name, held in named.items() if getattr(self, name) not in held]
        return replace(self, **dict.fromkeys([*gone, *["start"] * ("order" in gone)]))

    @property
    def number(self) -> str:
        """The name of the parent's column of how many children it has."""
        return f"number of {self.child}"

    @property
    def place(self) -> str | None:
        """The name of the child's column of its place among its siblings, if that is asked for."""
        return f"place in {self.parent}" if self.siblings and self.max_children > 1 else None

    @property
    def since(self) -> str | None:
        """The name of the child's column of how long ago the row before was, if rows are in order.

        Without ``start`` it is missing in a first row.
        """
        return None if self.order is None else since(self.order)

    def on_numbers(self, numbers: np.ndarray) -> list[str]:
        """A sentence if many parents have all children that are used.

        ``numbers`` are how many children the parents of a model have.
        """
        most = self.max_children
        full, fewer = (float((numbers == most - less).mean()) for less in (0, 1))
        if most == 1 or full < max(fewer, 0.05):
            return []
        return [
            f"About {full:.0%} of the rows of {self.parent!r} have {most} rows of {self.child!r}, "
            "as many as max_children lets be used. If some have more, choose a larger one: those "
            f"are missing. {self._unless}"
        ]

    @property
    def leads_nowhere(self) -> str:
        """A sentence on a link by which next to no row leads anywhere."""
        own, above = f"{self.child}.{self.key}", f"{self.parent}.{self.parent_key}"
        return (
            f"Next to no row of {self.child!r} leads to a row of {self.parent!r} that is used: see "
            f"whether {own!r} and {above!r} are written alike, and whether keys of "
            f"{self.parent!r} are there once. {self._unless}"
        )

    @property
    def _unless(self) -> str:
        return f"If that is how it is: allow_lost={ {self.parent: [self.number]} }."

    def above(self, name: str) -> str:
        """The name of the child's column of what its parent has in one of its own."""
        return f"{self.parent}.{name}"


@dataclass(frozen=True)
class Tree(FieldsAlone):
    """Tables that belong together, by links in any order.

    Raises ``ValueError`` unless the links make one tree.
    """

    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        if not self.links or not all(isinstance(each, Link) for each in self.links):
            raise ValueError(
                "relationships takes links of tables, such as Link('households', 'persons', "
                "'household_id', max_children=6), at least one of them."
            )
        children = [each.child for each in self.links]
        if twice := sorted({name for name in children if children.count(name) > 1}):
            raise ValueError(
                f"The tables {twice!r} have more than one parent, and a row must be of one family. "
                "Keep the link to the table that is to be protected, and declare the other key as "
                "a categorical column of public values, or leave it out."
            )
        roots = {each.parent for each in self.links} - set(children)
        if len(roots) != 1 or set(self.tables) != {*children, *roots}:
            raise ValueError(
                f"The links must make one tree, and no circle: they have {sorted(roots)!r} as "
                "tables without a parent. One table has none, and every other one has one parent. "
                "Leave out a key that leads to rows of its own table."
            )
        keys: dict[str, Any] = {}
        for each in self.links:
            if keys.setdefault(each.parent, each.parent_key) != each.parent_key:
                raise ValueError(f"Links name two keys of {each.parent!r}: it has one.")

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables that are reached from the root, parents first."""
        children = {each.child for each in self.links}
        found = list(dict.fromkeys(e.parent for e in self.links if e.parent not in children))[:1]
        for name in found:  # it grows
            found += [each.child for each in self.links if each.parent == name]
        return tuple(found)

    @property
    def root(self) -> str:
        """The table whose rows are protected, each with all that leads to it."""
        return self.tables[0]

    @property
    def root_key(self) -> str:
        """The root's column of keys."""
        return str(self.key_of(self.root))

    def hides(self, table: str) -> str:
        """A sentence on a table of which noise hides whether any row is used."""
        link = self.above(table)
        key, why = self.root_key, "missing, or there more than once"
        if link is not None:
            key, why = link.key, f"in no row of {link.parent!r} that is used"
        return (
            f"Noise hides whether any row of {table!r} is used: there are too few for this "
            f"epsilon, or keys in {f'{table}.{key}'!r} are {why}."
        )

    @property
    def counted(self) -> list[tuple[str, str]]:
        """The tables and columns of keys that are counted, the root's first."""
        own = [(table, str(self.key_of(table))) for table in self.tables if self.below(table)]
        return own + [(each.child, each.key) for each in self.links]

    def most_keys(self, table: str, key: str) -> int:
        """How many keys there are at most for each that is counted and leads somewhere.

        Of keys that lead to a table between, two of each family are counted, as a half each.
        """
        link = self.above(table)
        most = 1 if link is None or link.key != key else self.most_of(link.parent)
        return most if most == 1 else max(most, 2)

    def allows(self, table: str, key: str) -> tuple[str, str]:
        """The table and column to be named by whom a key that is counted may be lost."""
        link = self.above(table)
        return (table, key) if link is None or link.key != key else (link.parent, link.number)

    def leaves_out(self, table: str, key: str, part: str) -> str:
        """A sentence on a column of keys by which such a part of what leads there is lost."""
        link, below = self.above(table), [each.child for each in self.below(table)]
        why, lost = "there more than once", f"rows of {listed([*map(repr, below)])} that lead there"
        if link is None:
            why, lost = f"missing, or {why}", "such rows"
        elif link.key == key:
            why, lost = f"missing, or lead to no row of {link.parent!r} that is used", "such rows"
        where, column = self.allows(table, key)
        return (
            f"Of the keys in {f'{table}.{key}'!r} {part} are {why} ('01' and '1.0' are 1): {lost} "
            f"are left out. If that is how it is: allow_lost={ {where: [column]} }."
        )

    def key_of(self, table: str) -> str | None:
        """The column of keys of a table, if links lead to it."""
        return next((each.parent_key for each in self.below(table)), None)

    def keys_of(self, table: str) -> list[str]:
        """A table's own column of keys, and that which leads to its parent, if there are such."""
        own, link = self.key_of(table), self.above(table)
        return [*([] if own is None else [own]), *([] if link is None else [link.key])]

    def above(self, table: str) -> Link | None:
        """The link of a table to its parent; the root has none."""
        return next((each for each in self.links if each.child == table), None)

    def below(self, table: str) -> tuple[Link, ...]:
        """The links that lead to a table."""
        return tuple(each for each in self.links if each.parent == table)

    def most_of(self, table: str) -> int:
        """How many rows of a table are used of one family."""
        link = self.above(table)
        return 1 if link is None else link.max_children * self.most_of(link.parent)

    def most_siblings(self, table: str, most: int) -> int:
        """Of how many children of one parent pairs are counted, if a family has ``most`` pairs."""
        link = self.above(table)
        if link is None or not link.siblings:
            return 0
        each = most // self.most_of(link.parent)
        number = min(link.max_children, (1 + math.isqrt(1 + 4 * each)) // 2)
        return number if number > 1 else 0

    def in_family(self, table: str) -> str | None:
        """The name of a column of how many rows of a table a family has, if that is to be added.

        Where the root is the parent its own column says it.
        """
        link = self.above(table)
        if link is None or link.parent == self.root:
            return None
        return f"{table} in the family"

    def size(self, table: str) -> str | None:
        """The name of the column of how many rows of a table a family has; none of the root."""
        link = self.above(table)
        return None if link is None else self.in_family(table) or link.above(link.number)

    def paired(self, table: str, names: Sequence[str]) -> list[str]:
        """The columns of which pairs of siblings are asked: of rows in order the time between."""
        link = self.above(table)
        if link is None or link.since is None:
            return list(names)
        return [link.since if name == link.order else name for name in names]

    def numbers(self, table: str) -> dict[str, dict]:
        """The columns of numbers of children of a table's rows, as they are declared."""
        return {each.number: _counted(each.max_children) for each in self.below(table)}

    def handed(self, table: str, name: str) -> str:
        """The name that rows of a table have a column of the root by."""
        link = self.above(table)
        return name if link is None else link.above(self.handed(link.parent, name))

    def carried(
        self, table: str, columns: Mapping[str, Mapping[str, Mapping]]
    ) -> dict[str, Mapping]:
        """What rows of a table hand down to those that lead to them, as it is declared.

        It is what they have, their numbers of children, and what they were handed down themselves.
        """
        link = self.above(table)
        above = {} if link is None else self.carried(link.parent, columns)
        handed = {} if link is None else {link.above(name): own for name, own in above.items()}
        return {**columns[table], **self.numbers(table), **handed}

    def joined(self, table: str, parents: Mapping[str, Mapping]) -> dict[str, Mapping]:
        """What links add to a table's rows, of what ``parents`` hand down and of siblings."""
        link = self.above(table)
        if link is None:
            return {}
        place = {} if link.place is None else {link.place: _counted(link.max_children, 1)}
        found: dict[str, Mapping] = place | {link.above(name): own for name, own in parents.items()}
        if in_family := self.in_family(table):
            found[in_family] = _counted(self.most_of(table))
        return found

    def require(self, columns: Mapping[str, Mapping[str, Any]], most: int) -> None:
        """Raises ``ValueError`` unless these are the tables' columns, and families are small."""
        if set(columns) != set(self.tables):
            raise ValueError(
                f"The links are of the tables {sorted(self.tables)!r}, and columns describe "
                f"{sorted(columns)!r}: describe each of them, and no other."
            )
        for table in self.tables:
            if self.most_of(table) > most:
                raise ValueError(
                    f"A family may have {self.most_of(table)} rows of {table!r}, by the "
                    f"max_children of its links: together they may have {most} at most. Choose "
                    "smaller ones: of more rows so many are used, by chance."
                )
        self.require_free(columns, columns)

    def require_free(
        self, columns: Mapping[str, Mapping[str, Any]], held: Mapping[str, Iterable[str]]
    ) -> None:
        """Raises ``ValueError`` if columns that tables hold have names of those that links add."""
        for table in self.tables:
            link, added = self.above(table), {*self.numbers(table)}
            if link is not None:
                above = self.carried(link.parent, columns)
                added |= {*self.joined(table, above), str(link.since)}
                added |= {of(name) for name in columns[table] for of in (sibling, following)}
            if taken := [name for name in held[table] if name in added]:
                raise ValueError(
                    f"Columns of {table!r} are called {taken!r}, as those are that links add: "
                    "rename them, or take them out of the table."
                )


def read_tables(
    metadata: Mapping[str, Any],
    declared: Mapping[str, Mapping[str, Mapping]],
    max_children: int | Mapping[str, int],
    *,
    keep: bool,
    **named: Mapping[str, str] | None,
) -> tuple[dict[str, dict[str, Mapping]], list[Link]]:
    """Returns what SDV's metadata of several tables says of columns that are modelled, and links.

    Ranges in the metadata count if they are to ``keep``, and what is ``declared`` of a table's
    columns before them. A ``sequence_index`` is the order of its table's rows. ``starts``,
    ``counts`` and ``numbers`` have ``named`` columns by table, as links have them.

    Raises ``ValueError`` if nobody says how many rows of a table may lead to one, for columns that
    are ``named`` of tables that lead to none, and for what is declared of no modelled column.
    """
    tables, columns = metadata["tables"], {}
    for table, own in tables.items():
        key = own.get("primary_key")
        columns[table] = {
            name: Key(facts.get("regex_format"))
            if name == key
            else {**facts_in(facts, keep=keep), **declared.get(table, {}).get(name, {})}
            for name, facts in own["columns"].items()
            if name == key or facts["sdtype"] in MODELLED
        }
    for table, said in declared.items():
        modelled = [n for n in columns.get(table, ()) if n != tables[table].get("primary_key")]
        if unknown := [name for name in said if name not in modelled]:
            raise ValueError(
                f"public_domain names the columns {unknown!r} of {table!r}, of which "
                f"{modelled!r} are modelled."
            )
    links = [
        (each["parent_table_name"], each["child_table_name"], each["child_foreign_key"],
         each["parent_primary_key"]) for each in metadata.get("relationships") or ()
    ]  # fmt: skip
    children = [child for _, child, _, _ in links]
    most = max_children
    if not isinstance(most, Mapping):
        most = dict.fromkeys(children, most)
    if missing := [child for child in children if child not in most]:
        raise ValueError(
            f"max_children says nothing of {missing!r}: how many of its rows may lead to one row?"
        )
    by_link: dict[str, Any] = {}
    for said, word in (("starts", "start"), ("counts", "count"), ("numbers", "numbered")):
        by_link[word] = found = named.get(said) or {}
        if unknown := [name for name in found if name not in children]:
            raise ValueError(f"{said} names {unknown!r}, which lead to no table.")
    orders = {name: metadata["tables"].get(name, {}).get("sequence_index") for name in children}
    return columns, [
        Link(
            *(parent, child, key, most[child], own),
            order=orders[child],
            **{word: own.get(child) for word, own in by_link.items()},
        )
        for parent, child, key, own in links
    ]


def sibling(name: str) -> str:
    """The name of the column of what another child of the same parent has."""
    return f"{name} (sibling)"


def following(name: str) -> str:
    """The name of the column of what the next child of the same parent has, in order."""
    return f"{name} (row after)"


def tree_of(links: Link | Sequence[Link] | Iterable[Link]) -> Tree:
    """The tree of links. Raises ``ValueError`` for what is none."""
    return Tree((links,) if isinstance(links, Link) else tuple(links))


def _counted(most: int, least: int = 0) -> dict:
    facts = NumberFacts(low=least, high=most, decimal_places=0, nullable=False)
    return {"sdtype": "numerical", **words_of(facts)}
