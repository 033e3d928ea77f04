"""The parts that the comparison exchanges, and what is drawn of them."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.benchmark.methods import (
    PREPROCESSINGS,
    SELECTS,
    Compared,
    Preprocessing,
    is_arm,
    names_of,
    parts_of,
)
from sdv_privpgd.benchmark.show import (
    KINDS,
    arms_of,
    in_rank,
    of_parts,
    settings_of_parts,
    table_of_arms,
    write_exchange,
)
from sdv_privpgd.benchmark.tables import Table, decoded
from sdv_privpgd.columns.parsing import read_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods.fixed import Independent
from sdv_privpgd.methods.method import ENGINES, engine_of, named_methods
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

JOBS = [f"job {number:03}" for number in range(150)]
WORDS = {
    "income": {"sdtype": "numerical", "range_min": 0, "range_max": 9_999, "decimal_places": 0},
    "age": {"sdtype": "numerical", "range_min": 0, "range_max": 7, "decimal_places": 0},
    "job": {"sdtype": "categorical", "range_values": JOBS, "range_is_nullable": False},
    "ill": {"sdtype": "boolean", "range_is_nullable": False},
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    income = np.minimum(rng.exponential(300, 20_000), 9_999).astype(int)
    chances = np.array([30.0] * 20 + [0.1] * 130)
    frame = pd.DataFrame(
        {
            "income": np.where(rng.random(20_000) < 0.05, np.nan, income),
            "age": rng.integers(0, 8, 20_000),
            "job": rng.choice(JOBS, 20_000, p=chances / chances.sum()),
            "ill": rng.random(20_000) < 0.3,
        }
    )
    facts = read_table(WORDS, (), None)
    schema = Schema.of(facts, 16)
    return Table(name="own", frame=frame, schema=schema, cells=16, label="ill", facts=facts)


def preprocessed(table, name, epsilon=3.0):
    preprocessing = Preprocessing(name=name)
    reserved = preprocessing.reserved(table, 1e-5)
    books = Books(PrivacyLedger.open(epsilon, 1e-5, Adjacency.REPLACE_ONE, reserved=reserved))
    return preprocessing.schema(table, table.frame, books, Independent()), books.ledger


@pytest.mark.parametrize("name", PREPROCESSINGS)
def test_each_makes_codes_of_the_table_for_its_share_and_values_of_them(table, name):
    schema, ledger = preprocessed(table, name)
    assert schema.domain().attributes == table.domain.attributes
    assert ledger.mu_squared <= ledger.budget * Fraction(1, 10)
    assert bool(ledger.charges) is (name != "equal_width")
    codes = np.stack([np.arange(200) % size for size in schema.domain().sizes], axis=1)
    values = decoded(schema, codes, seed=0)
    assert set(values["job"]) <= set(JOBS)
    assert values["income"].dropna().between(0, 9_999).all()
    assert len(table.encode(values)) == 200


def test_numbers_are_finer_where_rows_are_and_rare_categories_share_a_code(table):
    income, age, _, _ = preprocessed(table, "equal_mass")[0].columns
    places = income.locate(np.array([0, 250, 500, 1_000, 9_000, 9_999]))[0]
    assert places[2] - places[0] > 3 > places[5] - places[4]
    assert age == table.schema.columns[1]
    job = preprocessed(table, "equal_width+rare")[0].columns[2]
    codes = np.array(job.merging.codes)
    assert job.num_values == 21
    assert codes[:20].tolist() == list(range(20))
    assert set(codes[20:]) == {20}
    schema, ledger = preprocessed(table, "equal_width")
    assert schema.domain() == table.domain
    assert ledger.charges == ()


def test_names_and_shares_that_say_nothing_are_refused():
    with pytest.raises(ValueError, match="choose from"):
        Preprocessing(name="rare")
    with pytest.raises(ValueError, match="share"):
        Preprocessing(name="equal_mass", share=Fraction(1))
    with pytest.raises(ValueError, match="There is no 'dawa'"):
        Compared(name="dawa / mst / pgm")


def test_registered_parts_make_arms_that_have_names_settings_and_an_order():
    names = names_of(PREPROCESSINGS, SELECTS, tuple(ENGINES))
    assert len(names) == len(set(names)) == len(PREPROCESSINGS) * len(SELECTS) * len(ENGINES)
    for name in names[:: len(ENGINES) + 1]:
        assert is_arm(name)
        preprocess, select, synthesize = parts_of(name)
        arm = Compared(name=name)
        assert arm.preprocessing == Preprocessing(name=preprocess)
        made = arm.made(3)
        assert type(made) is type(named_methods()[select]())
        assert type(made.engine) is type(engine_of(synthesize))
    assert names_of(None, None, None) == []
    assert not is_arm("PrivPGD-MST")
    arm = Compared(name="equal_mass / aim / particles", num_particles=70, max_megabytes=3.0)
    made = arm.made(5)
    assert (made.engine.num_particles, made.engine.seed, made.max_megabytes) == (70, 5, 3.0)
    assert arm.settings() == {"share": 0.1, "num_particles": 70, "max_megabytes": 3.0}
    assert Compared(name="equal_width / mwem / pgm", max_megabytes=3.0).made(0).max_megabytes == 3
    found = settings_of_parts()
    assert set(found[found["kind"] == "synthesize"]["part"]) == set(ENGINES)
    assert set(found[found["kind"] == "select"]["part"]) <= set(SELECTS)
    assert found["value"].str.len().max() <= 60
    for kind, known in KINDS.items():
        assert in_rank(kind, [*reversed(list(known)), "another"]) == [*known, "another"]


def results(left_out=()):
    """Scores of all arms of two parts each: an error is a sum of what each part adds."""
    adds = {"equal_width": 1.0, "equal_mass": 2.0, "mst": 0.0, "aim": 10.0}
    adds |= {"pgm": 0.0, "particles": 100.0}
    found = []
    for name in names_of(["equal_width", "equal_mass"], ["mst", "aim"], ["pgm", "particles"]):
        if any(set(pair) <= set(parts_of(name)) for pair in left_out):
            found.append({"method": name, "error": "MatchError", "reason": "they do not go"})
        else:
            value = sum(adds[part] for part in parts_of(name))
            found.append({"method": name, "metric": "l1", "value": value, "fit_seconds": 3.0})
    rows = pd.DataFrame(found).assign(table="adult", epsilon=1.0, seed=0, peak_mebibytes=5.0)
    return rows.reindex(columns=[*rows.columns, *({"error", "reason"} - set(rows.columns))])


def test_a_part_is_not_judged_by_the_company_that_it_keeps():
    everywhere = of_parts(arms_of(results()), "select")["l1"]
    assert everywhere["aim"] - everywhere["mst"] == 10
    # Without this arm aim would only stand with the better engine, and seem better than mst.
    fewer = of_parts(arms_of(results([("aim", "particles")])), "select")["l1"]
    assert fewer.to_dict() == {"aim": 11.5, "mst": 1.5}
    assert of_parts(arms_of(results([("aim", "particles")])), "select").attrs["others"] == 2


def test_what_was_refused_is_a_dash_and_has_its_reason(tmp_path):
    rows = results([("aim", "particles")])
    shown = table_of_arms(arms_of(rows), "l1")
    assert shown.loc[("equal_mass", "aim")].to_dict() == {"particles": "–", "pgm": "12"}
    written = write_exchange(rows, tmp_path)
    assert all(path.stat().st_size for path in written)
    assert (tmp_path / "exchange_adult_epsilon_1.png") in written
    page = (tmp_path / "exchange.html").read_text()
    assert "they do not go" in page
    assert "not private" in page
    assert (
        pd.read_csv(tmp_path / "exchange_not_run.csv")["reason"].tolist() == ["they do not go"] * 2
    )
    with pytest.raises(ValueError, match="no arms"):
        write_exchange(rows.assign(method="MST"), tmp_path)
