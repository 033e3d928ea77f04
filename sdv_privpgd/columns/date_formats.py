"""What dates can say, by their declared format or range. Public.

It follows from declarations alone, so it is said before anything is spent.
"""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from sdv_privpgd.columns.dates import instants, texts_of, timestamps, to_ticks
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.columns.units import DAYS, directives, has_zone, unit_of_format, years_of

_SPANS = {
    "yxDF": ("1969-01-01", "2068-12-31T23:59:59.999999"),
    "mbBjUW": ("2000-01-01", "2000-12-31T23:59:59.999999"),
    "d": ("2000-01-01", "2000-01-31T23:59:59.999999"),
    "Hp": ("2000-01-01", "2000-01-01T23:59:59.999999"),
    "I": ("2000-01-01", "2000-01-01T11:59:59.999999"),
    "M": ("2000-01-01", "2000-01-01T00:59:59.999999"),
    "S": ("2000-01-01", "2000-01-01T00:00:59.999999"),
}
"""What formats write that say no whole year, by the directives of their coarsest part."""

_CUT = "\ue000"
"""Behind microseconds of which three digits are cut off."""


def write_dates(
    ticks: np.ndarray,
    unit: str,
    datetime_format: str | None,
    utc: bool,
    far: bool = False,
    offset: str | None = None,
) -> np.ndarray | pd.DatetimeIndex:
    """The dates at ticks, counted in units from 1970: strings in the format, or ``timestamps``.

    In strings milliseconds have three digits, and the ``offset`` from UTC is written as it is.
    """
    if datetime_format is None:
        return timestamps(ticks, unit, utc, far)
    # strftime is slow, so it is called once for each distinct date.
    distinct, positions = np.unique(ticks, return_inverse=True)
    index = timestamps(distinct, unit, utc, far)
    if offset is not None:
        if unit not in DAYS:
            index = index.tz_convert("UTC" if offset == "Z" else offset)
        datetime_format = datetime_format.replace("%z", offset)
    if unit == "ms":
        datetime_format = datetime_format.replace("%f", "%f" + _CUT)
    texts = texts_of(index, datetime_format)
    if unit == "ms":
        texts = np.array([text.replace("000" + _CUT, "") for text in texts], dtype=object)
    return texts[positions]


def span_of_format(datetime_format: str | None) -> tuple[int, int] | tuple[None, None]:
    """The first and the last instant of a format that does not say the whole year, if it is one.

    Raises ``ValueError`` for one that leaves out a part between others, or says weekdays alone.
    """
    if datetime_format is None:
        return None, None
    unit, said = unit_of_format(datetime_format), directives(datetime_format)
    whole_year, _ = years_of(datetime_format)
    spans = {"YGcs": ("2020-02-29T11:59:59.999999",)} if whole_year else _SPANS
    span = next((span for letters, span in spans.items() if not said.isdisjoint(letters)), ())
    ends = np.array(span, dtype=f"datetime64[{unit}]")
    if not span or not survive_writing(ends.astype(np.int64), unit, datetime_format):
        raise ValueError(
            f"datetime_format={datetime_format!r} leaves out a part of the date, or has one twice "
            "or a directive that is not read, so that what it writes cannot be read again. Name "
            "each part once (%T is %H:%M:%S), or declare a column of categories."
        )
    if whole_year:
        return None, None
    low, high = ends.astype("datetime64[ns]").astype(np.int64).tolist()
    return low, high


def survive_writing(ticks: np.ndarray, unit: str, datetime_format: str) -> bool:
    """Says whether public dates, counted in units from 1970, are the same when read again."""
    try:
        with quiet():
            texts = write_dates(ticks, unit, datetime_format, has_zone(datetime_format))
            read, _ = instants(pd.Series(texts, dtype=object), datetime_format)
    except (ValueError, re.error):  # a week without a day, no directive, and one twice
        return False
    return np.array_equal(to_ticks(read, unit), ticks)


def on_dates(facts: Mapping[str, ColumnFacts]) -> list[str]:
    """Sentences on dates that are counted in days because their ends are, and written in UTC.

    Of days nothing is said where a format is declared, which says what is written, and where both
    ends are Python's ``date``, which has no time; nor of what an earlier fit found
    (``frequencies``).
    """
    dates = {
        name: each
        for name, each in facts.items()
        if isinstance(each, DateFacts) and not each.frequencies
    }
    named = [
        name
        for name, each in dates.items()
        if not (each.lacks_domain or each.of_days or each.datetime_format) and each.unit == "D"
    ]
    in_utc = [n for n, e in dates.items() if has_zone(e.datetime_format or "") and not e.offset]
    of_utc = (
        f"The moments of {in_utc!r} come back in UTC: their datetime_format has an offset from it, "
        "and which one each has is not kept. A dtype with a named time zone keeps that. Where both "
        "ends of a declared range have one offset, all are written with it."
    )
    of_days = (
        f"The dates of {named!r} are counted in days, as their declared ends are: times of the day "
        "would be lost. If they have some, declare an end with one, such as '2024-12-31 23:59:59'; "
        "if not, ends that are datetime.date say so, or, where dates are text, their "
        "datetime_format."
    )
    return [of_utc] * bool(in_utc) + [of_days] * bool(named)
