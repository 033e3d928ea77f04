"""Any table that pandas can hold is fitted, and nothing is said about what is in its cells.

The cells hold canaries; messages are searched for them. What the engine does with the answers is
tested elsewhere, so it is quick here.
"""

import contextlib
import datetime
import io
import logging
import string
import warnings
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sdv_tables
from canaries import DAY, NUMBER, TEXT, WHOLE, traces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sdv.errors import InvalidDataError
from sdv.metadata import Metadata

from sdv_privpgd import PrivPGDSynthesizer
from sdv_privpgd.columns.dtypes import is_unreadable
from sdv_privpgd.methods import Independent, ParticleGradientDescent
from sdv_privpgd.report.warnings import OPENING

SDTYPES = ["numerical", "datetime", "categorical", "ordinal", "boolean", "id", "unknown", "email"]
FORMATS = ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%H:%M", "%Y-%m-%dT%H:%M:%S%z", "%B %Y"]
ZONES = ["UTC", "Europe/Vienna", "Asia/Kolkata", "America/St_Johns"]


# Cells


def whole_numbers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    small = st.integers(max(low, -3), 3) | st.sampled_from([low, high])
    return small | st.integers(low, high) | (st.just(WHOLE) if bits == 64 else small)


def moments(first: int, last: int) -> st.SearchStrategy[datetime.datetime]:
    return st.just(datetime.datetime.fromisoformat(DAY)) | st.datetimes(
        datetime.datetime(first, 1, 2), datetime.datetime(last, 12, 30)
    )


floats = st.just(NUMBER) | st.floats() | st.sampled_from([1e308, -1e308, 5e-324, 0.1, -0.0, 3.0])
texts = st.one_of(
    st.just(TEXT),
    st.sampled_from(
        ["a", "b", "", " ", "nan", "None", "TRUE", "1", "1.0", "1e999", "\x00", "ß\u0301"]
    ),
    st.sampled_from([str(NUMBER), str(WHOLE), DAY, "17.09.2020", "23:59", "9999-12-31", "1" * 400]),
    st.text(max_size=5),
    st.text(st.characters(codec="utf-8"), max_size=3).map(lambda text: TEXT + text),
    st.just(TEXT * 2_000),
)
surrogates = st.text(st.characters(categories=["Cs"]), min_size=1, max_size=2)
missing = st.sampled_from([None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s"), Decimal("NaN")])
strange = [object, pd.Interval(0, 1), pd.Period("2020-09"), np.float32(0.1), np.array(1)]
objects = st.one_of(
    texts, surrogates, missing, floats, st.booleans(), st.integers(), st.just(10**400),
    st.decimals(), st.fractions(), st.dates(), st.times(), st.timedeltas(), moments(1, 9999),
    moments(1700, 2200).map(lambda moment: pd.Timestamp(moment, tz="Asia/Kolkata")),
    st.binary(max_size=3), st.complex_numbers(), st.lists(st.integers(), max_size=2),
    st.builds(lambda key: {key: TEXT}, texts), st.builds(lambda text: (text, WHOLE), texts),
    st.sampled_from(strange),
)  # fmt: skip


# Columns: a dtype and the cells that it holds


def maybe(cells: st.SearchStrategy) -> st.SearchStrategy:
    return st.none() | cells


KINDS: list[tuple[object, st.SearchStrategy]] = [
    *[(f"{sign}int{bits}", whole_numbers(bits, not sign)) for sign in ("", "u")
      for bits in (8, 16, 32, 64)],
    *[(f"{sign}nt{bits}", maybe(whole_numbers(bits, sign == "I"))) for sign in ("I", "UI")
      for bits in (8, 16, 32, 64)],
    *[(f"{sign}int{bits}[pyarrow]", maybe(whole_numbers(bits, not sign))) for sign in ("", "u")
      for bits in (8, 16, 32, 64)],
    *[(dtype, floats) for dtype in ("float16", "float32", "float64", "Sparse[float64]")],
    *[(dtype, maybe(floats)) for dtype in ("Float32", "Float64", "float[pyarrow]",
                                           "double[pyarrow]")],
    ("Sparse[int64]", whole_numbers(64, True)),
    ("complex128", st.complex_numbers() | floats),
    ("bool", st.booleans()),
    *[(dtype, maybe(st.booleans())) for dtype in ("boolean", "bool[pyarrow]")],
    *[(dtype, maybe(texts)) for dtype in ("object", "string", "string[pyarrow]", "category")],
    (pd.ArrowDtype(pa.string()), maybe(texts)),
    (pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())), maybe(texts)),
    ("object", surrogates),
    *[("object", cells | missing) for cells in (texts, floats, st.booleans(), st.dates(),
                                                moments(1, 9999), whole_numbers(64, True))],
    *[("category", maybe(cells)) for cells in (st.integers(-3, 3), floats, st.booleans(),
                                               moments(1700, 2200), st.dates())],
    *[("object", st.datetimes(datetime.datetime(1000, 1, 1)).map(
        lambda moment, form=form: moment.strftime(form))) for form in FORMATS],
    *[("object", objects)] * 4,
    *[(f"M8[{unit}]", maybe(moments(1678, 2261))) for unit in ("s", "ms", "us", "ns")],
    *[(f"M8[{unit}]", maybe(moments(1, 9999))) for unit in ("s", "ms", "us")],
    *[(f"M8[ns, {zone}]", maybe(moments(1700, 2200))) for zone in ZONES],
    *[(f"timestamp[{unit}][pyarrow]", maybe(moments(1678, 2261))) for unit in ("s", "us", "ns")],
    (pd.ArrowDtype(pa.timestamp("us", "Asia/Kolkata")), maybe(moments(1700, 2200))),
    (pd.ArrowDtype(pa.date32()), maybe(st.dates())),
    (pd.ArrowDtype(pa.time64("us")), maybe(st.times())),
    (pd.ArrowDtype(pa.decimal128(20, 4)), maybe(st.decimals(-1000, 1000, places=4))),
    (pd.ArrowDtype(pa.binary()), maybe(st.binary(max_size=3))),
    (pd.ArrowDtype(pa.list_(pa.int64())), maybe(st.lists(st.just(WHOLE), max_size=2))),
    *[(dtype, maybe(st.timedeltas(datetime.timedelta(-9999), datetime.timedelta(9999))))
      for dtype in ("m8[ns]", "m8[s]", "duration[us][pyarrow]", "object")],
    ("period[M]", maybe(moments(1700, 2200).map(lambda moment: pd.Period(moment, "M")))),
    ("interval[int64, right]", st.integers(0, 9).map(lambda low: pd.Interval(low, low + 1))),
]  # fmt: skip


@st.composite
def columns(draw, num_rows: int) -> pd.Series:
    dtype, cells = draw(st.sampled_from(KINDS))
    # One value in all rows, or any; with all of them missing now and then.
    alike = draw(st.sampled_from([False, False, False, True]))
    values = [draw(cells)] * num_rows if alike else [draw(cells) for _ in range(num_rows)]
    array = np.empty(num_rows, dtype=object)
    for row, value in enumerate(values):
        array[row] = value
    series = pd.Series(array, dtype=object)
    if dtype == "object":
        return series
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # pandas says that 1e308 is infinite in float16
        kind, _, inner = str(dtype).rstrip("]").partition("[")
        if kind == "Sparse":
            return series.astype(inner).astype(dtype)
        if inner.startswith("ns, "):
            return series.astype("M8[ns]").dt.tz_localize("UTC").astype(dtype)
        return series.astype(dtype)


NAMES = st.one_of(
    st.sampled_from(
        ["a", "b", "Some Name", "id", "0", "table", "", "#", "other", "ä\x00", "x" * 300]
    ),
    st.integers(-2, 4),
    st.sampled_from([0.5, None, True, ("a", 1), datetime.date(2020, 1, 1), pd.Timestamp("2020")]),
    st.text(string.printable, max_size=3),
)


@st.composite
def tables(draw) -> pd.DataFrame:
    num_rows = draw(st.sampled_from([0, 1, 2, 5, 9]))
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str))
    table = pd.concat([draw(columns(num_rows)) for _ in names], axis=1)
    table.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    if draw(st.booleans()):  # duplicated rows, under an index of duplicates
        table = table.take(np.tile(np.arange(num_rows), draw(st.sampled_from([2, 30]))))
    return table


# What is said


@contextlib.contextmanager
def overheard(said: list[str]) -> Iterator[None]:
    """Adds to ``said`` what is warned of, logged and printed, and that data are invalid."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    handler, level, printed = Handler(), logging.getLogger().level, io.StringIO()
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("always")
            # What another test left open is closed by the garbage collector at any time.
            warnings.simplefilter("ignore", ResourceWarning)
            yield
    except InvalidDataError as error:
        said.append(str(error))
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(level)
        said.extend(f"{each.category.__name__}: {each.message}" for each in caught)
        said.append(printed.getvalue())


QUICK = Independent(engine=ParticleGradientDescent(num_particles=20, epochs=1))


def check_a_fit(table: pd.DataFrame, metadata: Metadata, adjacency: str) -> None:
    said: list[str] = []
    with overheard(said):
        synthesizer = PrivPGDSynthesizer(
            metadata, 1.0, method=QUICK, adjacency=adjacency, delta=1e-5
        )
        synthesizer.fit(table, allow_lost=list(map(str, table.columns)))
        rows = synthesizer.sample(len(table))
    assert traces(said) == []
    warned = [text for text in said if "Warning: " in text and OPENING not in text]
    about = "are not declared: 0.2 of the budget", "ids", "In so few rows"
    assert all(any(each in text for each in about) for text in warned), warned
    assert len(warned) <= len(about)
    if any("No type of column reads" in text for text in said):
        assert any(map(is_unreadable, table.dtypes))
        return
    if any("The table has no rows" in text for text in said):
        assert table.empty
        assert adjacency == "replace_one"
        return
    if any("would count as missing" in text for text in said):
        assert not all(dtype.kind == "O" for dtype in table.dtypes)
        return
    assert len(rows) == len(table)
    assert list(rows.columns) == list(table.columns)


def check_with_detected_metadata(table: pd.DataFrame, adjacency: str) -> None:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            metadata = Metadata.detect_from_dataframes({"table": table})
    except Exception:  # noqa: BLE001 - SDV's own limits
        return  # they hang on rows that it draws, so Hypothesis must not be told of them
    check_a_fit(table, metadata, adjacency)


@st.composite
def described(draw, table: pd.DataFrame) -> Metadata:
    """Metadata of the table's columns that have nothing to do with what is in them."""
    facts = {str(name): {"sdtype": draw(st.sampled_from(SDTYPES))} for name in table.columns}
    for each in facts.values():
        if each["sdtype"] == "datetime":
            each |= draw(st.sampled_from([{}, *({"datetime_format": form} for form in FORMATS)]))
    return sdv_tables.metadata_of(facts)


ADJACENCIES = st.sampled_from(["replace_one", "add_remove"])


def examples(number: int, *, same: bool):
    """So many tables: the ``same`` in every run, or others each time."""
    return settings(
        max_examples=number,
        derandomize=same,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@given(tables(), ADJACENCIES)
def whatever_sdv_detects(table, adjacency):
    check_with_detected_metadata(table, adjacency)


@given(tables(), ADJACENCIES, st.data())
def any_metadata(table, adjacency, data):
    check_a_fit(table, data.draw(described(table)), adjacency)


BOTH = pytest.mark.parametrize("check", [whatever_sdv_detects, any_metadata])


@pytest.mark.long
@BOTH
def test_any_table_is_fitted_without_a_word(check):
    examples(50, same=True)(check)()


@pytest.mark.slow
@pytest.mark.timeout(0)
@BOTH
def test_ten_thousand_tables_are_fitted_without_a_word(check):
    examples(5_000, same=False)(check)()
