"""The audit of tables that belong together passes, and finds faults that are planted."""

import math

import numba
import numpy as np
import pytest

from sdv_privpgd import Boolean, Categorical, Link, Numerical
from sdv_privpgd.audit import audit_tables
from sdv_privpgd.audit.subjects import listening
from sdv_privpgd.privacy.counting import units_of

LINKS = [
    Link("people", "stays", "person", 2, order="day", start="came"),
    Link("stays", "drugs", "stay", 3),
]
COLUMNS = {
    "people": {"old": Boolean(), "came": Numerical(0, 50, decimal_places=0)},
    "stays": {"ward": Categorical(), "day": Numerical(0, 99, decimal_places=0)},
    "drugs": {"strong": Boolean()},
}


def audited():
    facts = audit_tables(COLUMNS, LINKS, 5.0, 1e-6, method="independent", runs=150).to_dict()
    return facts, {each["name"]: each for each in facts["checks"]}


@pytest.mark.slow
def test_it_passes_and_nearly_all_of_what_is_claimed_is_gained():
    facts, checks = audited()
    assert facts["failed"] == []
    found = checks["attack"]["facts"]
    error = math.sqrt(2 / 150 + found["mu_estimate"] ** 2 / 600)
    assert found["mu_estimate"] > 0.85 * found["mu_claimed"] - 3 * error


def test_what_may_fail_by_chance_is_checked_as_for_one_table():
    with pytest.raises(ValueError, match="false_alarms must lie between 0 and 1"):
        audit_tables(COLUMNS, LINKS, 5.0, 1e-6, false_alarms=1.0)


def one_row_each(plan):
    return np.ones(len(plan.stays), dtype=np.int64)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ("sdv_privpgd.sources.families._Plan.in_family", property(one_row_each)),
        (
            "sdv_privpgd.privacy.streams.weights_of",
            lambda most: [units_of(most) // max(n - 1, 1) for n in range(1, most + 1)],
        ),
    ],
)
def test_it_finds_rows_that_count_too_much(place, fault, monkeypatch):
    monkeypatch.setattr(place, fault)
    assert "changes" in audited()[0]["failed"]


@pytest.mark.slow
def test_it_finds_what_is_made_of_the_number_of_rows(monkeypatch):
    from sdv_privpgd.fitting.linked_tables import RunningTables

    run = RunningTables.run

    def leaking(self, *given):
        rows = self.private["drugs"]._source.num_rows()
        found = run(self, *given)
        object.__setattr__(found, "warnings", (*found.warnings, f"{rows} rows"))
        return found

    monkeypatch.setattr(RunningTables, "run", leaking)
    assert {"file", "pages"} <= set(audited()[0]["failed"])


def test_what_numba_says_of_its_compiling_in_a_first_fit_is_no_message():
    with listening() as said:
        assert numba.njit(lambda number: number + 1)(1) == 2
    assert said.messages() == [[], [], "", None]
