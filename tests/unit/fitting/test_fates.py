"""What becomes of columns and tied pairs is said before anything is spent, or stops a fit."""

from datetime import date, time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import made_up, quiet
from sdv.cag import Inequality
from sdv.sampling import Condition

from sdv_privpgd import (
    Between,
    Boolean,
    Categorical,
    ColumnsLostError,
    Datetime,
    DomainMismatchError,
    Key,
    Numerical,
    Ordinal,
    PrivPGDSynthesizer,
    check,
    check_domain,
    fit_table,
    plan_table,
)
from sdv_privpgd.base.words import in_columns
from sdv_privpgd.columns.facts import CategoryFacts, NumberFacts
from sdv_privpgd.columns.parser import read_facts
from sdv_privpgd.columns.readings import Readable
from sdv_privpgd.fitting.door import prepared
from sdv_privpgd.fitting.mismatch import UNPARSED, _Seen, part_for_first
from sdv_privpgd.fitting.options import parse_options
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.methods.pipeline import noise_of
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.sources.csv import CsvFiles

RNG = np.random.default_rng(0)
ROWS = 4_000
TABLE = made_up(ROWS, age=(18, 90), ward="ABC", ill=0.3, id=np.arange(ROWS))
OPEN = {"age": Numerical(), "ward": Categorical(), "ill": Boolean(), "id": Key()}


def fit(table, columns, epsilon=1.0, **settings):
    return fit_table(table, columns, epsilon, method="mst", **settings)


def test_each_column_has_a_fate():
    told = check(TABLE, OPEN, 1.0)
    found = {name: (each["values"], each["becomes"]) for name, each in columns_of(told).items()}
    assert found == {
        "age": ("found privately", "modelled"),
        "ward": ("found privately", "modelled"),
        "ill": ("declared", "modelled"),
        "id": ("made up", "numbered anew"),
    }
    assert told.to_dict()["lost"] == []
    assert "No column is lost." in str(told)


def columns_of(report):
    return report.to_dict()["columns"]


def test_what_noise_hides_in_few_rows_is_lost_unless_it_is_declared():
    few = TABLE.head(150)
    assert check(few, OPEN, 0.2).to_dict()["lost"] == ["age", "ward"]
    with pytest.raises(ColumnsLostError, match=r"'age' .*ranges.*'ward' .*range_values") as error:
        fit(few, OPEN, 0.2)
    assert error.value.columns == ("age", "ward")
    assert "allow_lost=['age', 'ward']" in str(error.value)
    many = {f"ward {number}": few["ward"] for number in range(9)}
    with pytest.raises(ColumnsLostError, match=r"and 3 others .* allow_lost=\[\*error.columns\]"):
        fit(pd.DataFrame(many), dict.fromkeys(many, Categorical()), 0.2)
    assert "Nothing was spent" in str(error.value)
    with pytest.warns(UserWarning, match="Worth a look"):
        assert len(fit(few, OPEN, 0.2, allow_lost=["age", "ward"]).sample(5)) == 5
    known = {"age": Numerical(18, 90, decimal_places=0), "ward": Categorical(["A", "B", "C"])}
    assert check(TABLE.head(150), known, 0.2).to_dict()["lost"] == []
    told = check(TABLE.head(150), OPEN, 0.2, 1e-5, adjacency="add_remove").to_dict()
    assert "noise hides what fewer than" in " ".join(told["warnings"])
    assert (told["lost"], told["num_rows"]) == ([], None)


KNOWN = {"age": Numerical(18, 90, decimal_places=0), "ward": Categorical(["A", "B", "C"])}


@pytest.mark.parametrize(("rows", "blind", "few"), [(60, 1, 1), (150, 1, 0), (200, 0, 0)])
def test_rows_that_are_too_few_whatever_they_hold_are_told_by_every_door(rows, blind, few):
    settings, description = parse_options(KNOWN, 1.0)
    fitted = prepared(settings, description, TABLE.head(rows)).told_before
    planned = plan_table(KNOWN, 1.0, num_rows=rows).to_dict()["warnings"]
    for told in (check(TABLE.head(rows), KNOWN, 1.0).to_dict()["warnings"], planned, fitted):
        said = ("nothing stops a fit" in " ".join(told), "noise would move" in " ".join(told))
        assert said == (blind, few)


@pytest.mark.parametrize(("adjacency", "part"), [("replace_one", 0.05), ("add_remove", 0.01)])
def test_a_plan_asks_the_first_question_for_as_much_as_a_fit(adjacency, part):
    told = plan_table(KNOWN, 1.0, 1e-5, num_rows=200, adjacency=adjacency).to_dict()["ledger"]
    spent = {each["what"]: Fraction(each["mu_squared"]) for each in told["charges"]}
    assert float(spent[UNPARSED] / sum(spent.values())) == pytest.approx(part, rel=0.02)


def test_a_codebook_that_fits_no_cell_stops_a_fit_to_few_rows_and_the_rest_is_left():
    table = TABLE.head(600)
    odd = {f"ward {each}": Categorical(["A", "B", "C"]) for each in range(8)}
    table = table.assign(**dict.fromkeys([*odd, "ward"], table["ward"].str.lower()))
    with pytest.raises(DomainMismatchError, match=r"first question.*'ward") as error:
        fit(table, {**KNOWN, **odd})
    (charge,) = [each for each in error.value.ledger.charges if each.what == UNPARSED]
    assert charge.mu_squared <= error.value.ledger.budget / 20


def test_how_many_rows_a_category_needs_is_said_where_that_is_a_part_of_them():
    told = [
        " ".join(check(TABLE.head(rows), OPEN, epsilon).to_dict()["warnings"])
        for rows, epsilon in ((1_000, 1.0), (1_000, 50.0))
    ]
    assert "A category of 'ward' is found if about " in told[0]
    assert "Noise hides where values of 'age' lie that fewer than about 1" in told[0]
    assert "A category" not in told[1]
    assert "Noise hides" not in told[1]


def test_what_cannot_be_read_or_is_no_column_is_said():
    spans = TABLE.assign(stay=pd.to_timedelta(TABLE["age"], "D"))
    told = check(spans, {**OPEN, "stay": Numerical()}, 1.0)
    assert "timedelta" in " ".join(told.to_dict()["stops"])
    assert "is private" not in str(told)  # as nobody has asked for the number of rows
    facts = NumberFacts(low=0, high=10**400)
    (codes,) = Readable(name="age", facts=facts).codes(TABLE["age"])
    assert set(codes) == {0}
    with pytest.raises(ValueError, match=r"allow_lost names \['wrad'\]"):
        fit(TABLE, OPEN, allow_lost=["wrad"])


@pytest.mark.parametrize("cells", [["x"] * ROWS, [None] * ROWS, [object()] * ROWS])
def test_a_check_reads_no_cell(cells):
    other = TABLE.assign(ward=cells)
    assert str(check(other, OPEN, 1.0)) == str(check(TABLE, OPEN, 1.0))


def test_a_check_of_many_columns_is_a_screen_and_names_all_in_its_numbers():
    table = pd.DataFrame({f"{'answer ' * 20}{each}": [1, 2] * 500 for each in range(100)})
    told = check(table, {**dict.fromkeys(table, Numerical(0, 3, decimal_places=0))}, 1.0)
    assert len(str(told).splitlines()) < 20
    assert max(map(len, str(told).splitlines())) < 300
    assert len(columns_of(told)) == 100


@pytest.mark.long
def test_categories_that_a_fifth_of_the_rows_would_have_to_share_are_lost():
    items = {f"item {number}": Categorical() for number in range(80)}
    said = {
        rows: " ".join(plan_table(items, 1.0, num_rows=rows).to_dict()["warnings"])
        for rows in (3_000, 4_000)
    }
    assert "'item 0'" in said[3_000]
    assert ["would be hidden" in each for each in said.values()] == [True, False]


def test_a_plan_says_what_a_fit_would_lose():
    told = {name: OPEN[name] for name in ("age", "ward", "ill")}
    few, many = (
        " ".join(plan_table(told, 0.2, num_rows=rows).to_dict()["warnings"])
        for rows in (150, 10**6)
    )
    assert "'age' would be hidden" in few
    assert "'ward' would be hidden" in few
    assert "hidden" not in many


def test_what_metadata_call_ids_and_are_not_called_so_is_told_before_a_fit():
    known = {"note": {"sdtype": "id"}, "ill": {"sdtype": "boolean"}}
    table = pd.DataFrame({"note": [f"{row} tablets" for row in range(60)], "ill": [True] * 60})
    mailed = sdv_tables.metadata_of({**known, "note": {"sdtype": "email"}}, primary_key="note")
    told = PrivPGDSynthesizer(mailed, 1.0).check(table).to_dict()["warnings"]
    assert not any("'note'" in each for each in told)
    own = PrivPGDSynthesizer(
        sdv_tables.metadata_of(known, primary_key="note"), 1.0, method="independent"
    )
    said = " ".join(own.check(table).to_dict()["warnings"])
    assert "['note'] have the sdtype id, perhaps because it was detected" in said
    assert "Whose rows" not in said  # each is another one's, or the table's
    with pytest.warns(UserWarning, match="'note'.* have the sdtype id"):
        own.fit(table)
    assert not any(
        "'note'" in each for each in fit(table, {"note": Key(), "ill": Boolean()}).warnings
    )


METADATA = sdv_tables.metadata_of(
    {"ward": {"sdtype": "categorical"}, "city": {"sdtype": "city"}, "mail": {"sdtype": "email"}}
)
CITIES = TABLE[["ward"]].assign(city="Ulm", mail="a@example.org")


def synthesizer(**domain):
    return PrivPGDSynthesizer(
        METADATA, 1.0, method="mst", public_domain={"ward": {"range_values": ["A", "B", "C"]}}
    )


def test_places_are_not_made_up_in_silence_and_what_identifies_is():
    own = synthesizer()
    assert own.check(CITIES).to_dict()["lost"] == ["city"]
    with pytest.raises(ColumnsLostError, match=r"'city' would be made up.*allow_lost=\['city'\]"):
        own.fit(CITIES)
    assert not own.ledger.charges
    own.fit(CITIES, allow_lost=["city"])
    assert own.sample(3)["mail"].nunique() == 3


def test_a_declared_type_beats_that_of_metadata():
    described = METADATA.to_dict()["tables"]["table"]["columns"]
    known = {"came": {"sdtype": "categorical"}, "id": {"sdtype": "id"}, **described}
    metadata = sdv_tables.metadata_of(known, primary_key="id")
    domain = {
        "came": Datetime("01.01.2020", "31.12.2021", datetime_format="%d.%m.%Y"),
        "city": Categorical(["Ulm"]), "ward": Categorical(["A", "B", "C"]),
    }  # fmt: skip
    assert not check_domain(metadata, domain)
    own = PrivPGDSynthesizer(metadata, 1.0, method="mst", public_domain=domain)
    own.fit(CITIES.assign(came=GERMAN, id=range(ROWS)))
    rows = own.sample(200)
    assert set(rows["city"].dropna()) == {"Ulm"}
    pd.to_datetime(rows["came"], format="%d.%m.%Y")
    with pytest.raises(ValueError, match="'id', which is not modelled: it is a key"):
        PrivPGDSynthesizer(metadata, 1.0, public_domain={"id": Numerical()})


@pytest.mark.parametrize("sdtype", ["numerical", "categorical"])
def test_categories_are_in_order_if_they_are_declared_so_whatever_the_metadata_says(sdtype):
    pain = pd.DataFrame({"pain": [1, 2, 3] * 200})
    metadata = sdv_tables.metadata_of({"pain": {"sdtype": sdtype}})
    domain = {"pain": Ordinal([1, 2, 3])}
    assert not check_domain(metadata, domain)
    own = PrivPGDSynthesizer(metadata, 3.0, method="mst", public_domain=domain)
    own.fit(pain)
    rows = own.sample_from_conditions([Condition({"pain": Between(2, None)}, num_rows=50)])
    assert rows["pain"].isin([2, 3]).all()


GERMAN = pd.date_range("2020-01-01", periods=ROWS, freq="h").strftime("%d.%m.%Y")


@pytest.mark.parametrize(
    ("cells", "declared", "remedy"),
    [
        (GERMAN, Datetime(), "datetime_format"),
        (["12 %"] * ROWS, Numerical(), "number_format"),
        (TABLE["ward"].str.lower(), Categorical(["A", "B", "C"]), "capitals"),
        (TABLE["ward"].str.lower(), Categorical(["A", "B"], other="other"), "codebook"),
        (TABLE["age"] * 365, Numerical(0, 120), "unit"),
        (np.where(TABLE["age"] < 60, "d", TABLE["ward"]), Categorical(["A", "B", "C"]), "codebook"),
        (GERMAN, Categorical(), "dates or times.* datetime_format"),
        ([f"{row / 100} %" for row in range(ROWS)], Categorical(), "number_format"),
        ([f"{row}@example.org" for row in range(ROWS)], Categorical(), "leave out"),
    ],
)
def test_cells_that_are_not_as_declared_stop_a_fit_for_little(tmp_path, cells, declared, remedy):
    table = TABLE.assign(odd=np.asarray(cells, dtype=object))
    table.to_csv(tmp_path / "table.csv", index=False)
    for rows in (table, CsvFiles(tmp_path / "table.csv", header=True)):
        with pytest.raises(DomainMismatchError, match=f"first question.*'odd'.*{remedy}") as error:
            fit(rows, {**OPEN, "odd": declared})
        assert error.value.ledger.spent() < 0.1
        assert error.value.ledger.charges[-1].what == UNPARSED


def test_a_column_may_be_unread_if_that_is_said():
    table, columns = TABLE.assign(odd="oui"), {**OPEN, "odd": Boolean()}
    with pytest.warns(UserWarning, match="'odd'"):
        allowed = fit(table, columns, allow_lost=["odd"])
    assert allowed.sample(1_000)["odd"].isna().mean() > 0.95  # noise leaves 0.7 % on average


@pytest.mark.parametrize(
    ("cells", "declared"),
    [
        ([" "] * ROWS, Numerical(0, 9)),
        (np.where(RNG.random(ROWS) < 0.03, "?", TABLE["ward"]), Categorical(["A", "B", "C"])),
        (np.where(TABLE["ill"], "31.01.2024", "never"), Categorical()),
        (GERMAN[:1].repeat(ROWS), Categorical(["01.01.2020"])),
        (["Not in the labor force, and looks for no job at all"] * ROWS, Categorical()),
    ],
    ids=["blank", "few", "some dates", "declared dates", "labels"],
)
def test_a_fit_goes_on_where_declarations_may_be_meant(cells, declared):
    table = TABLE.assign(odd=np.asarray(cells, dtype=object))
    columns = {"odd": declared, "ward": Categorical(["A", "B", "C"])}
    with quiet():
        assert len(fit(table, columns).sample(5)) == 5


@pytest.mark.parametrize(
    ("cell", "look"),
    [
        *((cell, 5) for cell in ("2024-01-31", "1/2/24 10:30", "05-Jan-2024", "12:30:01")),
        *(
            (cell, 6)
            for cell in ("12 %", "$1,234.50", "1.234,5", "-5€", "(5) £", 77.59461, "12,34")
        ),
        *((date(2024, 1, 31), 0), (time(12, 30), 0), (pd.Timestamp(0, tz="Asia/Tokyo"), 5)),
        *(
            (cell, 6)
            for cell in (Decimal("3.28301"), "USD 1,234.50", "12’345.60 CHF", "3.283E-05", "-1,5e3")
        ),
        *((cell, 7) for cell in ("a@b", "https://x", "550e8400-e29b-41d4-a716-446655440000")),
        *(
            (cell, 0)
            for cell in ("401.9", 250.01, "18-25", "18 bis 25", "5 mg", "16", "ill", "A123", 7, "")
        ),
        *((cell, 0) for cell in ("DRG 470", "1E5", "ICD 10.1")),
        *((cell, 0) for cell in ("1,2,3", "1,2")),
        *((cell * 20_000 + "!", 0) for cell in ("f", "1,", "12-", "a@", "123.", "$1", "USD 1,")),
        *((cell, code) for cell, code in ((None, 1), (object(), 2))),
    ],
)
def test_a_cell_alone_says_how_it_is_written(cell, look):
    cells = pd.Series([cell, "2024-01-31", "x"], dtype=object)
    (codes,) = Readable(name="x", facts=CategoryFacts()).codes(cells)
    assert codes.tolist() == [look, 5, 0]


@pytest.mark.parametrize(("adjacency", "blank"), [("add_remove", ROWS), ("replace_one", 11)])
def test_text_of_which_few_rows_have_the_same_stops_after_the_look(adjacency, blank):
    table = TABLE.assign(note=[f"note {each * (each % blank > 0)}" for each in range(ROWS)])
    columns = {**OPEN, "note": Categorical()}
    with pytest.raises(DomainMismatchError, match=r"look for categories.*'note'") as error:
        fit(table, columns, adjacency=adjacency, delta=1e-6)
    assert error.value.ledger.spent() < 0.5
    with pytest.warns(UserWarning, match="'note'"):
        assert (fit(table, columns, allow_lost=["note"]).sample(9)["note"] == "other").any()


STAYS = {name: {"sdtype": "numerical"} for name in ("admitted", "discharged", "price", "age")}
DAYS = {
    name: {"range_min": 0, "range_max": 364, "decimal_places": 0, "range_is_nullable": False}
    for name in STAYS
}
ENGINE = ParticleGradientDescent(num_particles=200, epochs=2)


def asked_over_codes(measurements):
    queries = [each.query for each in measurements if isinstance(each.query, MarginalQuery)]
    return {query.clique for query in queries if len(query.clique) == 2}


def test_those_of_a_constraint_and_of_a_difference_are():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 180, (300, 4)), columns=pd.Index(STAYS))
    table["discharged"] += table["admitted"]
    synthesizer = PrivPGDSynthesizer(
        sdv_tables.metadata_of(STAYS), 1.0, public_domain=DAYS,
        method=PrivPGD(most_pairs=1, triples=0, engine=ENGINE),
        discovery_share=0,
    )  # fmt: skip
    synthesizer.add_constraints([Inequality("admitted", "discharged")])
    synthesizer.fit(table)
    tables = synthesizer.noisy_tables()
    fine = tables[(tables["kind"] == "consistent") & tables["column_2"].notna()]
    pairs = set(zip(fine["column_1"], fine["column_2"], strict=True))
    assert ("admitted", "discharged") in pairs
    assert ("admitted", "discharged - admitted") in pairs
    assert ("price", "age") not in pairs


def test_those_that_a_user_wants_are_and_what_is_no_column_is_refused():
    table = pd.DataFrame({name: [True, False] * 200 for name in "abcd"})
    columns = dict.fromkeys(table.columns, Boolean())
    wanted = PrivPGD(most_pairs=1, pairs=(("d", "c"),), triples=0, engine=ENGINE)
    fitted = fit_table(table, columns, 1.0, method=wanted)
    measured = fitted.fitted.release.measurements
    assert asked_over_codes(measured) == {("c", "d")}
    assert sum(isinstance(each.query, GroupedMarginalQuery) for each in measured) == 6
    text = fitted.report().to_dict()
    assert "coarse tables of all pairs of columns" in str(text) + fitted.report().html()
    with pytest.raises(ValueError, match="'z'"):
        fit_table(table, columns, 1.0, method=PrivPGD(pairs=(("a", "z"),), engine=ENGINE))


@pytest.mark.parametrize("sdtype", ["boolean", "categorical", "numerical", "datetime"])
def test_noise_alone_does_not_say_that_rows_lie_beyond_what_is_told_apart(sdtype):
    """Of so few rows that five deviations of one noisy count are thirteen times as many."""
    noise = np.array([0.0, 0.0, 9.0, 9.0])
    assert _Seen(read_facts("x", {"sdtype": sdtype}), noise, 13.0).misfit() is None


@pytest.mark.parametrize("rows", [700, 900, 1_200])
def test_the_first_question_sees_a_column_of_which_all_cells_are_other_ones(rows):
    """A fit stops if five deviations less are most rows; two more, and it stops 98 of 100."""
    words = {"sdtype": "categorical", "range_values": ["A", "B"], "other_value": "other"}
    declared = {name: read_facts(name, words) for name in "abcd"}
    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    part = part_for_first(ledger, declared, rows)
    noise = noise_of(ledger, [MarginalQuery((name,)) for name in declared], part)
    assert ledger.budget / 100 < part <= ledger.budget / 20
    assert noise * (5 + 2) <= rows / 2 * (1 + 1e-9)


def test_a_name_of_several_lines_stands_on_one():
    rows = [("column", "type"), ("satisfied?\nTick one", "ordinal")]
    assert in_columns(rows) == ["column               type", "satisfied? Tick one  ordinal"]
