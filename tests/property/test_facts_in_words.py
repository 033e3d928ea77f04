"""Facts on columns become SDV's words and facts again, and lose nothing on the way."""

import json
from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.columns.dates import EARLIEST, LATEST
from sdv_privpgd.columns.facts import CategoryFacts, DateFacts, NumberFacts, TruthFacts
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.parser import read_facts
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.drafting.files import plain_domain

NULLABLE = st.sampled_from([None, True, False])
WRITTEN = NumberFormat("-1.234,5000 €")
BINS = st.one_of(st.none(), st.integers(1, 64))
FORMATS = {
    "%Y": "Y", "%m.%Y": "M", "%d.%m.%Y": "D", "%Y-%m-%dT%H:%M:%S": "s", "%Y%m%d %H:%M %z": "m",
    "%Y-%m-%d %H:%M:%S.%f": "us",
}  # fmt: skip


def ascending(values):
    return st.lists(values, min_size=2, max_size=9, unique=True).map(sorted)


@st.composite
def ranges(draw, values):
    """What numbers and dates have: ends, cuts from above the first to the last, frequencies."""
    low, *rest = draw(values)
    kept = draw(st.sampled_from(["all", "low", "high", "none"]))
    if kept != "all":
        return {key: end for key, end in (("low", low), ("high", rest[-1])) if key == kept}
    found = {"low": low, "high": rest[-1]}
    if draw(st.booleans()):
        found["cuts"] = tuple(rest[: draw(st.integers(0, len(rest)))])
        if draw(st.booleans()):
            size = len(found["cuts"]) + 1
            often = st.lists(st.floats(0, 1e12), min_size=size, max_size=size)
            found["frequencies"] = tuple(draw(often))
    return found


@st.composite
def number_facts(draw, decimals=False):
    places, increment = draw(st.sampled_from([None, 0, 1, 4])), None
    ticks = st.integers(-(10**9), 10**9)
    if places is None:
        values = ascending(st.floats(-1e300, 1e300))
    elif places == 0:
        increment = draw(st.one_of(st.none(), st.integers(1, 50)))
        values = ascending(ticks.map(lambda tick: tick * (increment or 1)))
    else:
        values = ascending(ticks.map(lambda tick: tick / 10**places))
    facts = NumberFacts(
        **draw(ranges(values)),
        decimal_places=places,
        increment=increment,
        rounding=draw(st.sampled_from([None, ((1_000, 0.25), (0.5, 0.125))])),
        number_format=None if places is None else draw(st.sampled_from([None, WRITTEN])),
        nullable=draw(NULLABLE),
        num_bins=draw(BINS),
    )
    if not decimals or facts.lacks_domain:
        return facts
    exact = NumberFacts(low=Decimal(repr(facts.low)), high=Decimal(repr(facts.high)))
    return facts.and_found(exact)


@st.composite
def date_facts(draw):
    written = draw(st.one_of(st.none(), st.sampled_from(list(FORMATS))))
    unit = FORMATS[written] if written else draw(st.sampled_from(["D", "s", "us", "ns"]))
    first, last = (np.datetime64(each, "ns") for each in (EARLIEST + 10**18, LATEST - 10**18))
    ticks = ascending(
        st.integers(*(int(end.astype(f"M8[{unit}]").astype(int)) for end in (first, last)))
    )
    instants = ticks.map(
        lambda own: np.array(own).astype(f"M8[{unit}]").astype("M8[ns]").astype(int).tolist()
    )
    found = draw(ranges(instants))
    aware = written is None and bool({"low", "high"} & found.keys()) and draw(st.booleans())
    return DateFacts(
        **found, datetime_format=written, aware=aware, nullable=draw(NULLABLE), num_bins=draw(BINS)
    )


@st.composite
def category_facts(draw, values):
    listed = draw(st.one_of(st.none(), st.lists(values, max_size=300, unique=True)))
    other = draw(st.one_of(st.none(), values.filter(lambda value: value not in (listed or ()))))
    size, often = len(listed or ()), None
    if listed and draw(st.booleans()):
        often = tuple(draw(st.lists(st.floats(0, 1e12), min_size=size, max_size=size)))
    return CategoryFacts(
        values=None if listed is None else tuple(listed),
        other=other,
        is_ordered=draw(st.booleans()),
        frequencies=often,
        nullable=draw(NULLABLE),
    )


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
IN_FILES = st.one_of(
    number_facts(),
    date_facts(),
    category_facts(st.one_of(st.text(), NUMBERS)),
    st.builds(TruthFacts, nullable=NULLABLE, values=st.sampled_from([None, ("no", "yes"), (2, 1)])),
)
OTHERS = st.one_of(
    number_facts(decimals=True),
    category_facts(st.one_of(st.binary(), st.times(), st.decimals(-9, 9, places=2))),
)


def again(words, facts):
    return read_facts("x", {"sdtype": facts.sdtype, **words})


@given(st.one_of(IN_FILES, OTHERS))
def test_facts_are_the_same_after_writing_and_reading_and_say_nothing_unknown(facts):
    read = again(words_of(facts), facts)
    assert read == facts
    assert repr(read) == repr(facts)  # 0 is not 0.0 here
    words = words_of(facts)
    assert {word for word, fact in words.items() if fact is None} <= {"datetime_format"}
    assert ("datetime_format" in words) == isinstance(facts, DateFacts)


@given(IN_FILES)
def test_a_file_keeps_all_facts_that_it_can_hold(facts):
    domain = json.loads(json.dumps(plain_domain({"x": words_of(facts)})))
    read = again(domain["x"], facts)
    assert repr(read) == repr(facts)
