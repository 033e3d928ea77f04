"""No constraint tells anything of the table."""

import copy

import pytest
import sdv_tables
from interference import KNOWN, OTHER_TABLES, nasty, other_values, settings
from sdv.cag import FixedIncrements, Inequality, SingleTableProgrammableConstraint

from sdv_privpgd import MSTSynthesizer, PrivPGDSynthesizer
from sdv_privpgd.constraints import FixedCombinations


class Young(SingleTableProgrammableConstraint):
    """A black box that would give itself away if it were asked of the private table."""

    def fit(self, data, metadata):
        self.fitted_on = data

    def validate_input_data(self, data):
        raise AssertionError("asked of the private table")

    def is_valid(self, synthetic_data):
        assert "CANARY" not in synthetic_data.to_csv()
        return ~(synthetic_data["age"] > 100)


@pytest.mark.long
@pytest.mark.parametrize("method", [PrivPGDSynthesizer, MSTSynthesizer])
def test_nothing_depends_on_whether_the_table_meets_constraints(method, unmoved):
    synthesizer = method(**settings(**({"method": None} if method is MSTSynthesizer else {})))
    synthesizer.add_constraints(
        [
            Inequality("age", "income"),
            FixedIncrements("age", 5),
            FixedCombinations(["ward", "grade"], [("A", 1), ("B", 2), (None, 3)]),
            Young(),
        ]
    )
    table = sdv_tables.table(120)
    meets = table.assign(age=table["age"] // 5 * 5, income=200.0, ward="A", grade=1)
    unmoved(synthesizer, table, [other_values, nasty, meets])


@pytest.mark.long
@pytest.mark.parametrize("declared", [True, False])
def test_nothing_depends_on_the_differences_of_columns_in_order(declared, unmoved):
    domain = dict(sdv_tables.PUBLIC_DOMAIN)
    if not declared:
        del domain["age"], domain["income"]
    synthesizer = MSTSynthesizer(**settings(public_domain=domain, method=None))
    synthesizer.add_constraints([Inequality("age", "income", strict_boundaries=True)])
    table = sdv_tables.table(120)
    known = KNOWN[["ward"]]
    meets = table.assign(income=table["age"] + 1)
    first = unmoved(synthesizer, table, [*OTHER_TABLES, meets], known)
    assert "sizes of 'income - age'" in first["report"]


def test_nothing_depends_on_how_many_differences_there_are_under_add_remove(unmoved):
    synthesizer = MSTSynthesizer(**settings(adjacency="add_remove", delta=1e-5, method=None))
    synthesizer.add_constraints([Inequality("age", "income")])
    unmoved(synthesizer, sdv_tables.table(120), [sdv_tables.table(n, seed=8) for n in (0, 1, 500)])


@pytest.mark.long
def test_nothing_depends_on_the_table_where_a_constraint_widens_a_range(unmoved):
    domain = {
        **sdv_tables.PUBLIC_DOMAIN,
        "age": {"range_max": 110, "decimal_places": 0, "range_is_nullable": False},
        "income": {"range_min": -(2.0**50), "range_max": -(2.0**49), "range_is_nullable": False},
    }
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=domain))
    table = sdv_tables.table(120)
    freely = copy.deepcopy(synthesizer)
    with pytest.warns(UserWarning, match="not declared"):
        freely.fit(table, allow_lost=list(table))
    assert freely.sample(500)["age"].min() > -(2.0**49), "nothing to widen"
    synthesizer.add_constraints([Inequality("age", "income")])
    known = KNOWN[["ward"]]
    unmoved(synthesizer, table, OTHER_TABLES, known)
