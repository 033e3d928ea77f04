"""Rows beyond declared ranges of few values are counted, charged, said, and stop a fit.

The noise is small beside the shares, or seeds are many: bounds hold but for chances below 1e-6.
"""

import numpy as np
import pandas as pd
import pytest
from made_up import quiet

from sdv_privpgd import Boolean, Categorical, Datetime, Numerical, fit_table
from sdv_privpgd.columns.facts import DateFacts, NumberFacts
from sdv_privpgd.columns.parser import read_facts
from sdv_privpgd.discovery.plan import BEYOND, discover
from sdv_privpgd.discovery.transcript import Inquiry
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.mismatch import UNPARSED
from sdv_privpgd.fitting.options import parse_options
from sdv_privpgd.fitting.plan import planned
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

ROWS = 5_000
CELLS = np.random.default_rng(0)


def coded(values, code, share):
    return np.where(CELLS.random(ROWS) < share, code, values)


TABLE = pd.DataFrame(
    {
        "children": coded(np.minimum(CELLS.poisson(1.5, ROWS), 20), -1, 0.19),
        "pain": coded(CELLS.integers(0, 11, ROWS), 99, 0.126),
        "day": np.where(CELLS.random(ROWS) < 0.2, "1900-01-01", "2024-03-05"),
        "fine": CELLS.integers(1, 6, ROWS),
        "ward": CELLS.choice(["a", "b"], ROWS),
        "ill": CELLS.random(ROWS) < 0.5,
    }
)
COLUMNS = {
    "children": Numerical(0, 20, decimal_places=0, nullable=False),
    "pain": Numerical(0, 10, decimal_places=0),
    "day": Datetime("2024-03-01", "2024-03-20", datetime_format="%Y-%m-%d"),
    "fine": Numerical(1, 5, decimal_places=0),
    "ward": Categorical(["a", "b"]),
    "ill": Boolean(),
}


def fitted(**settings):
    settings = {"method": "mst", **settings}
    with quiet():
        return fit_table(TABLE, COLUMNS, 3.0, **settings)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_codes_beyond_short_ranges_are_said_where_everything_is_declared(adjacency):
    done = fitted(adjacency=adjacency, delta=1e-5)
    said = " ".join(done.warnings)
    assert "of the rows of 'children' lie below its declared range_min=0 and were moved" in said
    assert "of the rows of 'pain' lie above its declared range_max=10" in said
    assert "of the rows of 'day' lie below its declared range_min='2024-03-01'" in said
    assert "'fine'" not in said
    (sentence,) = (each for each in done.warnings if "'children'" in each)
    assert 12 < float(sentence.removeprefix("About ").split(" %")[0]) < 26
    (charge,) = (each for each in done.ledger.charges if each.what == BEYOND)
    assert charge.num_queries == 4
    # A 100th for a short range, and no more than a 50th for all.
    assert charge.mu_squared / done.ledger.budget == pytest.approx(1 / 50)
    assert done.ledger.spent() <= 3.0


def test_only_short_ranges_are_asked_about_and_a_plan_lists_it():
    done = fitted(discovery_share=0)
    assert BEYOND not in {each.what for each in done.ledger.charges}
    assert not any("and were moved to it" in each for each in done.warnings)
    _, description = parse_options(
        {**COLUMNS, "age": Numerical(0, 99, decimal_places=0)}, 1.0, 1e-5
    )
    assert list(description.short_ranges) == ["children", "pain", "day", "fine"]
    assert list(description.undeclared) == ["age"]
    assert all(
        isinstance(each, NumberFacts | DateFacts) for each in description.short_ranges.values()
    )
    settings, description = parse_options(COLUMNS, 1.0, 1e-5, method="mst")
    assert BEYOND in str(planned(settings, description, 1_000))


def test_a_discovery_that_ended_there_goes_on_without_paying_twice(monkeypatch):
    settings, description = parse_options(COLUMNS, 3.0, 1e-5, method="mst")
    table = PrivateTable({name: TABLE[name] for name in COLUMNS})
    first = Fit(settings, description)
    first.discover(table)
    paid, known = first.shared.ledger, first.transcript.answered
    assert [each.what for each in known] == ["number of rows", UNPARSED, BEYOND]
    later = Fit(settings, description, begun=paid, answered=known)
    monkeypatch.setattr(PrivateTable, "curator", None)  # no row is read
    later.discover(table)
    assert later.shared.ledger == paid
    assert later.diagnostics == first.diagnostics


def test_false_alarms_are_rare():
    # In 300 questions with two ends each, noise alone is 4 standard deviations with chance 0.02.
    known = {"fine": read_facts("fine", {"sdtype": "numerical", **COLUMNS["fine"]})}
    table = PrivateTable({"fine": TABLE["fine"]})
    said = 0
    for seed in range(300):
        ledger = PrivacyLedger.open(0.3, 1e-5, Adjacency.REPLACE_ONE)
        shared = FitLedger(ledger, words=np.random.default_rng(seed).bytes)
        said += len(discover(Inquiry(table=table, shared=shared), {}, 0, short=known).diagnostics)
    assert said <= 1
