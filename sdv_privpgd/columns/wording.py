"""Facts written in SDV's words, as people declare them: the way back from ``parsing``. Public."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sdv_privpgd.columns.dates import write_dates
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts


def words_of(facts: ColumnFacts | None) -> dict[str, Any]:
    """The facts that are known, by SDV's words; reading them again gives the same facts.

    Dates become text: in their format, or in ISO 8601. So a date should not be finer than what its
    format writes. Whether dates have a format is always said. Frequencies of categories are read
    beside these categories alone. Of ``None`` there are no words.
    """
    if facts is None:
        return {}
    return {**_own_words(facts), **_known({"missing_codes": _listed(facts.missing_codes)})}


def _own_words(facts: ColumnFacts) -> dict[str, Any]:
    if isinstance(facts, NumberFacts):
        written = facts.number_format
        own = {
            "decimal_places": facts.decimal_places,
            "increment": facts.increment,
            "number_format": None if written is None else written.example,
        }
        return _known({**own, **_range(facts, lambda numbers: numbers)})
    if isinstance(facts, DateFacts):
        written = partial(_dates, facts)
        form = None if facts.of_times else facts.datetime_format
        return {"datetime_format": form, **_known(_range(facts, written))}
    if isinstance(facts, CategoryFacts):
        return _known(
            {
                "range_values": _listed(facts.values),
                "other_value": facts.other,
                "range_is_nullable": facts.nullable,
                "frequencies": _listed(facts.frequencies),
                "groups": None if facts.groups is None else dict(facts.groups),
                "prefix": facts.prefix,
            }
        )
    false, true = facts.values or (None, None)
    return _known({"range_is_nullable": facts.nullable, "true_value": true, "false_value": false})


def _range(facts: NumberFacts | DateFacts, written: Callable) -> dict[str, Any]:
    low, high = (None if end is None else written([end])[0] for end in (facts.low, facts.high))
    return {
        "range_min": low,
        "range_max": high,
        "range_is_nullable": facts.nullable,
        "cut_points": None if facts.cuts is None else list(written(facts.cuts)),
        "frequencies": _listed(facts.frequencies),
        "num_bins": facts.num_bins,
    }


def _dates(facts: DateFacts, moments: Sequence[int]) -> list[str] | list[int]:
    """Moments as they are declared, with an offset if they have a time zone."""
    ticks = np.array(moments, dtype=np.int64)
    written = write_dates(ticks, "ns", facts.datetime_format, facts.utc)
    if facts.of_numbers and facts.datetime_format:
        return [*map(int, written)]
    return [str(date).removesuffix(" 00:00:00") for date in written]


def _listed(facts: Sequence | None) -> list | None:
    return None if facts is None else list(facts)


def _known(words: dict[str, Any]) -> dict[str, Any]:
    return {word: fact for word, fact in words.items() if fact is not None}
