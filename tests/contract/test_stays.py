"""What lies between two columns in order comes back as it was, whatever is asked for."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv import cag
from sdv.sampling import Condition

from sdv_privpgd import MSTSynthesizer, PrivPGDSynthesizer
from sdv_privpgd.methods import EngineMethod, ParticleGradientDescent, PrivPGD, ProtectedThreshold

pytestmark = pytest.mark.long

DATE = {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}
COLUMNS = {
    "admitted": DATE,
    "discharged": DATE,
    "ward": {"sdtype": "categorical"},
    "cost": {"sdtype": "numerical"},
}
YEARS = {"range_min": "2020-01-01", "range_max": "2023-01-31"}
DOMAIN = {
    "admitted": YEARS,
    "discharged": YEARS,
    "ward": {"range_values": ["A", "B"]},
    "cost": {"range_min": 0, "range_max": 30_000, "decimal_places": 0},
}


def stays(num_rows=10_000, seed=0) -> pd.DataFrame:
    """Stays of 5 days on average, over three years; those of ward B are twice as long."""
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, 2, num_rows)
    days = 1 + rng.exponential(2 + 4 * ward).astype(int)
    start = np.datetime64("2020-01-01") + rng.integers(0, 1_050, num_rows).astype("m8[D]")
    return pd.DataFrame(
        {
            "admitted": pd.Series(start).dt.strftime("%Y-%m-%d"),
            "discharged": pd.Series(start + days.astype("m8[D]")).dt.strftime("%Y-%m-%d"),
            "ward": np.array(["A", "B"])[ward],
            "cost": 300 * days + rng.integers(0, 300, num_rows),
        }
    )


def between(rows: pd.DataFrame) -> pd.Series:
    ends = (pd.to_datetime(rows[name]) for name in ("discharged", "admitted"))
    return (next(ends) - next(ends)).dt.days


def fitted(data, synthesizer_class=MSTSynthesizer, *, constraint=None, **changes):
    settings = {"public_domain": DOMAIN, **changes}
    if synthesizer_class is PrivPGDSynthesizer:
        settings = {**sdv_tables.SMALL, **settings}
    synthesizer = synthesizer_class(sdv_tables.metadata_of(COLUMNS), 2.0, **settings)
    synthesizer.add_constraints([constraint or cag.Inequality("admitted", "discharged")])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The ranges or categories")
        synthesizer.fit(data)
    return synthesizer


@pytest.fixture(scope="module")
def model():
    return fitted(stays(), PrivPGDSynthesizer, **sdv_tables.by_particles(4_000))


@pytest.mark.parametrize("domain", [DOMAIN, None], ids=["declared", "discovered"])
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_stays_are_as_long_as_they_were(domain, share):
    data = stays()
    rows = fitted(data, public_domain=domain, discovery_share=share).sample(20_000)
    found, real = between(rows), between(data)
    assert found.min() >= 0
    assert found.median() == pytest.approx(real.median(), abs=1)
    assert found.quantile(0.9) == pytest.approx(real.quantile(0.9), abs=3)
    assert found.mean() == pytest.approx(real.mean(), rel=0.25)


def test_without_a_share_cells_widen_and_codes_may_be_fitted_apart():
    rows = fitted(stays(), discovery_share=0).sample(20_000)
    assert between(rows).median() == pytest.approx(between(stays()).median(), abs=1)
    synthesizer = MSTSynthesizer(sdv_tables.metadata_of(COLUMNS), 2.0, public_domain=DOMAIN)
    synthesizer.add_constraints([cag.Inequality("admitted", "discharged")])
    codes = synthesizer.preprocess(stays())
    assert list(codes["table"].columns) == [*COLUMNS, "discharged - admitted"]
    synthesizer.fit_processed_data(codes)
    assert between(synthesizer.sample(4_000)["table"]).median() < 8
    rows = fitted(stays(), discovery_share=0.2).sample(50_000)
    assert rows["discharged"].value_counts().max() < 5 * len(rows) / 1_050


def test_stays_depend_on_the_other_columns(model):
    rows = model.sample(20_000)
    means = between(rows).groupby(rows["ward"]).mean()
    assert means["B"] > 1.5 * means["A"]
    assert between(rows).corr(rows["cost"]) > 0.5


class TestWhatIsPublic:
    def test_ledgers_pages_and_plans_name_the_difference_and_rows_do_not(self, model, tmp_path):
        name = "discharged - admitted"
        assert list(model.sample(5).columns) == list(COLUMNS)
        assert name not in str(model.get_metadata().to_dict())
        with pytest.raises(ValueError, match=name):
            model.sample_from_conditions([Condition({name: 3}, num_rows=2)])
        asked = [charge.what for charge in model.ledger.charges]
        assert "sizes of 'discharged - admitted'" in asked
        assert "sizes of 'discharged -" in model.privacy_report()
        assert "discharged - admitted" in model.report().html()
        synthesizer = MSTSynthesizer(sdv_tables.metadata_of(COLUMNS), 1.0, public_domain=DOMAIN)
        assert "discharged - admitted" not in synthesizer.plan(1_000).text
        synthesizer.add_constraints([cag.Inequality("admitted", "discharged")])
        assert "discharged - admitted" in synthesizer.plan(1_000).text


class TestConditions:
    def test_the_other_date_follows_and_rows_stay_in_order(self, model):
        wanted = Condition({"admitted": "2021-05-05"}, num_rows=500)
        rows = model.sample_from_conditions([wanted])
        assert (rows["admitted"] == "2021-05-05").all()
        assert between(rows).between(0, 60).mean() > 0.95
        assert between(rows).nunique() > 5
        wanted = Condition({"discharged": "2021-05-05"}, num_rows=500)
        rows = model.sample_from_conditions([wanted])
        assert (rows["discharged"] == "2021-05-05").all()
        assert between(rows).between(0, 60).mean() > 0.95
        assert between(rows).nunique() > 5
        known = pd.DataFrame({"admitted": ["2021-05-05"] * 20, "discharged": ["2021-08-05"] * 20})
        rows = model.sample_remaining_columns(known)
        assert (between(rows) == 92).all()
        rows = model.sample_from_conditions(
            [
                Condition({"admitted": "2023-01-31"}, num_rows=20),
                Condition({"discharged": "2020-01-01"}, num_rows=20),
                Condition({"ward": "A"}, num_rows=20),
            ]
        )
        assert len(rows) == 60
        assert (between(rows) >= 0).all()


@pytest.mark.parametrize("name", ["admitted", "discharged"])
def test_missing_dates_stay_as_frequent(name):
    data = stays()
    data.loc[data.index % 4 == 0, name] = None
    rows = fitted(data, PrivPGDSynthesizer, **sdv_tables.by_particles(4_000)).sample(8_000)
    assert rows[name].isna().mean() == pytest.approx(0.25, abs=0.05)
    other = ({"admitted", "discharged"} - {name}).pop()
    assert rows[other].isna().mean() < 0.05
    assert between(rows).median() == pytest.approx(between(data).median(), abs=1)


def test_a_statistic_of_a_column_is_protected_as_the_model_has_it(few_epochs):
    penalty = ProtectedThreshold({"discharged": 1.0}, b=0.5)
    synthesizer = PrivPGDSynthesizer(
        sdv_tables.metadata_of(COLUMNS),
        2.0,
        public_domain=DOMAIN,
        method=PrivPGD(engine=ParticleGradientDescent(penalties=[penalty], num_particles=300)),
    )
    synthesizer.add_constraints([cag.Inequality("admitted", "discharged")])
    synthesizer.fit(stays(500))
    assert "discharged - admitted" not in synthesizer.privacy_report()
    assert not (between(synthesizer.sample(500)) < 0).any()


def test_a_strategy_that_never_asks_of_the_difference_leaves_the_columns_as_they_are():
    class First(EngineMethod):
        """Asks of the user's columns alone."""

        def measure(self, curator, *, progress=None):
            from sdv_privpgd.privacy.queries import MarginalQuery

            del progress
            asked = [MarginalQuery((name,)) for name in COLUMNS]
            return curator.measure(asked, curator.ledger.remaining, what="columns")

    rows = fitted(stays(), PrivPGDSynthesizer, method=First(engine="particles")).sample(4_000)
    middle = pd.to_datetime(rows["discharged"]).median()
    assert pd.Timestamp("2021-01-01") < middle < pd.Timestamp("2022-06-30")
