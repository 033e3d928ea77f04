"""Typed declarations of columns: the facts of ``public_domain``, with named arguments.

Each is a mapping of facts in SDV's words, so it can be used wherever such a dictionary can. Write
it from documentation, never from the data.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from typing import Any, ClassVar

from sdv_privpgd.base.arguments import check_flag, shown
from sdv_privpgd.columns.keys import keys_of
from sdv_privpgd.columns.parser import read_facts

_WORDS = {
    "nullable": "range_is_nullable", "values": "range_values", "other": "other_value",
    "true": "true_value", "false": "false_value",
}  # fmt: skip
"""SDV's words, where arguments have shorter names."""

_COPIES = {"values": list, "cut_points": list, "missing_codes": list, "groups": dict}


def _copied(name: str, fact: Any) -> Any:
    """A list or dictionary of its own. What is none stays, as a text does, and is refused."""
    if name not in _COPIES or isinstance(fact, str):
        return fact
    is_many = isinstance(fact, Mapping if name == "groups" else Iterable)
    return _COPIES[name](fact) if is_many else fact


@dataclass(frozen=True, init=False, repr=False, eq=False)
class _Declared(Mapping):
    """Facts on a column, without those that were not given. They were read, and do not change."""

    sdtype: ClassVar[str]
    words: Mapping[str, Any]

    def _read(self, given: Mapping[str, Any]) -> None:
        """Takes the arguments of a declaration, in their order."""
        words = {
            _WORDS.get(name, name): _copied(name, fact)
            for name, fact in given.items()
            if name != "self" and fact is not None
        }
        read_facts(type(self).__name__, {"sdtype": self.sdtype, **words})
        object.__setattr__(self, "words", words)

    def __getitem__(self, key: str) -> Any:
        return self.words[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return repr(self.words)


class Numerical(_Declared):
    """A column of numbers.

    What is left out is found privately, with a part of the budget. A wide range costs next to
    nothing (guide, "Declaring columns"); values outside it are clipped.

    Args:
        range_min: The smallest number that it may hold.
        range_max: The largest one.
        decimal_places: The number of decimal places it is written with; 0 for whole numbers, 2 for
            money.
        nullable: Whether values may be missing; by default they may.
        num_bins: The number of cells it is counted in; by default the fit's ``num_bins``, or as
            many as the noise allows, 4 to 32. More are finer, and hold fewer rows each.
        increment: A whole number that all values are multiples of.
        cut_points: Numbers at which the cells begin, all but the first: where published tables
            are cut, or a codebook is.
        number_format: How text in the table writes 1234.5, such as ``'$1,234.50'``, ``'1.234,5 %'``
            or ``'1234 kg'``; or -1234.5, such as ``'(1,234.50)'``. Numbers are read and written
            like this, and ``decimal_places`` follow from it. Cells that are numbers are read, too.
        missing_codes: Values of cells that stand for missing, such as ``[-9, "NA"]``: numbers are
            found as numbers, text as it is written.

    >>> Numerical(0, 120, decimal_places=0)
    {'range_min': 0, 'range_max': 120, 'decimal_places': 0}
    >>> Numerical(-10_000, 10_000, number_format="($1,234.50)")
    {'range_min': -10000, 'range_max': 10000, 'number_format': '($1,234.50)'}
    """

    sdtype = "numerical"

    def __init__(
        self,
        range_min: float | None = None,
        range_max: float | None = None,
        *,
        decimal_places: int | None = None,
        nullable: bool | None = None,
        num_bins: int | None = None,
        increment: int | None = None,
        cut_points: Sequence[float] | None = None,
        number_format: str | None = None,
        missing_codes: Sequence | None = None,
    ) -> None:
        self._read(locals())


class Datetime(_Declared):
    """A column of dates or moments.

    What is left out is found privately, with a part of the budget; dates outside the range are
    clipped. Text is read in the format alone, or without one in ISO 8601 (``2024-01-31``, with or
    without a time). Other text counts as missing: ``05.01.2024`` may be in January or in May.

    Args:
        range_min: The earliest one, as a date or as text in the format, or without one in ISO.
        range_max: The latest one.
        datetime_format: The format they are written in, if they are text.
        nullable: Whether values may be missing; by default they may.
        num_bins: The number of cells it is counted in; by default the fit's ``num_bins``, or as
            many as the noise allows, 4 to 32. More are finer, and hold fewer rows each.
        cut_points: Dates at which the cells begin, all but the first.
        missing_codes: Values of cells that stand for missing, such as ``["1900-01-01"]``.

    >>> Datetime("2020-01-01", "2024-12-31")
    {'range_min': '2020-01-01', 'range_max': '2024-12-31'}
    """

    sdtype = "datetime"

    def __init__(
        self,
        range_min: Any = None,
        range_max: Any = None,
        *,
        datetime_format: str | None = None,
        nullable: bool | None = None,
        num_bins: int | None = None,
        cut_points: Sequence[Any] | None = None,
        missing_codes: Sequence | None = None,
    ) -> None:
        self._read(locals())


class TimeOfDay(Datetime):
    """A column of times of the day: of ``datetime.time`` objects, or of text.

    It is a ``Datetime`` over one day. Without a format values come back as ``datetime.time``, and
    text such as ``08:30`` or ``08:30:15`` is read as well.

    Args:
        range_min: The earliest one, as ``datetime.time`` or as text.
        range_max: The latest one. If both ends are whole minutes, as those of
            ``TimeOfDay("00:00", "23:59")``, times are counted in minutes, otherwise in seconds,
            unless noisy answers say that all are whole minutes.
        **others: As for ``Datetime``. With ``datetime_format`` values come back as text in it.

    >>> TimeOfDay(nullable=False)
    {'range_min': '00:00:00', 'range_max': '23:59:59', 'range_is_nullable': False}
    """

    def __init__(
        self, range_min: Any = "00:00:00", range_max: Any = "23:59:59", **others: Any
    ) -> None:
        form = others.get("datetime_format")
        try:
            ends = [time.fromisoformat(str(end)) for end in (range_min, range_max)]
        except ValueError as error:
            raise ValueError(
                "range_min and range_max of TimeOfDay must be datetime.time or text such as "
                f"'08:30', got {shown(range_min)} and {shown(range_max)}."
            ) from error
        written = (str(end) if form is None else end.strftime(form) for end in ends)
        super().__init__(*written, **others)


class Categorical(_Declared):
    """A column of categories without an order.

    Categories that are left out are found privately: those that few rows have become ``'other'``.
    Declared ones cost nothing. Name an ``other`` and put rare ones together: they drown in the
    noise (guide, "Declaring columns").

    Args:
        values: The categories.
        other: The value that replaces all values that are not declared; by default they are
            missing.
        nullable: Whether values may be missing; by default they may. Beware of ``False`` without an
            ``other``: a cell that is none of ``values`` then counts as the first of them, and
            nothing tells you. Say ``False`` only if the codebook is surely complete.
        groups: The group of each code, such as the chapter of a diagnosis. The column is modelled
            and comes out as groups, which are the categories: noise can pay for few. A code in no
            group is none of the categories. The map is public: take it from a classification, and
            not from the codes that the table has.
        prefix: So many first characters of a code are its group, or its code in ``groups``.
        missing_codes: Values of cells that stand for missing, such as ``[9, "NA"]``: numbers are
            found as numbers, text as it is written.

    >>> Categorical(["A", "B"], other="other")
    {'range_values': ['A', 'B'], 'other_value': 'other'}
    >>> Categorical(groups={"A": "I", "B": "I", "C": "II"}, prefix=1, other="other")["prefix"]
    1
    """

    sdtype = "categorical"

    def __init__(
        self,
        values: Sequence | None = None,
        *,
        other: Any = None,
        nullable: bool | None = None,
        groups: Mapping | None = None,
        prefix: int | None = None,
        missing_codes: Sequence | None = None,
    ) -> None:
        self._read(locals())


class Ordinal(Categorical):
    """A column of categories in the order in which they are given.

    >>> Ordinal(["low", "middle", "high"], nullable=False)
    {'range_values': ['low', 'middle', 'high'], 'range_is_nullable': False}
    """

    sdtype = "ordinal"


class Key(_Declared):
    """A column of keys, for ``fit_table``: made anew for each row that is sampled, all different.

    The keys of the table are not read and cost nothing.

    Args:
        regex_format: The pattern that they are written in, a regular expression of characters,
            classes, groups, alternatives and bounded repeats; by default they are 0, 1, 2 and so
            on.
        repeats: Whether several rows of the table may have the same, as visits of one patient. Keys
            are made anew all the same, and it is said that a row is protected, not the patient.

    Raises:
        ValueError: For a pattern that cannot be counted up.

    >>> Key("[A-Z]{2}[0-9]{4}")
    {'regex_format': '[A-Z]{2}[0-9]{4}'}
    """

    sdtype = "id"

    def __init__(self, regex_format: str | None = None, *, repeats: bool = False) -> None:
        _ = keys_of("Key", regex_format)
        words: dict[str, Any] = {} if regex_format is None else {"regex_format": regex_format}
        if check_flag("repeats", repeats):
            words["repeats"] = True
        object.__setattr__(self, "words", words)


class Boolean(_Declared):
    """A column of true and false.

    Args:
        true: What stands for true, such as ``'yes'``, written exactly so; by default true, 1 and
            the word do.
        false: What stands for false.
        nullable: Whether values may be missing; by default they may. Beware of
            ``False``: a cell that is neither then counts as false, and nothing tells you.
        missing_codes: Values of cells that stand for missing.

    >>> Boolean(nullable=False)
    {'range_is_nullable': False}
    >>> Boolean("yes", "no")
    {'true_value': 'yes', 'false_value': 'no'}
    """

    sdtype = "boolean"

    def __init__(
        self,
        true: Any = None,
        false: Any = None,
        *,
        nullable: bool | None = None,
        missing_codes: Sequence | None = None,
    ) -> None:
        self._read(locals())
