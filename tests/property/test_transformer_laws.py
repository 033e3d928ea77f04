"""Laws of encoding: codes survive a round trip, and no cell changes another's code."""

import datetime
import enum
import string
import zoneinfo
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from encoding import Codec
from hypothesis import assume, given
from hypothesis import strategies as st

from sdv_privpgd.columns.bins import Categories, Reals, Ticks
from sdv_privpgd.columns.schema import Schema

pytestmark = pytest.mark.filterwarnings("error")

BELOW_ONE = np.nextafter(1.0, 0.0)
FORMATS = ["%Y-%m-%d", "%Y%m%d", "%d/%m/%Y %H:%M", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m", "%b %d, %Y",
           "%Y-%m-%d %H:%M:%S.%f", None]  # fmt: skip
ZONES = [None, datetime.timezone.utc, zoneinfo.ZoneInfo("Europe/Paris"),
         datetime.timezone(datetime.timedelta(hours=-11, minutes=-30))]  # fmt: skip


# Columns


def described(facts, num_bins=32):
    return Codec(Schema.from_sdv({"x": facts}, num_bins=num_bins).columns[0])


@st.composite
def numerical(draw, least_places=None):
    """Numerical columns; real numbers, too, unless at least so many decimal places are asked."""
    places = draw(st.integers(least_places or 0, 12) | st.just(least_places))
    if places == 0:
        bounds = st.integers(-(2**62) + 1, 2**62) | st.integers(-50, 50)
    else:
        bounds = st.floats(-1e300, 1e300) | st.floats(-100, 100) | st.integers(-100, 100)
    low, high = sorted([draw(bounds), draw(bounds)])
    assume(places is None or places == 0 or high - low > 10.0**-places)
    facts = {"sdtype": "numerical", "range_min": low, "range_max": high, "decimal_places": places}
    shares = draw(st.just([]) | st.lists(st.floats(0, 1), max_size=4))
    cuts = sorted({float(low) + share * (float(high) - float(low)) for share in shares})
    facts["cut_points"] = [cut for cut in cuts if low < cut <= high]
    often = [None, [], [[10**6, 1]], [[0.5, 0.3], [10, 0.4]], [[1_000, 0.5], [50, 0.25], [5, 0]]]
    facts["rounding"] = draw(st.sampled_from(often))
    return described(draw(with_frequencies(facts)), draw(st.integers(1, 40)))


@st.composite
def with_frequencies(draw, facts):
    """The facts on a column's cells, and perhaps how often each occurs."""
    size = len(facts["cut_points"]) + 1
    frequencies = st.none() | st.lists(st.floats(0, 1e6), min_size=size, max_size=size)
    return {**facts, "frequencies": draw(frequencies)}


@st.composite
def dated(draw):
    moments = st.datetimes(datetime.datetime(1700, 1, 2), datetime.datetime(2200, 1, 1))
    low, high = sorted([draw(moments), draw(moments)])
    datetime_format = draw(st.sampled_from(FORMATS))
    shares = draw(st.just([]) | st.lists(st.floats(0.01, 0.99), max_size=4))
    # Bounds are cut off to what the format writes, months at most: the first cut lies above.
    wide = high - low > datetime.timedelta(days=9_000)
    cuts = sorted({low + share * (high - low) for share in shares}) if wide else []
    facts = {"sdtype": "datetime", "datetime_format": datetime_format, "cut_points": cuts}
    if datetime_format is not None:
        utc = datetime.timezone.utc
        low, high = (each.replace(tzinfo=utc).strftime(datetime_format) for each in (low, high))
    facts = draw(with_frequencies({**facts, "range_min": low, "range_max": high}))
    return described(facts, draw(st.integers(1, 40)))


@st.composite
def categorical(draw):
    value = st.text(max_size=3) | st.integers(-3, 3) | st.integers() | st.sampled_from([0.5, 2.25])
    values = draw(st.lists(value | st.booleans(), min_size=1, max_size=8, unique=True))
    other = draw(st.none() | st.just("any other"))
    return described({"sdtype": "ordinal", "range_values": values, "other_value": other})


truth = st.builds(
    lambda nullable: described({"sdtype": "boolean", "range_is_nullable": nullable}), st.booleans()
)
columns = numerical() | dated() | categorical() | truth


# Cells


class Hostile:
    """Raises at whatever anyone asks of it."""

    def _raise(self, *_):
        raise RuntimeError("a private cell")

    __eq__ = __hash__ = __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = _raise
    __str__ = __lt__ = __gt__ = __le__ = __ge__ = __array__ = __getattr__ = _raise
    __class__ = property(_raise)


class HostileText(str):
    def _raise(self, *_):
        raise RuntimeError("a private cell")

    __eq__ = __hash__ = __str__ = lower = strip = _raise


class HostileNumber(float):
    def _raise(self, *_):
        raise RuntimeError("a private cell")

    __eq__ = __ne__ = __hash__ = __float__ = __lt__ = __ge__ = _raise


class HostileZone(datetime.tzinfo):
    def utcoffset(self, moment):
        raise RuntimeError("a private cell")


class HostileKind(type):
    def _raise(cls, *_):
        raise RuntimeError("a private cell")

    __eq__ = __hash__ = __instancecheck__ = __subclasscheck__ = _raise


class OfHostileKind(metaclass=HostileKind):
    pass


class Word(str, enum.Enum):
    YES = "true"


ODDITIES = [
    Hostile(), HostileText("a"), HostileNumber(1.5), OfHostileKind(), Word.YES, object(), object,
    datetime.datetime(2001, 1, 1, tzinfo=HostileZone()), None, pd.NA, pd.NaT,
    np.datetime64("NaT", "s"), 10**400, -(10**400), "9" * 5000, "1e400", Decimal("sNaN"),
    Decimal("1e999999999"), Decimal("-1e999999999999"), Decimal("1e-999999999"), Fraction(10**400),
    Fraction(1, 10**400),
    [1], {}, set(), (), b"1", 1j, np.complex64(1), np.void(b"1"), np.array(1), np.array([1, 2]),
    np.timedelta64(1, "D"), pd.Timedelta(1), pd.Period("2001"), pd.Interval(0, 1), ...,
    "now", "today", "nan", "inf", "1_0", "0x1", "\ud800", "\x00", "10:30", "2001-02-30",
    "2001-01-01T00:00+09:00", "2001-01-01T00:00", "2001-01-01T00:00Z", "2001-01-01", 20_010_101,
    "true", "TRUE", np.True_, np.float32(0.1), np.longdouble(1.5), np.uint64(2**64 - 1),
    np.datetime64(10**12, "Y"), np.datetime64(-(10**12), "Y"), np.datetime64(3, "as"),
    pd.Timestamp("9999-12-31"), pd.Timestamp("0001-01-01"), datetime.date(1, 1, 1),
    datetime.datetime(1, 1, 1, tzinfo=ZONES[2]), datetime.datetime(9999, 12, 31, tzinfo=ZONES[3]),
]  # fmt: skip


@dataclass(frozen=True)
class Oddity:
    """Stands for one of the oddities: Hypothesis would hash and compare them."""

    number: int


moments = st.datetimes(timezones=st.sampled_from(ZONES))
cell = st.one_of(
    st.builds(Oddity, st.integers(0, len(ODDITIES) - 1)), st.integers(), st.integers(-5, 5),
    st.floats(), st.booleans(), st.text(string.printable, max_size=6), st.decimals(),
    st.fractions(), moments, st.dates(),
    st.builds(
        datetime.datetime.strftime,
        st.datetimes(datetime.datetime(1000, 1, 1), timezones=st.sampled_from(ZONES)),
        st.sampled_from([each for each in FORMATS if each] + ["%Y-%m-%d %H:%M%z", "%x"]),
    ),
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)).map(pd.Timestamp),
)  # fmt: skip


def series_of(cells):
    """A series of the cells as they are: pandas must not look for their common type."""
    array = np.empty(len(cells), dtype=object)
    for position, each in enumerate(cells):
        array[position] = ODDITIES[each.number] if type(each) is Oddity else each
    return pd.Series(array, dtype=object)


# Round trips


@given(columns, st.data())
def test_every_position_of_every_code_is_read_as_that_code(column, data):
    size = column.column.size
    codes = np.array(data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=20)))
    position = st.floats(0, 1, exclude_max=True) | st.sampled_from([0.0, BELOW_ONE])
    positions = np.array(data.draw(st.lists(position, min_size=len(codes), max_size=len(codes))))
    values = column.decode(codes, positions, holds_missing=data.draw(st.booleans()))
    assert column.encode(values)[0].tolist() == codes.tolist()


@given(columns)
def test_the_ends_of_all_cells_are_read_as_theirs(column):
    codes = np.arange(column.column.size)
    for position in (0.0, 0.5, BELOW_ONE):
        values = column.decode(codes, np.full(len(codes), position))
        assert column.encode(values)[0].tolist() == codes.tolist()


@given(numerical(least_places=0) | dated(), st.data())
def test_values_on_the_lattice_come_back_exactly(column, data):
    cells = column.column.cells
    assume(isinstance(cells, Ticks) and cells.masses.max() < 2**40)  # positions hold 53 bits
    ticks = np.array(data.draw(st.lists(st.integers(cells.first, cells.last), min_size=1)))
    values = column.decode(*cells.locate(ticks))
    pd.testing.assert_series_equal(column.decode(*column.encode(values)), values)


@given(numerical().filter(lambda column: isinstance(column.column.cells, Reals)), st.data())
def test_real_values_come_back_as_nearly_as_floats_allow(column, data):
    cells = column.column.cells
    assume(column.column.merging is None)  # of a code's cells some hardly occur, or never
    reals = np.array(data.draw(st.lists(st.floats(cells.low, cells.high), min_size=1)))
    back = column.decode(*column.encode(pd.Series(reals)))
    scale = max(abs(cells.low), abs(cells.high))
    assert np.abs(back - reals).max() <= 4 * np.spacing(scale)


@given(numerical() | dated(), st.data())
def test_the_order_of_values_is_the_order_of_codes_and_positions(column, data):
    codes = np.sort(data.draw(st.lists(st.integers(0, column.column.num_values - 1), min_size=2)))
    positions = np.linspace(0, BELOW_ONE, len(codes))
    cells = column.column.cells
    assert (np.diff(cells.at(codes, positions).astype(float)) >= 0).all()


@given(numerical(), st.lists(st.floats(0, 1, exclude_max=True), min_size=1))
def test_decoded_numbers_stay_in_their_range(column, positions):
    facts = column.column
    scale = 10.0 ** (facts.decimal_places or 0)
    if isinstance(facts.cells, Reals):
        low, high = facts.cells.low, facts.cells.high
    else:
        low, high = facts.cells.first / scale, facts.cells.last / scale
    for code in (0, facts.num_values - 1):
        values = column.decode(np.full(len(positions), code), np.array(positions))
        assert ((values >= low) & (values <= high)).all()
        assert facts.decimal_places != 0 or values.dtype == np.int64


# Privacy: no cell changes another's code, and none says a word


@given(columns, st.lists(cell, max_size=12))
def test_a_cell_has_the_code_that_it_has_alone(column, cells):
    together, positions = column.encode(series_of(cells))
    alone = [int(column.encode(series_of([each]))[0][0]) for each in cells]
    assert together.tolist() == alone
    assert ((together >= 0) & (together < column.column.size)).all()
    assert ((positions >= 0) & (positions < 1)).all()


@given(columns)
def test_no_oddity_changes_what_is_beside_it(column):
    alone = [int(column.encode(series_of([each]))[0][0]) for each in ODDITIES]
    assert column.encode(series_of(ODDITIES))[0].tolist() == alone
    assert column.encode(series_of(ODDITIES[::-1]))[0].tolist() == alone[::-1]


WHOLE = ["int64", "Int64", "int64[pyarrow]", "category", "Sparse[int64]", "str", "string"]
REAL = ["float64", "Float64", "double[pyarrow]", "category", "Sparse[float64]"]
TEXT = ["string", "string[pyarrow]", "category"]
MOMENT = ["M8[ns]", "M8[us]", "M8[s]", "timestamp[us][pyarrow]", "category", "M8[us, UTC]"]
ZONED = ["M8[ns, UTC]", "M8[us, UTC]", "timestamp[us, tz=UTC][pyarrow]", "category"]


seconds = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0)
)


@st.composite
def typed(draw):
    """Cells that a family of dtypes can hold, and one of these dtypes."""
    family, each = draw(
        st.sampled_from(
            [
                (WHOLE, st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)),
                (["uint64", "UInt64", "uint64[pyarrow]"], st.integers(0, 2**64 - 1)),
                (REAL, st.floats(allow_nan=False)),
                (["bool", "boolean", "bool[pyarrow]", "category", "int8"], st.booleans()),
                (TEXT, st.text(string.printable, max_size=5) | st.dates().map(str)),
                (MOMENT, seconds),
                (ZONED, seconds.map(lambda moment: moment.replace(tzinfo=datetime.timezone.utc))),
            ]
        )
    )
    return draw(st.lists(each, min_size=1, max_size=8)), draw(st.sampled_from(family))


@given(columns, typed())
def test_a_cell_has_the_same_code_in_every_dtype(column, typed_cells):
    cells, dtype = typed_cells
    as_objects = series_of(cells)
    # What str and string make of a number is text, which dates and categories tell apart.
    assume(dtype not in ("str", "string") or column.column.sdtype == "numerical")
    # A zone makes a moment another category: one that cannot be declared, and is missing.
    gets_zone = dtype in ZONED and dtype != "category" and cells[0].tzinfo is None
    assume(not (gets_zone and isinstance(column.column.cells, Categories)))
    codes = column.encode(as_objects)[0].tolist()
    assert column.encode(as_objects.astype(dtype))[0].tolist() == codes


NULLABLE = ["Int64", "int64[pyarrow]", "category", "object"]


@given(columns, st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.sampled_from(NULLABLE))
def test_a_missing_cell_changes_no_other(column, cells, dtype):
    without = column.encode(pd.Series(cells, dtype=object).astype(dtype))[0].tolist()
    beside = pd.Series([*cells, None], dtype=object).astype(dtype)
    assert column.encode(beside)[0].tolist()[:-1] == without


@given(columns, st.lists(cell, min_size=1, max_size=6), st.randoms())
def test_the_order_and_the_index_of_cells_change_no_code(column, cells, random):
    order = list(range(len(cells)))
    random.shuffle(order)
    series = series_of(cells)
    codes, positions = column.encode(series)
    shuffled = series.iloc[order].set_axis(["same label"] * len(order))
    shuffled_codes, shuffled_positions = column.encode(shuffled)
    assert shuffled_codes.tolist() == codes[order].tolist()
    assert shuffled_positions.tolist() == positions[order].tolist()
