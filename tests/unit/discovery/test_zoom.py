"""Cells with many rows are cut for the next look, and no others."""

import numpy as np
import pandas as pd
import pytest
from discovering import drawn, found

from sdv_privpgd.discovery.plan import CLOSER
from sdv_privpgd.privacy.queries import Adjacency

RNG = np.random.default_rng(0)


COLUMNS = {
    "a grade": ((100.02 + RNG.normal(size=20_000) * 0.005).round(4), {"decimal_places": 4}, 0, 200),
    "serial numbers": (RNG.integers(10**9, 10**9 + 500, 20_000), {"decimal_places": 0}, 0, 2**31),
    "below zero": ((-71.06 + RNG.normal(size=20_000) * 0.04).round(5), {}, -180, 180),
    "two lumps": (
        np.where(RNG.random(20_000) < 0.5, RNG.normal(1e3, 1, 20_000), RNG.normal(9e5, 5, 20_000)),
        {},
        0,
        1e6,
    ),
}


@pytest.mark.parametrize("is_declared", [True, False])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_small_spread_beside_a_large_size_is_kept(name, is_declared):
    values, facts, low, high = COLUMNS[name]
    ends = {"range_min": low, "range_max": high} if is_declared else {}
    rows = drawn(values, "numerical", {**facts, **ends}, epsilon=2.0)
    for half in (slice(0, 1), slice(1, 2)):
        level = [0.1 + 0.5 * half.start, 0.4 + 0.5 * half.start]
        real, made = (np.diff(np.quantile(each, level)) for each in (values, rows))
        assert 0.5 < made / real < 2


def test_seconds_of_one_day_are_found_among_all_years():
    start = pd.Timestamp("2024-02-01")
    seconds = pd.Series(start + pd.to_timedelta(RNG.integers(0, 86_400, 20_000), "s"))
    rows = pd.to_datetime(drawn(seconds, "datetime", {}, epsilon=2.0))
    inside = (rows >= start) & (rows < start + pd.Timedelta(days=1))
    assert inside.mean() > 0.95
    assert 0.4 < (rows[inside].dt.hour >= 12).mean() < 0.6


@pytest.mark.parametrize("sign", [1, -1])
def test_a_found_range_ends_at_a_cap_and_not_where_rows_follow_one(sign):
    values = sign * np.where(RNG.random(20_000) < 0.3, 9_999, RNG.integers(0, 500, 20_000))
    facts, _ = found(values, {"sdtype": "numerical", "decimal_places": 0})
    assert facts["range_max" if sign > 0 else "range_min"] == 9_999 * sign
    values[:2_000] = sign * RNG.integers(10_000, 15_000, 2_000)
    facts, _ = found(values, {"sdtype": "numerical", "decimal_places": 0})
    assert abs(facts["range_max" if sign > 0 else "range_min"]) >= 14_500


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_closer_looks_are_paid_from_the_same_budget(adjacency):
    values = RNG.normal(77.6, 0.06, 5_000).round(5)
    facts = {"sdtype": "numerical", "range_min": -180, "range_max": 180, "decimal_places": 5}
    _, ledger = found(values, facts, adjacency=adjacency)
    looks = [charge for charge in ledger.charges if charge.what == CLOSER]
    assert len(looks) >= 2
    assert float(ledger.budget) / 20 >= float(ledger.budget - ledger.remaining) * (1 - 1e-12)
