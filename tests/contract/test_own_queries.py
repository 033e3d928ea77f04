"""Methods with queries of their own behind the door: files, pages, refits, audits and refusals."""

import pickle
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import (
    Boolean,
    Categorical,
    FittedTable,
    Numerical,
    Ordinal,
    PrivacyBudgetError,
    PrivacyLedger,
    PrivPGDSynthesizer,
    draft_metadata,
    fit_table,
    measure,
    plan_table,
)
from sdv_privpgd.audit import audit_fit
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.features import EmbeddingQuery
from sdv_privpgd.fitting.mismatch import UNPARSED
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods import (
    DPCTGAN,
    DPMERF,
    MST,
    AnnealedProjection,
    DPDiffusion,
    GeneratorNetwork,
    PrivatePGM,
    RAPPlusPlus,
    dp_sgd,
)
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, raised
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import Adjacency, CutMarginalQuery

COLUMNS = {
    "age": Numerical(0, 110, decimal_places=0),
    "pay": Numerical(0, 5_000, decimal_places=0),
    "ward": Categorical(["A", "B"]),
    "ill": Boolean(),
}
FEW = {**COLUMNS, "age": Numerical(0, 110, decimal_places=0, num_bins=6)}
del FEW["pay"]
TABLE = pd.DataFrame(
    {
        "age": [3, 40, 90, None] * 50,
        "pay": [10, 900, 4_000, 3_000] * 50,
        "ward": ["A", "B"] * 100,
        "ill": [True, False] * 100,
    }
)
ANNEALED = AnnealedProjection(num_components=60, steps=20, slopes=3)
SMALL = {
    "rap++": (COLUMNS, RAPPlusPlus(rounds=2, queries=3, directions=6, engine=ANNEALED)),
    "dp-merf": (FEW, DPMERF(num_features=30, engine=GeneratorNetwork(steps=5))),
}
NETWORKS = [DPDiffusion(steps=4, batch=20, width=8), DPCTGAN(steps=4, batch=20, width=8)]


def small(name, epsilon=2.0, table=TABLE, target="ill", **settings):
    columns, method = SMALL[name]
    columns = settings.pop("columns", columns)
    settings = {"discovery_share": 0, **settings}
    return fit_table(
        table[list(columns)], columns, epsilon, target=target, method=method, **settings
    )


SAID = {
    "rap++": ("random hyperplanes of numbers by ill", "multitask learning"),
    "dp-merf": ("random Fourier features of the rows, each by ill", "DP-MERF"),
}


@pytest.fixture(scope="module")
def fitted():
    return small("rap++")


def trained(columns=FEW, epsilon=2.0, delta=1e-5, *, table=TABLE, method=NETWORKS[0], **settings):
    return fit_table(table[list(columns)], columns, epsilon, delta, method=method, **settings)


def curator(shared):
    codes = np.zeros((9, 2), dtype=np.int64)
    return Curator(Dataset(Domain(("a", "b"), (2, 3)), codes), shared)


def come_back(fitted, path):
    """What a file holds: the model and its ledger, with all that there was to spend."""
    fitted.reset_sampling()  # other tests share the fit, and may have sampled
    fitted.save(path)
    loaded = FittedTable.load(path)
    pd.testing.assert_frame_equal(loaded.sample(30), fitted.sample(30))
    assert loaded.ledger == read_ledger(fitted.ledger.to_json()) == fitted.ledger
    assert fitted.ledger.remaining == 0
    return loaded


@pytest.mark.parametrize("name", SMALL)
def test_a_file_and_a_page_hold_the_model_its_ledger_and_its_queries(name, tmp_path):
    each = small(name)
    page = each.report().html()
    assert all(words in page for words in SAID[name])
    assert name != "dp-merf" or "30 random features by ill" in str(each.report().to_dict())
    loaded = come_back(each, tmp_path / "model.zip")
    queries = [known.query for known in loaded.fitted.release.measurements]
    features = [query for query in queries if isinstance(query, EmbeddingQuery)]
    assert len(features) == ("random Fourier features" in page)
    assert all((query.seed, query.label) == (0, "ill") for query in features)
    refits = each.fitted.refits
    assert refits.refit(1).model.sample(4, 0).shape == (4, each.sample(1).shape[1])
    again = pickle.loads(pickle.dumps(refits)).refit(1).model
    assert (again.sample(50, 0) == refits.refit(1).model.sample(50, 0)).all()


@pytest.mark.parametrize(
    ("method", "adjacency"), [*zip(NETWORKS, ["replace_one", "add_remove"], strict=True)]
)
def test_a_file_and_a_page_hold_a_training(method, adjacency, tmp_path):
    fitted = trained(method=method, adjacency=adjacency)
    come_back(fitted, tmp_path / "model.zip")
    assert fitted.ledger.spent() <= 2.0
    assert "weaker than counts" in fitted.privacy_report()
    assert "4 random samples" in fitted.report().html()


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL)
def test_an_audit_finds_nothing(name, plant):
    columns, method = SMALL[name]
    report = audit_fit(
        columns, epsilon=6.0, runs=200, false_alarms=1e-7, method=method, discovery_share=0
    )
    assert report.to_dict()["failed"] == []


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("dp-merf+particles", "Choose another engine"),
        (DPMERF(engine=PrivatePGM()), "Choose another engine"),
        ("privpgd+generator", "Choose another engine"),
        (MST(engine=GeneratorNetwork()), "Choose another engine"),
        ("dp-diffusion+pgm", "makes its rows without an engine"),
        ("mst+diffusion", "method must be one of"),
        ("rap+++particles", r"such as 'rap\+\+'"),
        (RAPPlusPlus(engine=PrivatePGM()), r"such as 'rap\+\+'"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused_before_a_row_is_read(method, said):
    with pytest.raises(ValueError, match=said):
        fit_table("no such file.csv", COLUMNS, 1.0, method=method)


@pytest.mark.parametrize("name", ["dp-merf", "dp-diffusion", "rap++"])
def test_holders_do_not_measure_what_is_no_table(name):
    with pytest.raises(ValueError, match="a release holds tables"):
        measure("no such file.csv", COLUMNS, 1.0, site="here", method=name)


def test_each_answer_is_bought_once_and_kept_as_it_is(fitted):
    """The published code adds new noise to all earlier answers in each round, uncharged."""
    kept = fitted.fitted.release.measurements
    assert len({each.query for each in kept}) == len(kept)
    charged = [
        charge.num_queries
        for charge in fitted.ledger.charges
        if charge.stddev and charge.what != UNPARSED
    ]
    assert sum(charged) == sum(bool(each.stddev) for each in kept)
    assert fitted.ledger.remaining == 0


def test_numbers_are_cut_by_no_bins_and_few_codes_have_an_interval_each(fitted):
    assert fitted.fitted.schema.domain().sizes[:2] == (112, 1_025)
    cuts = [
        cut
        for each in fitted.fitted.release.measurements
        if isinstance(each.query, CutMarginalQuery)
        for cut in each.query.cuts
    ]
    assert any(len(cut.lines) > 1 for cut in cuts)
    assert {len(line.places) for cut in cuts for line in cut.lines} == {111, 1_024}
    own = [
        each.query
        for each in fitted.fitted.release.measurements
        if isinstance(each.query, CutMarginalQuery)
        and each.query.clique == ("ill",)
        and [len(cut.lines) for cut in each.query.cuts] == [1]
    ]
    sizes = {query.cuts[0].lines[0].name: query.cuts[0].size for query in own[:2]}
    assert sizes == {"age": 111 + 1, "pay": 100 + 1}  # and one for missing


def test_categories_in_order_are_no_numbers():
    words = [f"grade {number}" for number in range(12)]
    table = TABLE.assign(grade=[words[number % 12] for number in range(len(TABLE))])
    columns = {**COLUMNS, "grade": Ordinal(words)}
    measured = small("rap++", table=table, columns=columns).fitted.release.measurements
    cuts = [cut for each in measured for cut in getattr(each.query, "cuts", ())]
    assert {line.name for cut in cuts for line in cut.lines} == {"age", "pay"}


def test_without_a_target_and_where_numbers_are_found():
    columns = {"age": Numerical(), "pay": Numerical(0, 5_000), "ill": Boolean()}
    found = small("rap++", 5.0, columns=columns, target=None, discovery_share=0.2)
    rows = found.sample(100)
    assert rows["pay"].dropna().between(0, 5_000).all()


def test_where_all_tables_of_two_columns_are_too_large_those_of_one_get_the_rest():
    names = {name: [f"{name}{number}" for number in range(80)] for name in "pq"}
    table = pd.DataFrame({name: values * 5 for name, values in names.items()})
    columns = {name: Categorical(values) for name, values in names.items()}
    fitted = small("rap++", table=table, columns=columns, target=None)
    assert fitted.ledger.remaining == 0
    assert [charge.what for charge in fitted.ledger.charges][-1] == "tables of all columns, again"


@pytest.mark.slow
def test_what_rows_are_about_comes_out_where_noise_is_small():
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, 4_000)
    table = pd.DataFrame({"age": age, "pay": 40 * age + rng.integers(0, 900, 4_000)})
    table["ill"] = age + table["pay"] / 50 > 90
    columns = {name: COLUMNS[name] for name in table}
    method = RAPPlusPlus(rounds=3, directions=40)
    with pytest.warns(UserWarning, match="up to about 3 minutes"):
        fitted = fit_table(table, columns, 20.0, target="ill", method=method, discovery_share=0)
    rows = fitted.sample(4_000).dropna()
    assert len(rows) > 3_900
    right = (rows["age"] + rows["pay"] / 50 > 90) == rows["ill"].astype(bool)
    assert right.mean() > 0.95  # of independent columns it is about a half
    assert np.corrcoef(rows["age"], rows["pay"])[0, 1] > 0.9


@pytest.mark.parametrize("delta", [1e-9, 1e-7])
def test_a_delta_that_is_too_small_is_refused_before_anything_is_spent(delta):
    kept = Fraction(delta) * DPDiffusion.own_delta
    private = curator(
        FitLedger(PrivacyLedger.open(8.0, delta, Adjacency.REPLACE_ONE, reserved=kept))
    )
    with pytest.raises(PrivacyBudgetError, match="Choose a larger delta"):
        NETWORKS[0].measure(private)
    assert not private.ledger.charges
    for refused in (
        lambda: trained(epsilon=8.0, delta=delta),
        lambda: plan_table(FEW, 8.0, delta, num_rows=200, method="dp-ctgan"),
        lambda: PrivPGDSynthesizer(draft_metadata(TABLE.dtypes), 8.0, delta, method="dp-ctgan"),
    ):
        with pytest.raises(PrivacyBudgetError, match="Choose a larger delta") as told:
            refused()
        assert not hasattr(told.value, "__notes__")  # which would say what was spent


def test_a_delta_that_follows_from_the_rows_is_refused_before_one_of_them_is_read():
    settings = Settings(epsilon=1.0, delta=1e-5, delta_is_usual=True, method="dp-diffusion")
    assert settings.for_rows(100_000).delta == 1e-6
    with pytest.raises(PrivacyBudgetError, match="delta=1e-08 less is left here"):
        settings.for_rows(10_000_000)


def test_a_training_is_not_refined_and_nothing_is_spent_by_asking():
    fitted = trained()
    spent = fitted.ledger
    with pytest.raises(PrivacyBudgetError, match="no budget can be added") as refused:
        fitted.add_budget(TABLE[list(FEW)], 1.0)
    assert fitted.ledger == spent
    assert not hasattr(refused.value, "__notes__")
    private = curator(FitLedger(raised(spent, 1.0)))
    with pytest.raises(PrivacyBudgetError, match="no budget can be added"):
        NETWORKS[0].measure(private)
    assert private.ledger.charges == spent.charges


def test_what_is_not_declared_leaves_the_training_its_delta():
    table = pd.concat([TABLE] * 10, ignore_index=True)
    fitted = trained({**FEW, "ward": Categorical()}, 4.0, table=table)
    *_, training = fitted.ledger.charges
    assert training.delta >= Fraction(1, 10) * Fraction(1e-5) * (1 - Fraction(1, 100))
    assert fitted.ledger.spent() <= 4.0
    assert fitted.ledger.remaining == 0


def test_without_opacus_nothing_is_spent(monkeypatch):
    monkeypatch.setattr(dp_sgd, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'sdv-privpgd\[dp-sgd\]'"):
        trained()
    shared = FitLedger(
        PrivacyLedger.open(8.0, 1e-5, Adjacency.REPLACE_ONE, reserved=Fraction(1, 10**6))
    )
    private = curator(shared)
    with pytest.raises(ImportError, match=r"pip install 'sdv-privpgd\[dp-sgd\]'"):
        NETWORKS[0].measure(private)
    assert not private.ledger.charges


def test_rows_of_trained_weights_need_no_opacus(monkeypatch, tmp_path):
    trained().save(tmp_path / "model.zip")
    monkeypatch.setitem(sys.modules, "opacus", None)
    monkeypatch.delitem(sys.modules, "sdv_privpgd.methods.dp_sgd.training")
    assert len(FittedTable.load(tmp_path / "model.zip").sample(30)) == 30
