"""A fit whose first counts have nothing that is declared of a column stops there, and can go on."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sdv_tables

from sdv_privpgd import DomainMismatchError, PrivPGDSynthesizer
from sdv_privpgd.report.warnings import OPENING

COLUMNS = {
    "ward": {"sdtype": "categorical"},
    "age": {"sdtype": "numerical"},
    "ill": {"sdtype": "boolean"},
}
AGE = {"range_min": 0, "range_max": 99, "decimal_places": 0, "cut_points": [33, 66]}
CELLS = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "ward": CELLS.choice(["a", "b"], 900),
        "age": CELLS.integers(0, 100, 900),
        "ill": CELLS.random(900) < 0.5,
    }
)


def new(ward, method="mst", epsilon=3.0, **more):
    domain = {"ward": ward, "age": AGE, **more}
    return PrivPGDSynthesizer(
        sdv_tables.metadata_of(COLUMNS), epsilon, method=method, public_domain=domain,
    )  # fmt: skip


CAPITALS = {"range_values": ["A", "B"]}
WITH_OTHER = {**CAPITALS, "other_value": "other"}


@pytest.mark.parametrize(
    ("ward", "told"),
    [
        (WITH_OTHER, r"Nearly all values are none that is declared.*: 'ward' \("),
        (CAPITALS, r"no declared values: 'ward' \("),
        ({**CAPITALS, "range_is_nullable": True}, r"no declared values: 'ward' \("),
    ],
)
@pytest.mark.parametrize("strategy", ["mst", "aim", "privpgd+pgm"])
def test_a_wrong_codebook_stops_the_fit_and_the_rest_stays(ward, told, strategy):
    rows, epsilon = (9, 0.5) if strategy == "privpgd+pgm" else (1, 3.0)
    table = pd.concat([TABLE] * rows, ignore_index=True)
    synthesizer = new(ward, strategy, epsilon)
    with pytest.raises(DomainMismatchError, match=told) as error:
        synthesizer.fit(table)
    assert "'age'" not in str(error.value)
    assert 0 < synthesizer.ledger.spent() < 0.1 * epsilon
    assert synthesizer.unfinished is not None
    if sys.version_info >= (3, 11):
        assert "finish(data)" in error.value.__notes__[0]


def test_it_goes_on_all_the_same_where_it_is_finished():
    synthesizer = new(WITH_OTHER)
    with pytest.raises(DomainMismatchError):
        synthesizer.fit(TABLE)
    paid = synthesizer.ledger.charges
    with pytest.warns(UserWarning, match=OPENING):
        synthesizer.finish(TABLE)
    assert synthesizer.ledger.charges[: len(paid)] == paid
    assert synthesizer.ledger.spent() == pytest.approx(3.0, abs=1e-6)
    assert (synthesizer.sample(50)["ward"] == "other").mean() > 0.9


@pytest.mark.parametrize(
    ("ward", "table"),
    [
        ({"range_values": ["a", "b"]}, TABLE),
        ({"range_values": ["a"], "other_value": "other"}, TABLE),
        ({}, TABLE.assign(ward=None)),
    ],
    ids=["right", "a missing category", "undeclared"],
)
def test_nothing_stops_where_nobody_is_surely_wrong(ward, table):
    synthesizer = new(ward)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synthesizer.fit(table)
    assert len(synthesizer.sample(5)) == 5


def test_truths_in_other_words_stop_a_fit_and_few_rows_are_only_warned_of():
    table = TABLE.assign(ward="A", ill=np.where(TABLE["ill"], "oui", "non"))
    with pytest.raises(DomainMismatchError, match=r"'ill'.*only true and false, 1 and 0 are read"):
        new(CAPITALS).fit(table)
    synthesizer = new(WITH_OTHER, epsilon=0.2)
    with pytest.warns(UserWarning, match=OPENING):
        synthesizer.fit(TABLE.iloc[:60])
    assert synthesizer.unfinished is None
