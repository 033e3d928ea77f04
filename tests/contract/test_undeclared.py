"""Columns whose domain nobody declared (``tests/unit/discovery`` has the mechanism)."""

import datetime
import re

import pandas as pd
import pytest
import sdv_tables
from made_up import kinds, made_up, quiet

from sdv_privpgd import Categorical, MSTSynthesizer, PrivPGDSynthesizer, fit_table, write_domain
from sdv_privpgd.discovery.plan import CLOSER
from sdv_privpgd.fitting.mismatch import UNPARSED


class TestDiscovery:
    """Columns whose domain nobody declared that are looked for first."""

    METADATA = sdv_tables.metadata_of(kinds(age="numerical", ward="categorical", ill="boolean"))

    def table(self):
        return made_up(4_000, age=(20, 60), ward="AB", ill=0.2)

    def fitted(self, **changes):
        synthesizer = PrivPGDSynthesizer(self.METADATA, 5.0, **sdv_tables.SMALL, **changes)
        with pytest.warns(UserWarning, match=r"'age', 'ward' are not declared: 0.2"):
            synthesizer.fit(self.table())
        return synthesizer

    @pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
    def test_nothing_declared_is_enough(self, adjacency):
        synthesizer = self.fitted(adjacency=adjacency, delta=1e-5)
        rows = synthesizer.sample(500)
        found = synthesizer.discovered_domain()["age"]
        assert rows["age"].between(found["range_min"], found["range_max"]).all()
        assert rows["age"].between(18, 64).mean() > 0.99  # one of 600 fits had a row outside
        assert set(rows["ward"].dropna()) <= {"A", "B", "other"}
        assert 0.99 * 5.0 < synthesizer.ledger.spent() <= 5.0
        charges = synthesizer.ledger.charges
        begun = [charge.what for charge in charges].index(UNPARSED) + 1
        named = [charge.what for charge in charges[begun:]]
        discovered = [
            "number of rows",
            "categories of undeclared columns",
            "numbers that many rows share",
            "sizes of numbers and dates",
            "precisions of numbers and dates",
            "values of columns on fine grids",
        ]
        again = {"rarer categories of undeclared columns", CLOSER}  # where the noise says so
        assert [each for each in named if each not in again][: len(discovered)] == discovered
        spent = charges[begun:][: named.index(discovered[-1]) + 1]
        share = sum(charge.mu_squared for charge in spent)
        assert float(share / synthesizer.ledger.budget) == pytest.approx(0.2)
        assert " open " in synthesizer.privacy_report()

    def test_a_plan_says_how_many_rows_a_category_needs_and_one_of_many_columns_needs_fewer(self):
        """At epsilon 0.2 a sixth of 3,000 rows is enough, of the only open column of four."""
        columns = {name: {"sdtype": "boolean"} for name in "abc"} | {"x": {"sdtype": "categorical"}}
        few = PrivPGDSynthesizer(sdv_tables.metadata_of(columns), 0.2).plan(3_000).text
        assert "A category of 'x' is found if" in " ".join(few.split())
        assert 100 < int(re.search(r"if\s+about\s+([\d,]+)\s+rows", few)[1]) < 500

    def test_what_is_declared_is_not_looked_for_and_has_equal_cells_without_a_share(self):
        synthesizer = PrivPGDSynthesizer(
            self.METADATA,
            5.0,
            public_domain={"ward": {"range_values": ["A", "B", "C"]}},
            **sdv_tables.SMALL,
        )
        with pytest.warns(UserWarning, match=r"'age' are not declared"):
            synthesizer.fit(self.table())
        assert set(synthesizer.sample(300)["ward"].dropna()) >= {"A", "B"}
        assert not any("categories" in charge.what for charge in synthesizer.ledger.charges)
        domain = {"age": {"range_min": 0, "range_max": 3_199, "decimal_places": 0}}
        domain["ward"] = {"range_values": ["A", "B"]}
        synthesizer = PrivPGDSynthesizer(
            self.METADATA, 5.0, public_domain=domain, discovery_share=0, **sdv_tables.SMALL
        )
        synthesizer.fit(self.table())
        assert synthesizer.sample(500)["age"].max() > 90  # of a cell of 0 to 99

    def test_a_declared_range_gets_a_shape_for_its_part_of_the_share(self):
        domain = {"age": {"range_min": 0, "range_max": 10_000_000, "decimal_places": 0}}
        domain["ward"] = {"range_values": ["A", "B"]}
        synthesizer = PrivPGDSynthesizer(
            self.METADATA, 5.0, public_domain=domain, **sdv_tables.SMALL
        )
        synthesizer.fit(self.table())
        ages = synthesizer.sample(500)["age"]
        assert 35 < ages.median() < 45
        assert (ages <= 64).mean() > 0.99
        looks = "many rows share", "precisions", "where rows lie", "fine grids"
        looked = [
            charge
            for charge in synthesizer.ledger.charges
            if any(words in charge.what for words in looks)
        ]
        share = float(sum(charge.mu_squared for charge in looked) / synthesizer.ledger.budget)
        assert share == pytest.approx(0.1)


@pytest.mark.parametrize(
    "values",
    [
        [datetime.date(2024, month, 1) for month in (1, 5, 9)],
        [datetime.datetime(2024, month, 1, 8, 30) for month in (1, 5, 9)],
        [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1), datetime.date(9999, 12, 31)],
        [datetime.time(hour) for hour in (8, 12, 18)],
    ],
    ids=["dates", "moments", "both", "times"],
)
def test_found_dates_come_back_as_themselves(values):
    table = pd.DataFrame({"seen": pd.Series(values * 2_000, dtype=object)})
    synthesizer = MSTSynthesizer(sdv_tables.metadata_of({"seen": {"sdtype": "categorical"}}), 5.0)
    with quiet():
        synthesizer.fit(table)
    found = synthesizer.discovered_domain()
    assert sorted(map(repr, found["seen"]["range_values"])) == sorted(map(repr, values))
    rows = synthesizer.sample(300)["seen"]
    assert rows.notna().all()
    assert set(rows) == set(values)
    if any(type(each) is datetime.date for each in values):
        assert set(map(type, rows)) == set(map(type, values))
    with pytest.raises(ValueError, match="range_values of 'seen' cannot be written to a file"):
        write_domain(found, "domain.json")
    again = MSTSynthesizer(
        sdv_tables.metadata_of(kinds(seen="categorical")), 5.0, public_domain=found
    )
    with quiet():
        again.fit(table)
    assert set(again.sample(300)["seen"]) == set(values)


def test_levels_that_were_found_have_no_order_and_declared_ones_theirs():
    """In the order of the alphabet, which is not theirs, high would be below low."""
    levels = ["low", "mid", "high"]
    edu = pd.Series(levels * 700, dtype=pd.CategoricalDtype(levels, ordered=True))
    table = pd.DataFrame({"edu": edu})
    found = fit_table(table, {"edu": Categorical()}, 5.0, method="privpgd+pgm").sample(50)["edu"]
    assert not found.cat.ordered
    assert {*found.cat.categories} >= {*levels}
    known = {"edu": Categorical(levels)}
    declared = fit_table(table, known, 5.0, method="privpgd+pgm").sample(50)["edu"]
    assert declared.cat.ordered
    assert declared.cat.categories.tolist() == levels
