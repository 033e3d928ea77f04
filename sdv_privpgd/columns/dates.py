"""Dates as whole numbers: reading the cells of a private column, and writing dates again.

Privacy: cells are read one by one and silently, as in ``sdv_privpgd.columns.scalars``.
"""

import contextlib
import re
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.scalars import cells, distinct, filled, plain, whole
from sdv_privpgd.columns.units import COARSE, DAYS, digits_of, has_zone, years_of, zone_of

_DAY_OF = 86_400 * 10**9

EARLIEST, LATEST = (int(np.datetime64(day, "ns")) for day in ("1678-01-01", "2262-04-11"))
"""Between these days, which int64 nanoseconds hold, dates are read; all others are read as them."""

BEYOND = EARLIEST + _DAY_OF, LATEST - _DAY_OF
"""The first and the last day of a range stand for all beyond: they are written as ``_FAR``."""

CLOCKS = "%H:%M:%S", "%H:%M"
"""The formats of times of the day where none is declared. In both, text may have seconds or not."""

_EPOCH, _IN_2000 = datetime(1970, 1, 1), date(2000, 1, 1)
_FAR = [np.datetime64(day, "us") for day in ("0001-01-01", "9999-12-31")]

_DAY = "[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}|[0-9]{4}(0[1-9]|1[0-2])[0-9]{2}"
_TIME = "([01][0-9]|2[0-3])(:?[0-5][0-9](:?[0-5][0-9]([.,][0-9]+)?)?)?"
_ZONE = "(?P<zone>Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_ISO = re.compile(f"({_DAY})([T ]{_TIME}( ?{_ZONE})?)?|[0-9]{{4}}(-(0[1-9]|1[0-2]))?")


def instants(
    series: pd.Series, datetime_format: str | None, *, as_shown: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Nanoseconds since 1970 in UTC, int64, from ``EARLIEST`` to ``LATEST``, and which are missing.

    Dates without a time zone are taken to be in UTC. Strings are read in the format, or, without
    one, in ISO 8601 alone: the year first, as in ``2024-01-31`` or ``2024-01-31 12:30``. Any other
    text is missing then, because ``05.01.2024`` may be in May or in January. Whole numbers are read
    as the string of their digits, with zeros in front, if there is a format that writes so many
    digits and nothing else (20240131 in ``%Y%m%d``, 930 in ``%H%M``), and are otherwise missing:
    their unit is unknown. In a format without a year dates are in 2000, and times of the
    day are read as well. Of a date that is no text counts what such a format writes of it, or one
    with two digits of a year, which are those of 1969 to 2068. ``as_shown`` are what a cell says
    before its offset from UTC.
    """
    is_whole, year = years_of(datetime_format)
    if is_whole and series.dtype.kind == "M" and not isinstance(series.dtype, pd.ArrowDtype):
        if series.dt.tz is not None:
            series = series.dt.tz_localize(None) if as_shown else series.dt.tz_convert(None)
        moments = series.to_numpy()
        return _nanoseconds(moments), np.isnat(moments)
    listed, places = distinct(series)
    if as_shown and (datetime_format or "%z").endswith("%z"):
        listed = [_shown(cell, datetime_format) for cell in listed]
    found = [_text_or_instant(cell, datetime_format, year) for cell in listed]
    if datetime_format is not None and not is_whole:
        found = _as_written(found, datetime_format, year)
        datetime_format += year and " %Y"
    instant_of = _read_texts({cell for cell in found if type(cell) is str}, datetime_format)
    read = [instant_of[cell] if type(cell) is str else cell for cell in found]
    moments, missing = filled(read, np.int64)
    return moments[places], missing[places]


def to_ticks(moments: np.ndarray, unit: str) -> np.ndarray:
    """Nanoseconds since 1970, int64, as whole units since 1970, rounded down."""
    return moments.astype("datetime64[ns]").astype(f"datetime64[{unit}]").astype(np.int64)


def are_whole(moments: np.ndarray, unit: str) -> np.ndarray:
    """Which moments, in nanoseconds since 1970, are whole units, bool; those of ``BEYOND`` are."""
    exact = moments.astype("M8[ns]")
    return (exact == exact.astype(f"M8[{unit}]")) | np.isin(moments, BEYOND)


def _shown(cell: Any, datetime_format: str | None) -> Any:
    """A date without its offset from UTC, or in UTC with a format; anything else as it is."""
    if any(type(cell) is kind for kind in (datetime, pd.Timestamp)):  # no code of others is called
        return cell if cell.tzinfo is None else cell.replace(tzinfo=None)
    if not isinstance(text := plain(cell), str):
        return cell
    if datetime_format is not None:
        return re.sub(f"{_ZONE}$", "+0000", text.strip())
    said = _ISO.fullmatch(text.strip())
    return cell if said is None or said["zone"] is None else said.string[: said.start("zone")]


def _is_aware(cell: Any, datetime_format: str | None) -> bool:
    if datetime_format is not None and isinstance(plain(cell), str):
        return has_zone(datetime_format)
    return _shown(cell, None) is not cell


def on_the_clock(moments: np.ndarray, zone: Any) -> np.ndarray:
    """Nanoseconds since 1970 in UTC as what a clock in a zone shows, but those of ``BEYOND``."""
    shown = pd.DatetimeIndex(moments.astype("datetime64[ns]")).tz_localize("UTC").tz_convert(zone)
    local = shown.tz_localize(None).to_numpy().astype(np.int64)
    return np.where(np.isin(moments, BEYOND), moments, local)


def in_zone(dates: Any, zone: Any) -> pd.DatetimeIndex:
    """What a clock in a zone shows as moments of that zone; what it skips is the next hour."""
    plain = pd.DatetimeIndex(dates).tz_localize(None)
    twice = np.zeros(len(plain), dtype=bool)  # of the two times it shows, the second one
    return plain.tz_localize(zone, ambiguous=twice, nonexistent="shift_forward")


def by_zone(
    moments: np.ndarray, series: pd.Series, datetime_format: str | None, zone: Any, clock: Any
) -> np.ndarray:
    """A private column's moments in UTC, where those without a time zone are of this one.

    With a clock they are what it shows; else they stay nanoseconds since 1970.
    """
    aware: Any = zone_of(series.dtype) is not None
    if series.dtype.kind != "M":
        aware = np.array([_is_aware(cell, datetime_format) for cell in cells(series)], bool)
    if clock is not None:
        return np.where(aware, on_the_clock(moments, clock), moments)
    meant = in_zone(moments.astype("datetime64[ns]"), zone).tz_convert(None).to_numpy()
    meant = np.clip(meant.astype(np.int64), *BEYOND)
    return np.where(aware | np.isin(moments, BEYOND), moments, meant)


def precisions(series: pd.Series, datetime_format: str | None = None) -> np.ndarray:
    """The place in ``COARSE`` of the first unit that each date is whole in, int64.

    It is one after the last for dates that are whole in none, and two for missing ones; what lies
    beyond the calendar is whole in all. The dates are read as ``instants`` reads them. What a date
    shows says whether it has a time of the day, and where the dtype has a time zone, which one.
    """
    shown, missing = instants(series, datetime_format, as_shown=True)
    is_same = zone_of(series.dtype) is not None or not has_zone(datetime_format or "%z")
    moments = shown if is_same else instants(series, datetime_format)[0]
    moments, shown = np.clip([moments, shown], *BEYOND)
    whole, rest = [are_whole(shown if e in DAYS else moments, e) for e in COARSE], len(COARSE)
    return np.select([missing, *whole], [rest + 1, *range(rest)], rest)


def timestamps(ticks: np.ndarray, unit: str, utc: bool, far: bool) -> pd.DatetimeIndex:
    """The dates at ticks, counted in units from 1970.

    With ``far`` those of ``BEYOND`` are what they stand for, and timestamps are in microseconds.
    """
    moments = ticks.astype(f"datetime64[{unit}]").astype("datetime64[ns]")
    if far:
        first, last = to_ticks(np.array([BEYOND[0] + _DAY_OF - 1, BEYOND[1]]), unit)
        moments = np.select([ticks <= first, ticks >= last], _FAR, moments.astype("datetime64[us]"))
    index = pd.DatetimeIndex(moments)
    return index.tz_localize("UTC") if utc else index


def texts_of(index: pd.DatetimeIndex, datetime_format: str) -> np.ndarray:
    """The dates as strings in the format."""
    texts = index.strftime(datetime_format).to_numpy(dtype=object, copy=True)
    early = index.to_numpy("M8[s]") < np.datetime64("1000")  # it leaves out their zeros
    texts[early] = pd.DatetimeIndex(index[early]).strftime(datetime_format.replace("%Y", "0001"))
    return texts


def _text_or_instant(cell: Any, datetime_format: str | None, year: str) -> str | int | None:
    value = plain(cell)
    if datetime_format in CLOCKS and isinstance(value, str):
        with contextlib.suppress(ValueError):
            cell, value = time.fromisoformat(value.strip()), None
    if isinstance(value, str):
        return value
    if value is None:
        is_time = type(cell) is time and year
        return _instant(datetime.combine(_IN_2000, cell.replace(tzinfo=None)) if is_time else cell)
    digits = digits_of(datetime_format or "")
    if digits is None or isinstance(value, bytes | bool) or value != (number := whole(value)):
        return None
    return str(number).zfill(digits)


def _as_written(found: list, datetime_format: str, year: str) -> list[str | None]:
    """Text as it is, and what a format writes of instants, with a year where none is said."""
    moments = np.array([each for each in found if type(each) is int], dtype=np.int64)
    is_utc = has_zone(datetime_format)
    texts = iter(texts_of(timestamps(moments, "ns", is_utc, far=True), datetime_format))
    said = (next(texts) if type(each) is int else each for each in found)
    return [None if each is None else each + year for each in said]


def _instant(cell: Any) -> int | None:
    """Nanoseconds since 1970 in UTC of a date or a moment; ``None`` for anything else."""
    kind = type(cell)
    if cell is pd.NaT or not issubclass(kind, date | np.datetime64):
        return None
    with contextlib.suppress(Exception):  # the cell brings its own time zone's code
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
        return _clipped(1000 * microseconds)
    return None


def _instant_of_timestamp(timestamp: pd.Timestamp) -> int:
    """Nanoseconds since 1970 in UTC, from ``EARLIEST`` to ``LATEST``."""
    with contextlib.suppress(OverflowError):
        return _clipped(timestamp.value)  # ``value`` is in UTC, whatever the time zone.
    return LATEST if timestamp.year > _EPOCH.year else EARLIEST


def _clipped(nanoseconds: int) -> int:
    return EARLIEST if nanoseconds < BEYOND[0] else min(nanoseconds, LATEST)


def _nanoseconds(moments: np.ndarray) -> np.ndarray:
    """``datetime64`` of any unit as int64 nanoseconds from ``EARLIEST`` to ``LATEST``."""
    if np.datetime_data(moments.dtype)[0] in ("ps", "fs", "as"):
        return moments.astype("datetime64[ns]").astype(np.int64)
    first, last = np.array([EARLIEST, LATEST], "datetime64[ns]").astype(moments.dtype)
    inside = np.clip(moments, first, last).astype("datetime64[ns]").astype(np.int64)
    return np.select(
        [inside < BEYOND[0], moments > last], [EARLIEST, LATEST], np.minimum(inside, LATEST)
    )


def _read_texts(texts: set[str], datetime_format: str | None) -> dict[str, int | None]:
    """The instant of each string."""
    if datetime_format is not None:  # %-d writes no zero in front; %d reads both
        datetime_format = re.sub("%[-#]", "%", datetime_format)
    # pandas reads these words as the current time.
    listed = [text for text in texts if text.strip().lower() not in ("now", "today")]
    instant_of: dict[str, int | None] = dict.fromkeys(texts)
    if datetime_format is None:
        # Strings are read one by one: read together, one without a time zone takes the last one's.
        return instant_of | {
            text: _read_text(text, None) for text in listed if _ISO.fullmatch(text.strip())
        }
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
    with contextlib.suppress(Exception):  # other people's parsers; what they raise is of the cell
        if datetime_format is None:
            return _instant(pd.Timestamp(text.strip()))
        return _instant(datetime.strptime(text, datetime_format))
    return None
