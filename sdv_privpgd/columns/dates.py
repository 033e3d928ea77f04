"""Dates as whole numbers: reading the cells of a private column, and writing dates again.

Privacy: cells are read one by one and silently, as in ``sdv_privpgd.columns.scalars``.
"""

import re
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.scalars import cells, filled, plain, quiet, whole

EARLIEST = int(np.datetime64("1678-01-01", "ns"))
LATEST = np.iinfo(np.int64).max
"""Between these instants dates are read; an earlier or later one is read as the nearest.

The first is the start of the first year that int64 nanoseconds hold: NumPy's casts to coarser
units overflow in the months before it.
"""

_EPOCH = datetime(1970, 1, 1)
_DAY_OF = 86_400 * 10**9

_DAY = "[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}|[0-9]{4}(0[1-9]|1[0-2])[0-9]{2}"
_TIME = "([01][0-9]|2[0-3])(:?[0-5][0-9](:?[0-5][0-9]([.,][0-9]+)?)?)?"
_ZONE = " ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_ISO = re.compile(f"({_DAY})([T ]{_TIME}({_ZONE})?)?|[0-9]{{4}}(-(0[1-9]|1[0-2]))?")


def instants(series: pd.Series, datetime_format: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Nanoseconds since 1970 in UTC, int64, from ``EARLIEST`` to ``LATEST``, and which are missing.

    Dates without a time zone are taken to be in UTC. Strings are read in the format, or, without
    one, in ISO 8601 alone: the year first, as in ``2024-01-31`` or ``2024-01-31 12:30``. Any other
    text is missing then, because ``05.01.2024`` may be in May or in January. Whole numbers are read
    as the string of their digits if there is a format (20240131 in ``%Y%m%d``), and are otherwise
    missing: their unit is unknown.
    """
    if series.dtype.kind == "M" and not isinstance(series.dtype, pd.ArrowDtype):
        naive = series.dt.tz_convert(None) if series.dt.tz is not None else series
        moments = naive.to_numpy()
        return _nanoseconds(moments), np.isnat(moments)
    found = [_text_or_instant(cell, datetime_format is not None) for cell in cells(series)]
    instant_of = _read_texts({cell for cell in found if type(cell) is str}, datetime_format)
    return filled([instant_of[cell] if type(cell) is str else cell for cell in found], np.int64)


def to_ticks(moments: np.ndarray, unit: str) -> np.ndarray:
    """Nanoseconds since 1970, int64, as whole units since 1970, rounded down."""
    return moments.astype("datetime64[ns]").astype(f"datetime64[{unit}]").astype(np.int64)


def write_dates(
    ticks: np.ndarray, unit: str, datetime_format: str | None, utc: bool
) -> np.ndarray | pd.DatetimeIndex:
    """The dates at ticks, counted in units from 1970: strings in the format, or timestamps."""
    if datetime_format is None:
        return _timestamps(ticks, unit, utc)
    # strftime is slow, so it is called once for each distinct date.
    distinct, positions = np.unique(ticks, return_inverse=True)
    texts = _timestamps(distinct, unit, utc).strftime(datetime_format)
    return texts.to_numpy(dtype=object)[positions]


def is_aware(dtype: Any) -> bool:
    """Whether all dates of a column of the dtype carry a time zone, which is public."""
    return zone_of(dtype) is not None


def zone_of(dtype: Any) -> Any:
    """The time zone of a dtype's dates, which is public; ``None`` without one."""
    return getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)


def are_aware(series: pd.Series) -> np.ndarray:
    """Which of a private column's dates carry a time zone, bool; text counts as having none."""
    if series.dtype.kind == "M":
        return np.full(len(series), zone_of(series.dtype) is not None)
    known = (datetime, pd.Timestamp)  # of others no code is called
    return np.array(
        [type(cell) in known and cell.tzinfo is not None for cell in cells(series)], bool
    )


def on_the_clock(moments: np.ndarray, zone: Any) -> np.ndarray:
    """Nanoseconds since 1970 in UTC as those of what a clock in a zone shows."""
    inside = np.clip(moments, EARLIEST + _DAY_OF, LATEST - _DAY_OF)
    shown = pd.DatetimeIndex(inside.astype("datetime64[ns]")).tz_localize("UTC").tz_convert(zone)
    return shown.tz_localize(None).to_numpy().astype(np.int64)


def in_zone(dates: pd.Series, zone: Any) -> pd.Series:
    """What a clock in a zone shows as moments of that zone; what it skips is the next hour."""
    plain = pd.DatetimeIndex(dates).tz_localize(None)
    twice = np.zeros(len(plain), dtype=bool)  # of the two times it shows, the second one
    return pd.Series(plain.tz_localize(zone, ambiguous=twice, nonexistent="shift_forward"))


def has_zone(datetime_format: str) -> bool:
    """Whether dates that are written in the format carry a time zone."""
    return re.search("%[zZ]", datetime_format) is not None


def survive_writing(ticks: np.ndarray, unit: str, datetime_format: str) -> bool:
    """Says whether public dates, counted in units from 1970, are the same when read again."""
    with quiet():
        texts = write_dates(ticks, unit, datetime_format, has_zone(datetime_format))
        read, _ = instants(pd.Series(texts, dtype=object), datetime_format)
    return np.array_equal(to_ticks(read, unit), ticks)


def precisions(series: pd.Series) -> np.ndarray:
    """The precision of each date, int64: 0 for days, 1 for seconds, 2 for finer, 3 for missing.

    The dates are read in UTC, as ``instants`` reads them without a format.
    """
    moments, missing = instants(series, None)
    fine = np.where(moments % 10**9 == 0, 1, 2)
    fine[moments % (86_400 * 10**9) == 0] = 0
    return np.where(missing, 3, fine)


def _timestamps(ticks: np.ndarray, unit: str, utc: bool) -> pd.DatetimeIndex:
    index = pd.DatetimeIndex(ticks.astype(f"datetime64[{unit}]").astype("datetime64[ns]"))
    return index.tz_localize("UTC") if utc else index


def _text_or_instant(cell: Any, digits_are_text: bool) -> str | int | None:
    value = plain(cell)
    if isinstance(value, str):
        return value
    if value is None:
        return _instant(cell)
    if digits_are_text and not isinstance(value, bytes) and value == (number := whole(value)):
        return str(number)
    return None


def _instant(cell: Any) -> int | None:
    """Nanoseconds since 1970 in UTC of a date or a moment; ``None`` for anything else."""
    kind = type(cell)
    if cell is pd.NaT or not issubclass(kind, date | np.datetime64):
        return None
    try:
        if issubclass(kind, pd.Timestamp):
            return _instant_of_timestamp(cell)
        if issubclass(kind, np.datetime64):
            return None if np.isnat(cell) else int(_nanoseconds(np.array([cell]))[0])
        if not issubclass(kind, datetime):
            cell = datetime(cell.year, cell.month, cell.day)
        since = cell.replace(tzinfo=None) - _EPOCH
        # Python integers: a time zone may move the first or the last day out of the calendar.
        microseconds = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        if (offset := cell.utcoffset()) is not None:
            microseconds -= (offset.days * 86_400 + offset.seconds) * 10**6 + offset.microseconds
    except Exception:  # noqa: BLE001 - the cell brings its own time zone's code.
        return None
    return min(max(1000 * microseconds, EARLIEST), LATEST)


def _instant_of_timestamp(timestamp: pd.Timestamp) -> int:
    """Nanoseconds since 1970 in UTC, clipped to ``EARLIEST`` and ``LATEST``."""
    try:
        return max(timestamp.value, EARLIEST)  # ``value`` is in UTC, whatever the time zone.
    except OverflowError:
        return LATEST if timestamp.year > _EPOCH.year else EARLIEST


def _nanoseconds(moments: np.ndarray) -> np.ndarray:
    """``datetime64`` of any unit as int64 nanoseconds from ``EARLIEST`` to ``LATEST``."""
    if np.datetime_data(moments.dtype)[0] in ("ps", "fs", "as"):
        return moments.astype("datetime64[ns]").astype(np.int64)
    first = np.datetime64(EARLIEST, "ns").astype(moments.dtype)
    last = np.datetime64(LATEST, "ns").astype(moments.dtype)
    nanoseconds = np.maximum(moments, first).astype("datetime64[ns]").astype(np.int64)
    return np.where(moments > last, LATEST, np.maximum(nanoseconds, EARLIEST))


def _read_texts(texts: set[str], datetime_format: str | None) -> dict[str, int | None]:
    """The instant of each string."""
    # pandas reads these words as the current time.
    listed = [text for text in texts if text.strip().lower() not in ("now", "today")]
    instant_of: dict[str, int | None] = dict.fromkeys(texts)
    if datetime_format is None:
        # Strings are read one by one: read together, one without a time zone takes the last one's.
        instant_of.update(
            {text: _read_text(text, None) for text in listed if _ISO.fullmatch(text.strip())}
        )
        return instant_of
    read = pd.to_datetime(
        pd.Index(listed, dtype=object), format=datetime_format, errors="coerce", utc=True
    )
    moments = read.tz_convert(None).to_numpy()
    instant_of.update(zip(listed, _nanoseconds(moments).tolist(), strict=True))
    for position in np.flatnonzero(np.isnat(moments)):
        instant_of[listed[position]] = _read_text(listed[position], datetime_format)
    return instant_of


def _read_text(text: str, datetime_format: str | None) -> int | None:
    """The instant of a single string, also of one outside pandas' range."""
    try:
        moment = (
            pd.Timestamp(text.strip())
            if datetime_format is None
            else datetime.strptime(text, datetime_format)
        )
    except Exception:  # noqa: BLE001 - other people's parsers; what they raise is about the cell.
        return None
    return _instant(moment)
