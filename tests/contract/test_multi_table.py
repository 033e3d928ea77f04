"""SDV's interface for tables that belong together: its words, its add-on, and none of its looks."""

import logging
import re

import numpy as np
import pandas as pd
import pytest
import sdv.multi_table
from made_up import kinds, relationship
from sdmetrics.reports import DiagnosticReport
from sdv import cag
from sdv.errors import (
    InvalidDataError,
    NotFittedError,
    RefitWarning,
    SamplingError,
    SynthesizerInputError,
)
from sdv.metadata import Metadata
from sdv.utils import load_synthesizer

from sdv_privpgd import Categorical, DomainMismatchError, Numerical, PrivPGDMultiTableSynthesizer
from sdv_privpgd.fitting.linked_tables import RunningTables
from sdv_privpgd.inference import Question

IDS, TRUTH, KIND = {"sdtype": "id"}, {"sdtype": "boolean"}, {"sdtype": "categorical"}
LINKS = [("homes", "home", "people", "lives"), ("people", "person", "jobs", "person"),
         ("towns", "town", "homes", "town")]  # fmt: skip
TABLES = {
    "homes": {"primary_key": "home", "columns": {"home": {**IDS, "regex_format": "H[0-9]{4}"},
              "town": IDS, "rents": TRUTH}},
    "people": {"primary_key": "person", "columns": {"lives": {**IDS, "regex_format": "H[0-9]{4}"},
               "person": IDS, "age": {"sdtype": "numerical"},
               "born": {"sdtype": "numerical"}, "mail": {"sdtype": "email", "pii": True}}},
    "jobs": {"columns": {"person": IDS, "kind": {**KIND, "range_values": ["leak"]}}},
    "towns": {"primary_key": "town", "columns": {"town": IDS, "name": KIND}},
}  # fmt: skip
DOMAIN = {
    "people": {
        "age": {"range_min": 0, "range_max": 99, "decimal_places": 0},
        "born": {"range_min": 1900, "range_max": 2030, "decimal_places": 0},
    },
    "jobs": {"kind": {"range_values": ["desk", "field"]}},
}
TOWNS = pd.DataFrame({"town": [3, 7], "name": ["Aa", "Bb"]})


def metadata(links=LINKS, tables=TABLES):
    found = [relationship(*each) for each in links]
    return Metadata.load_from_dict({"tables": tables, "relationships": found})


def tables(number=600):
    rng = np.random.default_rng(0)
    homes = pd.DataFrame(
        {
            "home": [f"H{place:04}" for place in range(number)],
            "town": rng.choice([3, 7], number),
            "rents": rng.random(number) < 0.5,
        }
    )
    whose = np.repeat(homes["home"].to_numpy(), rng.integers(0, 3, number))
    age = rng.integers(0, 100, len(whose))
    people = pd.DataFrame({"lives": whose, "person": range(len(whose)), "age": age})
    people["born"], people["mail"] = 2025 - age, "CANARY@example.org"
    person = people["person"][age > 20].to_numpy()
    jobs = pd.DataFrame({"person": person, "kind": rng.choice(["desk", "field"], len(person))})
    return {"homes": homes, "people": people, "jobs": jobs, "towns": TOWNS}


def synthesizer(**more):
    told = {"max_children": {"people": 2, "jobs": 1}, "public_domain": DOMAIN}
    told |= {"public_tables": {"towns": TOWNS}, **more}
    return PrivPGDMultiTableSynthesizer(metadata(), 5.0, 1e-6, **told)


@pytest.fixture(scope="module")
def fitted():
    found = synthesizer()
    found.fit(tables())
    return found


def test_rows_are_those_of_the_metadata_and_scales_follow_noisy_sizes(fitted):
    rows = fitted.sample(np.int64(200))
    described = metadata()
    assert list(rows) == list(TABLES)
    for name, own in rows.items():
        assert list(own) == described.get_column_names(table_name=name)
    assert len(rows["homes"]) == 200
    pd.testing.assert_frame_equal(rows["towns"], TOWNS)
    assert rows["homes"]["town"].isin([3, 7]).all()
    assert rows["people"]["mail"].str.contains("@").all()
    assert not rows["people"]["mail"].str.contains("CANARY").any()
    report = DiagnosticReport()
    report.generate(tables(), fitted.sample_scale(1.0), described.to_dict(), verbose=False)
    details = report.get_details("Relationship Validity")
    assert details.loc[details["Metric"] == "ReferentialIntegrity", "Score"].tolist() == [1, 1, 1]
    rows = fitted.sample_scale(0.5)
    for name, own in tables().items():
        assert fitted._table_sizes[name] == pytest.approx(len(own), rel=0.15)
        if name != "towns":
            assert len(rows[name]) == pytest.approx(len(own) / 2, rel=0.2)
    people = fitted.sample(300, main_table_name="people")["people"]
    assert len(people) == pytest.approx(300, rel=0.2)
    from importlib.metadata import entry_points

    named = {each.name: each.value for each in entry_points(group="sdv_modules")}
    own = "sdv.multi_table:PrivPGDMultiTableSynthesizer"
    if own in named:  # what is installed may be older
        assert sdv.multi_table.PrivPGDMultiTableSynthesizer is PrivPGDMultiTableSynthesizer
    assert issubclass(PrivPGDMultiTableSynthesizer, sdv.multi_table.base.BaseMultiTableSynthesizer)


def test_what_is_public_may_be_declared_as_in_fit_tables_and_of_no_other_column():
    own = {"people": {"age": Numerical(0, 99, decimal_places=0), "born": Numerical(1900, 2030)}}
    told = synthesizer(public_domain={**own, "jobs": {"kind": Categorical(["desk", "field"])}})
    assert "declared" in str(told.check(tables()))
    for wrong in (
        {"people": {"agge": own["people"]["age"]}},
        {"homes": {"home": Categorical([1])}},
    ):
        with pytest.raises(SynthesizerInputError, match="public_domain names the columns"):
            synthesizer(public_domain=wrong)


def test_models_and_rows_are_saved_as_sdv_does_it(fitted, tmp_path):
    fitted.save(tmp_path / "tables.pkl")
    kept = load_synthesizer(tmp_path / "tables.pkl")
    fitted.reset_sampling()
    kept.reset_sampling()
    own, theirs = fitted.sample(50), kept.sample(50)
    assert all(own[name].equals(theirs[name]) for name in own)
    assert kept.get_info()["class_name"] == "PrivPGDMultiTableSynthesizer"
    assert kept.get_parameters()["epsilon"] == 5.0
    fitted.sample(20, output_folder_path=str(tmp_path / "rows"))
    assert {path.stem for path in (tmp_path / "rows").iterdir()} == set(TABLES)
    with pytest.raises(AssertionError, match="already exist"):
        fitted.sample(20, output_folder_path=str(tmp_path / "rows"))


def test_ledger_reports_and_plans_are_those_of_the_core(fitted, tmp_path):
    assert 4.9 < fitted.ledger.spent() <= 5
    assert fitted.fitted_tables.ledger == fitted.ledger
    assert "one row of 'homes'" in fitted.privacy_report()
    # Of more families than their pattern has keys.
    held = fitted.answer("share", holding={"jobs": {"kind": "desk"}})
    assert 0 <= held.estimate <= 1
    assert fitted.report(tmp_path / "page.html").to_dict()["tables"].keys() == {
        "homes", "people", "jobs"
    }  # fmt: skip
    listed = synthesizer(questions={"people": [Question(what="mean", of="age")]})
    assert "tables of listed questions" in str(listed.plan(600))
    plan = str(fitted.plan(600))
    assert re.search(r"^jobs +[\d.]+%$", plan, re.MULTILINE)
    assert "tables of listed questions" not in plan
    assert isinstance(fitted.warnings_, tuple)
    assert repr(fitted) == f"PrivPGDMultiTableSynthesizer({fitted.fitted_tables!r})"
    before = synthesizer()
    assert repr(before) == "PrivPGDMultiTableSynthesizer(4 tables, epsilon 5, not fitted)"
    assert before.ledger.spent() == 0
    with pytest.raises(NotFittedError):
        before.report()
    with pytest.raises(SamplingError):
        before.sample(5)


@pytest.mark.long
def test_a_second_fit_adds_up_and_says_so(fitted):
    twice = synthesizer(method="independent")
    twice.fit(tables())
    of_pairs = pytest.warns(UserWarning, match="homes: No two columns are measured together")
    with of_pairs, pytest.warns(RefitWarning, match="once more on the same people"):
        twice.fit(tables(), prior=fitted)
    assert "homes: Public rows" in twice.report().html()
    assert twice.ledger.spent() > 7
    domain = {**DOMAIN, "jobs": {"kind": {"range_values": ["other"]}}}
    stopped = synthesizer(method="independent", public_domain=domain)
    stopped.epsilon = 15.0  # noise does not hide that nothing is as declared
    with pytest.raises(DomainMismatchError):
        stopped.fit(tables())
    assert 0 < stopped.ledger.spent() < 15
    with pytest.warns(RefitWarning):
        stopped.fit(tables(), allow_lost={"jobs": ["kind"]})
    assert len(stopped.sample(5)["homes"]) == 5


def test_no_row_is_read_for_a_fit_that_the_ledger_cannot_hold(monkeypatch):
    homes = {"home": {"columns": {"home": IDS, "rents": TRUTH}, "primary_key": "home"}}
    links = [("home", "home", "people", "home")]
    linked = metadata(links, {**homes, "people": {"columns": {"home": IDS, "ill": TRUTH}}})
    own = PrivPGDMultiTableSynthesizer(linked, 1.0, 1e-6, max_children=2, method="independent")
    whose = {"home": [*range(300)]}
    given = {
        "home": pd.DataFrame({**whose, "rents": [True, False] * 150}),
        "people": pd.DataFrame({**whose, "ill": [True, False] * 150}),
    }
    own.fit(given)
    before, own.max_children = own.ledger, 3
    monkeypatch.setattr(RunningTables, "run", lambda *_: pytest.fail("rows are read"))
    with pytest.raises(ValueError, match=r"compose only under one adjacency.*/2/.* and .*/6/"):
        own.fit(given)
    assert own.ledger == before


def test_logs_and_errors_say_nothing_of_rows(caplog):
    own = tables()
    own["people"].loc[3, "lives"] = "CANARY"
    own["homes"].loc[5, "home"] = "CANARY"
    own["homes"].loc[6, "home"] = "CANARY"
    with caplog.at_level(logging.DEBUG):
        found = synthesizer(method="independent")
        found.fit(own)
        with pytest.warns(RefitWarning):
            found.fit({name: each.iloc[:0] for name, each in own.items()})
    assert "CANARY" not in caplog.text
    assert "TOTAL NUMBER OF ROWS" not in caplog.text
    assert "leak" not in str(found.get_metadata().to_dict())


def test_rows_meet_constraints_of_one_table():
    bound = synthesizer(method="independent")
    bound.add_constraints([cag.Inequality("age", "born", table_name="people")])
    assert [type(each).__name__ for each in bound.get_constraints()] == ["Inequality"]
    bound.fit(tables())
    rows = bound.sample(100)
    people = rows["people"]
    assert (people["age"].isna() | people["born"].isna() | (people["age"] <= people["born"])).all()
    bound.validate_constraints(rows)
    with pytest.raises(ValueError, match="not met by"):
        bound.validate_constraints(
            {"people": people.assign(age=people["born"] + 1, born=people["born"])}
        )
    with pytest.warns(RefitWarning, match="spends epsilon 5 "):
        bound.add_constraints([cag.FixedIncrements("age", 1, table_name="people")])
    with pytest.raises(SynthesizerInputError, match="would be learned"):
        bound.add_constraints([cag.FixedCombinations(["age", "born"], table_name="people")])
    with pytest.raises(SynthesizerInputError, match="table_name of one modelled table"):
        bound.add_constraints([cag.Inequality("age", "born")])


class FieldsAreForTheYoung(cag.ProgrammableConstraint):
    def is_valid(self, synthetic_data):
        jobs, people = synthetic_data["jobs"], synthetic_data["people"]
        age = jobs["person"].map(people.set_index("person")["age"])
        return {"jobs": (jobs["kind"] != "field") | (age <= 70)}


def test_rows_meet_constraints_of_several_tables_and_parents_count_their_rows():
    more = TABLES["homes"]["columns"] | kinds(size="numerical", built="numerical")
    described = {**TABLES, "homes": {**TABLES["homes"], "columns": more}}
    numbered = TABLES["jobs"]["columns"] | kinds(number="numerical")
    described["jobs"] = {**TABLES["jobs"], "columns": numbered}
    domain = {**DOMAIN, "homes": {
        "size": {"range_min": 0, "range_max": 9, "decimal_places": 0},
        "built": {"range_min": 1900, "range_max": 2000, "decimal_places": 0}},
        "jobs": {**DOMAIN["jobs"], "number": {
            "range_min": 7, "range_max": 9, "decimal_places": 0}}}  # fmt: skip
    own = tables()
    size = own["homes"]["home"].map(own["people"]["lives"].value_counts()).fillna(0).astype(int)
    own["homes"] = own["homes"].assign(size=size, built=1930)
    own["jobs"] = own["jobs"].assign(number=7)
    bound = PrivPGDMultiTableSynthesizer(
        metadata(tables=described), 5.0, 1e-6, max_children={"people": 2, "jobs": 1},
        public_domain=domain, public_tables={"towns": TOWNS}, counts={"people": "size"},
        numbers={"jobs": "number"}, method="independent",
    )  # fmt: skip
    above = cag.Inequality("homes.built", "born", table_name="people")
    bound.add_constraints([above, FieldsAreForTheYoung()])
    bound.fit(own, allow_lost={"homes": ["built", "size"], "people": ["age", "born"]})
    rows = bound.sample(150)
    assert len(rows["homes"]) == 150
    bound.validate_constraints(rows)
    assert bound.get_constraints()[1].is_valid(rows)["jobs"].all()
    people = rows["people"].merge(rows["homes"], left_on="lives", right_on="home")
    assert (
        people["born"].isna() | people["built"].isna() | (people["built"] <= people["born"])
    ).all()
    assert rows["people"]["lives"].isin(rows["homes"]["home"]).all()
    assert rows["jobs"]["person"].isin(rows["people"]["person"]).all()
    assert (rows["jobs"]["number"] == 7).all()
    held = rows["homes"]["home"].map(rows["people"]["lives"].value_counts()).fillna(0)
    assert (held.clip(upper=2) == rows["homes"]["size"].clip(upper=2)).mean() > 0.97
    for name, wrong in (
        ("people", rows["people"].assign(born=1850)),
        ("people", rows["people"].assign(age=90)),
    ):
        with pytest.raises(ValueError, match="not met by"):
            bound.validate_constraints({**rows, name: wrong})
    for said in ("counts", "numbers"):
        with pytest.raises(SynthesizerInputError, match=f"{said} names"):
            synthesizer(**{said: {"towns": "size"}}).validate(tables())
    with pytest.raises(ValueError, match="a column of whole numbers"):
        synthesizer(counts={"people": "rents"})


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("preprocess", [{}]),
        ("fit_processed_data", [{}]),
        ("update_transformers", ["homes", {}]),
        ("set_address_columns", ["homes", []]),
        ("set_table_parameters", ["homes", {}]),
    ],
)
def test_what_would_look_at_rows_is_refused(call, given):
    with pytest.raises(SynthesizerInputError, match=f"{call} is not taken"):
        getattr(synthesizer(), call)(*given)


def test_the_parameters_of_a_table_are_those_of_all():
    own = synthesizer().get_table_parameters("homes")
    assert own["synthesizer_name"] == "PrivPGDMultiTableSynthesizer"
    assert own["synthesizer_parameters"].keys() == synthesizer().get_parameters().keys()


def test_what_does_not_fit_is_said_in_public_words():
    own = tables()
    made = synthesizer()
    made.validate(own)
    assert made.check(own).to_dict()["stops"] == []
    assert made.check({**own, "jobs": own["jobs"].drop(columns="kind")}).to_dict()["stops"]
    made.auto_assign_transformers(own)
    with pytest.raises(InvalidDataError, match="not in the metadata"):
        made.fit({**own, "jobs": own["jobs"].assign(more=1)})
    with pytest.raises(InvalidDataError, match="missing in the data"):
        made.fit({**own, "jobs": own["jobs"].drop(columns="kind")})
    with pytest.raises(InvalidDataError, match="Give a dictionary"):
        made.fit(own["jobs"])
    made = synthesizer(locales=["xx_YY"])
    with pytest.raises(SynthesizerInputError, match="not compatible with any of the locales"):
        made.fit(own)
    assert not made.ledger.charges
    with pytest.raises(SynthesizerInputError, match=r"says nothing of \['jobs'\]"):
        synthesizer(max_children={"people": 2})
    with pytest.raises(SynthesizerInputError, match="at least one of them"):
        PrivPGDMultiTableSynthesizer(metadata([]), 1.0, 1e-6, max_children=1)
    with pytest.raises(SynthesizerInputError, match="starts names"):
        synthesizer(starts={"homes": "town"})
    with pytest.raises(SynthesizerInputError, match="no tables"):
        synthesizer(public_domain={"cars": {}})
    with pytest.raises(SynthesizerInputError, match="must be an sdv"):
        PrivPGDMultiTableSynthesizer(None, 1.0, 1e-6, max_children=1)
    with pytest.raises(ValueError, match="epsilon"):
        PrivPGDMultiTableSynthesizer(
            metadata(), -1.0, 1e-6, max_children=1, public_tables={"towns": TOWNS}
        )


def test_rows_in_order_begin_where_their_parent_says():
    number = {"sdtype": "numerical"}
    described = {
        "homes": {"primary_key": "home", "columns": {"home": IDS, "built": number}},
        "fires": {
            "sequence_key": "home",
            "sequence_index": "year",
            "columns": {"home": IDS, "year": number},
        },
    }
    years = {"range_min": 1900, "range_max": 2020, "decimal_places": 0}
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": range(900), "built": rng.integers(1900, 1990, 900)})
    fires = homes.loc[homes.index.repeat(rng.integers(0, 3, 900))]
    fires = fires.assign(year=fires["built"] + 5 + 9 * fires.groupby("home").cumcount())
    made = PrivPGDMultiTableSynthesizer(
        metadata([("homes", "home", "fires", "home")], described), 5.0, 1e-6, max_children=2,
        starts={"fires": "built"},
        public_domain={"homes": {"built": years}, "fires": {"year": years}},
    )  # fmt: skip
    made.fit({"homes": homes, "fires": fires[["home", "year"]]})
    rows = made.sample(500)
    late = rows["fires"]["year"] - rows["homes"].set_index("home")["built"].loc[
        rows["fires"]["home"]
    ].to_numpy()  # fmt: skip
    assert late.min() >= 0
    assert late[rows["fires"].groupby("home").cumcount() == 0].median() == pytest.approx(5, abs=2)
