"""All doors say the same of columns before they spend anything, and say none of it again."""

import json

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import heard, kinds, relationship
from sdv.metadata import Metadata

from sdv_privpgd import (
    Link,
    Numerical,
    PrivPGDMultiTableSynthesizer,
    PrivPGDSynthesizer,
    check,
    fit_table,
    fit_tables,
    plan_table,
)
from sdv_privpgd.cli.messages import in_options
from sdv_privpgd.cli.start import main
from sdv_privpgd.fitting.options import on_undeclared
from sdv_privpgd.methods import Adaptive
from sdv_privpgd.methods.dp_merf import DPMERF
from sdv_privpgd.report.warnings import OPENING
from sdv_privpgd.synthesize.generator import GeneratorNetwork
from sdv_privpgd.synthesize.relaxed_projection import GenerativeNetwork

ROWS = 400
TABLE = pd.DataFrame(
    {
        "ward": ["A", "B"] * (ROWS // 2),
        "visit_id": ["x", "y"] * (ROWS // 2),
        "seen": pd.date_range("2024-01-01", periods=ROWS, freq="h"),
        "born": pd.Series(pd.date_range("1980-01-01", periods=ROWS)).astype("date32[pyarrow]"),
        "hash": pd.Series(np.arange(ROWS) % 7).astype("uint64[pyarrow]"),
    }
)
"""Of each column but the one of days there is something to say: it is rare, or named as an id, or
may have times of the day, or is of a type that holds too large numbers and of a hidden range."""

KINDS = kinds(
    ward="categorical", visit_id="categorical", seen="datetime", born="datetime", hash="numerical"
)
DOMAIN = {
    "seen": {"range_min": "2024-01-01", "range_max": "2024-12-31"},
    "born": {"range_min": "1900-01-01", "range_max": "2024-12-31"},
}
COLUMNS = {name: {**kind, **DOMAIN.get(name, {})} for name, kind in KINDS.items()}
ASKED = {"epsilon": 3.0, "delta": 0.005, "method": "independent"}
"""With a delta that promises nothing to so many rows."""


def texts(run):
    """The warnings of a fit: what is said before it, and what after."""
    with heard() as caught:
        run()
    said = [str(each.message) for each in caught]
    first = [each for each in said if not each.startswith(OPENING)]
    return first, [each for each in said if each not in first]


def new():
    return PrivPGDSynthesizer(sdv_tables.metadata_of(KINDS), **ASKED, public_domain=DOMAIN)


def run(folder, command, metadata, domain, *options):
    """Runs a command with these files."""
    for name, own in (("metadata", metadata), ("domain", domain)):
        (folder / f"{name}.json").write_text(json.dumps(own))
        options += (f"--{name}", folder / f"{name}.json")
    assert main([command, *map(str, options)]) == 0


@pytest.fixture(scope="module")
def known():
    """What ``check`` says of the table, which reads no cell."""
    return check(TABLE, COLUMNS, **ASKED).to_dict()["warnings"]


def test_there_is_something_to_say_of_each_column(known):
    words = [
        "promises next",
        "['visit_id'] are those of ids",
        "Whose rows are these?",
        "['seen'] are counted in days",
        "{'hash': 'uint64[pyarrow]'}",
        "'ward', 'visit_id' is found",
        "where values of 'hash' lie",
    ]
    assert len(known) == len(words)
    for word, sentence in zip(words, known, strict=True):
        assert word in sentence


def test_a_plan_and_a_check_say_it(known):
    assert new().check(TABLE).to_dict()["warnings"] == known
    own = {name: facts for name, facts in COLUMNS.items() if name not in ("born", "hash")}
    told = check(TABLE[[*own]], own, **ASKED).to_dict()["warnings"]
    assert len(told) == len(known) - 2
    assert plan_table(own, **ASKED, num_rows=ROWS).to_dict()["warnings"] == told
    only = PrivPGDSynthesizer(
        sdv_tables.metadata_of({name: KINDS[name] for name in own}),
        **ASKED,
        public_domain={"seen": DOMAIN["seen"]},
    )
    assert only.plan(ROWS).to_dict()["warnings"] == told


@pytest.mark.parametrize(
    ("method", "minutes"),
    [
        ("privpgd", None),
        ("rap", None),
        ("gem", 3),
        ("mst+gem", None),
        (Adaptive(engine=GenerativeNetwork(steps=100)), None),
        (Adaptive(engine=GenerativeNetwork(), rounds=8), 2),
        ("rap++", 2),
        ("dp-merf", None),
        (DPMERF(engine=GeneratorNetwork(steps=4_000)), 3),
    ],
)
def test_a_fit_that_takes_minutes_says_so(method, minutes):
    table = pd.DataFrame({f"c{place}": [0, 1, 2] * 2_000 for place in range(15)})
    columns = dict.fromkeys(table, Numerical(0, 20, decimal_places=0, num_bins=21))
    told = check(table, columns, epsilon=5.0, method=method).to_dict()["warnings"]
    assert [said.partition(" may take ")[2] for said in told if "may take" in said] == [
        f"up to about {minutes} minutes of one core. The default method is far quicker."
    ] * (minutes is not None)


@pytest.mark.parametrize("door", ["fit_table", "the class"])
def test_a_fit_says_it_before_it_spends_and_not_again(door, known):
    own = new()
    fits = {
        "fit_table": lambda: fit_table(TABLE, COLUMNS, **ASKED),
        "the class": lambda: own.fit(TABLE),
    }
    first, after = texts(fits[door])
    # SDV's metadata have no place for ranges and categories: a class says where they go.
    undeclared = on_undeclared(own._settings(), own._description()) * (door == "the class")
    assert first == [" ".join([*undeclared, *known])]
    assert not any(sentence in text for text in after for sentence in known)


def test_the_command_line_says_it_in_its_own_words(tmp_path, capsys, known):
    TABLE.to_parquet(tmp_path / "t.parquet")
    asked = [f"--{name}={value}" for name, value in ASKED.items()]
    files = tmp_path / "t.parquet", "--out", tmp_path / "out.csv"
    metadata = sdv_tables.metadata_of(KINDS).to_dict()
    run(tmp_path, "synthesize", metadata, DOMAIN, *files, *asked, "--quiet")
    said = capsys.readouterr().err.replace("sdv-privpgd: ", "").splitlines()
    assert said[1 : len(known) + 1] == [in_options(sentence) for sentence in known]
    assert "are not declared" in said[0]
    assert len(set(said)) == len(said)


LINK = Link("homes", "people", "home", max_children=2)
TABLES = {
    "homes": pd.DataFrame({"home": range(ROWS), "town": ["x", "y"] * (ROWS // 2)}),
    "people": pd.DataFrame({"home": range(ROWS), "bank_nr": 1, "seen": TABLE["seen"]}),
}
OF_TABLES = {
    "homes": kinds(town="categorical"),
    "people": kinds(bank_nr="numerical", seen="datetime"),
}
IDS = {"home": {"sdtype": "id"}}
METADATA = {
    "tables": {
        "homes": {"primary_key": "home", "columns": {**IDS, **OF_TABLES["homes"]}},
        "people": {"columns": {**IDS, **OF_TABLES["people"]}},
    },
    "relationships": [relationship("homes", "home", "people", "home")],
}
OF_PEOPLE = {"people": {"seen": DOMAIN["seen"]}}
SEEN = {**OF_TABLES["people"]["seen"], **DOMAIN["seen"]}
DECLARED = {**OF_TABLES, "people": {**OF_TABLES["people"], "seen": SEEN}}
OF_FAMILIES = {**ASKED, "delta": 0.02}


def new_tables():
    return PrivPGDMultiTableSynthesizer(
        Metadata.load_from_dict(METADATA),
        **OF_FAMILIES,
        max_children={"people": 2},
        public_domain=OF_PEOPLE,
    )


@pytest.fixture(scope="module")
def known_of_tables():
    """What ``check`` says of each table, and of the delta of all."""
    own = check(TABLES, DECLARED, relationships=LINK, **OF_FAMILIES).to_dict()["tables"]
    return [f"{name}: {said}" for name in ("homes", "people") for said in own[name]["warnings"]]


def test_of_tables_that_belong_together_all_doors_say_the_same(known_of_tables, tmp_path, capsys):
    told = " ".join(known_of_tables)
    assert "people: The names of ['bank_nr']" in told
    assert "people: The dates of ['seen'] are counted in days" in told
    assert "homes: At this epsilon noise hides what fewer than the rows of" in told
    first, after = texts(lambda: fit_tables(TABLES, DECLARED, LINK, **OF_FAMILIES))
    assert first[0].startswith("delta=0.02 promises next to nothing in a table of any size")
    assert first[0].endswith(told)
    assert not any(sentence in text for text in after for sentence in known_of_tables)
    with pytest.warns(UserWarning, match="any size"):
        own = new_tables()
    own_first, own_after = texts(lambda: own.fit(TABLES))
    assert own_first == [told]  # it was built with the delta
    assert not any(sentence in text for text in own_after for sentence in known_of_tables)
    for name, table in TABLES.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "rows").mkdir()
    files = *(tmp_path / f"{name}.parquet" for name in TABLES), "--out", tmp_path / "rows"
    asked = [f"--{name}={value}" for name, value in OF_FAMILIES.items()]
    run(tmp_path, "synthesize", METADATA, OF_PEOPLE, *files, "--max-children", 2, *asked, "--quiet")
    said = capsys.readouterr().err.replace("sdv-privpgd: ", "").splitlines()
    own = [in_options(sentence) for sentence in known_of_tables]
    start = said.index(own[0])
    assert said[start : start + len(own)] == own
    assert len(set(said)) == len(said)
