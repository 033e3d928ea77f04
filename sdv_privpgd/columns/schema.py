"""The public description of a table, read from SDV's words."""

from collections.abc import Collection, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from sdv_privpgd.columns.bins import Interval, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.parsing import MOST_CATEGORIES, check_bounds, check_num_bins, describe
from sdv_privpgd.domain import Domain

_RANGE = ("range_min", "range_max")
_CELLS = (*_RANGE, "range_is_nullable", "num_bins", "cut_points", "frequencies")
_KEYS = {
    "numerical": (*_CELLS, "decimal_places", "increment"),
    "datetime": (*_CELLS, "datetime_format"),
    "categorical": ("range_values", "other_value", "range_is_nullable", "frequencies"),
    "ordinal": ("range_values", "other_value", "range_is_nullable", "frequencies"),
    "boolean": ("range_is_nullable",),
}
"""The sdtypes that are modelled, and the keys that describe each of them."""

MODELLED = tuple(_KEYS)


class PublicDomainError(ValueError):
    """Raised if a range or categories are needed that nobody declared public.

    >>> try:
    ...     Schema.from_sdv({"age": {"sdtype": "numerical"}})
    ... except PublicDomainError as error:
    ...     print(str(error)[:72])
    These columns need a public domain: 'age' (numerical: range_min and rang
    """


@dataclass(frozen=True)
class Schema:
    """The modelled columns of a table, in the order of the metadata. Public.

    Attributes:
        columns: The user's columns.
        differences: The differences of columns in order, which are attributes that no user sees.

    >>> schema = Schema.from_sdv(
    ...     {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}},
    ...     public_domain={
    ...         "age": {"range_min": 0, "range_max": 99, "decimal_places": 0, "num_bins": 10},
    ...         "ward": {"range_values": ["A", "B"]},
    ...     },
    ... )
    >>> schema.domain()  # each column has a code for missing
    Domain(attributes=('age', 'ward'), sizes=(11, 3))
    """

    columns: tuple[Column, ...]
    differences: tuple[Difference, ...] = ()

    @classmethod
    def from_sdv(
        cls,
        columns: Mapping[str, Mapping],
        *,
        keys: Collection[str] = (),
        public_domain: Mapping[str, Mapping] | None = None,
        num_bins: int = 32,
    ) -> "Schema":
        """The schema that SDV's metadata and a public domain describe.

        Args:
            columns: SDV's facts on each column. All of them are taken to be public: the caller has
                removed ranges that may have been detected from the data.
            keys: Columns that are primary or alternate keys. They are not modelled.
            public_domain: Facts on columns that take the place of the metadata's, in SDV's words
                and with ``num_bins`` for a column's number of cells.
            num_bins: The number of cells of columns that do not name theirs. More cells keep finer
                differences, but each has fewer rows against the noise; the benchmarks use 32.
                Numbers and dates may have ``cut_points`` instead, at which all cells but the first
                begin. If ``frequencies`` of these cells are given and there are many cells, they
                are merged to ``num_bins``.

        Raises:
            PublicDomainError: If modelled columns lack their range or categories.
            ValueError: If a fact is not what its key means, does not apply or contradicts another.
        """
        check_num_bins("num_bins", num_bins)
        described = _described(columns, keys, public_domain, num_bins)
        lacking = [name for name, facts in described.items() if _lacks(facts)]
        columns_read = [
            describe(name, facts) for name, facts in described.items() if name not in lacking
        ]
        if lacking:
            _raise_undeclared({name: described[name] for name in lacking})
        return cls(tuple(columns_read))

    @staticmethod
    def modelled(
        columns: Mapping[str, Mapping], keys: Collection[str], public_domain: Mapping[str, Mapping]
    ) -> list[str]:
        """The names of the columns that ``from_sdv`` models."""
        return list(_described(columns, keys, public_domain, 1))

    @staticmethod
    def undeclared(
        columns: Mapping[str, Mapping],
        *,
        keys: Collection[str] = (),
        public_domain: Mapping[str, Mapping] | None = None,
        num_bins: int = 32,
    ) -> dict[str, dict]:
        """The facts on each column that discovery should look into.

        These are the columns for which ``from_sdv`` would raise ``PublicDomainError``, and those
        with a declared domain so large that it matters where in it rows lie: many categories, or a
        range of more values than cells. An increment is left out, because a range is found first.

        Raises:
            ValueError: As ``from_sdv``.
        """
        described = _described(columns, keys, public_domain, num_bins)
        return {
            name: {key: fact for key, fact in facts.items() if key != "increment"}
            for name, facts in described.items()
            if _lacks(facts) or _many(facts) or _is_shapeless(name, facts)
        }

    @staticmethod
    def problems(
        columns: Mapping[str, Mapping], keys: Collection[str], public_domain: Mapping
    ) -> list[str]:
        """All that ``from_sdv`` would refuse because it names no column, or is no fact on it."""
        return list(_problems(public_domain, columns, _sdtypes(columns, keys)))

    @staticmethod
    def blank(facts: Mapping) -> list[str]:
        """The keys that have to be declared for a column and are not."""
        return [key for key in _needed(facts) if _is_empty(facts.get(key))] if _lacks(facts) else []

    @property
    def attributes(self) -> tuple[Column, ...]:
        """Everything that has codes: the columns, then the differences."""
        return (*self.columns, *(difference.column for difference in self.differences))

    def typed(self, dtypes: Mapping[str, Any]) -> "Schema":
        """The same columns, with these dtypes for the values of some of them."""
        columns = tuple(
            replace(column, dtype=dtypes[column.name]) if column.name in dtypes else column
            for column in self.columns
        )
        return replace(self, columns=columns)

    def domain(self) -> Domain:
        """The domain of the encoded table: one attribute a column, with its number of codes."""
        return Domain(
            tuple(column.name for column in self.attributes),
            tuple(column.size for column in self.attributes),
        )


def _described(
    columns: Mapping[str, Mapping],
    keys: Collection[str],
    public_domain: Mapping[str, Mapping] | None,
    num_bins: int,
) -> dict[str, dict]:
    """The facts on each modelled column, in SDV's words; declared facts replace the metadata's."""
    sdtypes = _sdtypes(columns, keys)
    public_domain = {} if public_domain is None else public_domain
    for problem in _problems(public_domain, columns, sdtypes):
        raise ValueError(problem)
    described = {
        name: {"num_bins": num_bins, **columns[name], **public_domain.get(name, {})}
        for name in sdtypes
    }
    for name, facts in described.items():
        for key in ("cut_points", "frequencies"):
            if facts.get(key) is not None and _lacks(facts):
                raise ValueError(
                    f"{key} of {name!r} are about cells that nobody declared. Declare "
                    f"{' and '.join(_needed(facts))} as well, or leave {key} out."
                )
        if _lacks(facts):
            check_bounds(name, facts)
    return described


def check_facts(public_domain: object) -> None:
    """Raises ``ValueError`` unless it maps columns to facts, whatever the facts are.

    >>> check_facts({"age": {"range_min": 0}})
    """
    for problem in _unmapped(public_domain):
        raise ValueError(problem)


def _unmapped(public_domain: object) -> Iterator[str]:
    """Sentences on everything that is not a mapping of columns to facts."""
    if not isinstance(public_domain, Mapping):
        yield (
            "public_domain must map columns to facts, as in {'age': {'range_min': 0, 'range_max': "
            f"120}}}}, got {public_domain!r}."
        )
        return
    for name, facts in public_domain.items():
        if not isinstance(facts, Mapping):
            yield (
                f"public_domain[{name!r}] must map words to values, as in {{'range_min': 0, "
                "'range_max': 120} for numbers and dates or {'range_values': ['A', 'B']} for "
                f"categories, got {facts!r}."
            )


def _sdtypes(columns: Mapping[str, Mapping], keys: Collection[str]) -> dict[str, str]:
    """The sdtypes of the modelled columns."""
    return {
        name: facts["sdtype"]
        for name, facts in columns.items()
        if facts.get("sdtype") in _KEYS and name not in keys
    }


def _problems(
    public_domain: Mapping, columns: Mapping[str, Mapping], sdtypes: Mapping[str, str]
) -> Iterator[str]:
    """Sentences on all that names no column, no modelled one, or is no fact on it."""
    yield from _unmapped(public_domain)
    if not isinstance(public_domain, Mapping):
        return
    for name, facts in public_domain.items():
        applicable = _KEYS.get(sdtypes.get(name, ""), ())
        if name not in columns:
            yield (
                f"public_domain names {name!r}, which is not a column of the metadata. Its "
                f"columns are {list(columns)!r}."
            )
        elif name not in sdtypes:
            yield (
                f"public_domain names {name!r}, which is not modelled: it is a key, or its sdtype "
                f"{columns[name].get('sdtype')!r} is none of {list(_KEYS)!r}. Remove it from "
                "public_domain, or correct the metadata."
            )
        elif isinstance(facts, Mapping):
            yield from (
                f"public_domain[{name!r}] has the key {key!r}, which says nothing about a "
                f"{sdtypes[name]} column. Use some of {list(applicable)!r}."
                for key in facts
                if key not in applicable
            )


def _needed(facts: Mapping) -> list[str]:
    """The keys that determine a column's cells."""
    return [key for key in _KEYS[facts["sdtype"]] if key in (*_RANGE, "range_values")]


def _lacks(facts: Mapping) -> bool:
    # A value for everything undeclared is a category, too.
    return facts.get("other_value") is None and any(
        _is_empty(facts.get(key)) for key in _needed(facts)
    )


def _many(facts: Mapping) -> bool:
    """Whether there are so many categories that it pays to ask how frequent each is."""
    values = facts.get("range_values") if "range_values" in _needed(facts) else None
    many = isinstance(values, Sized) and len(values) > MOST_CATEGORIES
    return many and facts.get("frequencies") is None


def _is_shapeless(name: str, facts: Mapping) -> bool:
    """Whether a declared range has more values than cells, and nothing says where rows lie."""
    if facts["sdtype"] not in ("numerical", "datetime") or facts.get("cut_points") is not None:
        return False
    cells = describe(name, facts).cells
    if isinstance(cells, Ticks):
        return cells.last - cells.first >= len(cells)
    return isinstance(cells, Interval) and cells.low < cells.high


def _raise_undeclared(lacking: Mapping[str, Mapping]) -> NoReturn:
    named = [
        f"{name!r} ({facts['sdtype']}: {' and '.join(_needed(facts))})"
        for name, facts in lacking.items()
    ]
    raise PublicDomainError(
        f"These columns need a public domain: {', '.join(named)}. Declare what is known "
        "without looking at the data with public_domain={column: {...}}, or, if the ranges in "
        "the metadata come from documentation and not from the data, pass "
        "public_metadata=True."
    )


def _is_empty(fact: Any) -> bool:
    return fact is None or (hasattr(fact, "__len__") and len(fact) == 0)
