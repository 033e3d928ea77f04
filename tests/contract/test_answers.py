"""Both doors answer questions, whatever was measured, and say where an answer comes from."""

import gc
import pickle
from weakref import ref

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv.cag import Inequality
from sdv.errors import NotFittedError
from small_synthesizers import new

from sdv_privpgd import Between, Boolean, Categorical, MSTSynthesizer, Numerical, fit_table
from sdv_privpgd.inference import Answer, Question, TableAnswer
from sdv_privpgd.methods import AIM, ParticleGradientDescent, PrivPGD, ProtectedThreshold

TABLE = sdv_tables.table(1_500)
COLUMNS = {
    "ward": Categorical(["A", "B", "C"]),
    "smoker": Boolean(),
    "age": Numerical(0, 110, decimal_places=0),
}


def fitted(**settings):
    return fit_table(TABLE, COLUMNS, epsilon=5.0, **{"method": "privpgd+pgm", **settings})


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    "strategy", ["privpgd", "independent", "mst", "mwem", AIM(rounds_per_attribute=1)], ids=str
)
def test_whatever_is_measured_there_are_answers(strategy, adjacency):
    done = fitted(method=strategy, adjacency=adjacency, delta=1e-5)
    one = done.answer("count", where={"ward": "B"})
    true = (TABLE["ward"] == "B").sum()
    assert one.basis == "tables"
    assert abs(one.estimate - true) < 8 * one.stddev + 1
    both = done.answer("share", where={"ward": "B", "smoker": True})
    share = ((TABLE["ward"] == "B") & TABLE["smoker"]).mean()
    assert abs(both.estimate - share) < 0.2
    measured = {frozenset(q) for q in cliques(done.noisy_tables())}
    assert both.basis == ("tables" if {"ward", "smoker"} in measured else "model")
    if strategy == "independent":
        assert both.basis == "model"


def cliques(tables):
    """The columns of the measured tables."""
    names = [name for name in tables if name.startswith("column")]
    own = tables.loc[tables["kind"] == "measured", names].drop_duplicates()
    return [row.dropna() for _, row in own.iterrows()]


def test_sdv_s_classes_are_told_of_questions():
    asked = {"what": "count", "where": {"age": Between(33, 47), "smoker": True, "ward": "B"}}
    synthesizer = new(epsilon=5.0, questions=[Question(**asked)])
    synthesizer.fit(TABLE)
    assert "tables of listed questions" in {each.what for each in synthesizer.ledger.charges}
    assert synthesizer.answer(**asked).basis == "tables"
    assert synthesizer.get_parameters()["questions"] == [Question(**asked)]
    with pytest.raises(ValueError, match="questions names"):
        new(epsilon=5.0, questions=[Question(what="mean", of="wages")]).fit(TABLE)


def test_sdv_s_classes_have_the_same_two_methods(tmp_path):
    synthesizer = new(epsilon=5.0)
    with pytest.raises(NotFittedError):
        synthesizer.answer("count")
    with pytest.raises(NotFittedError):
        synthesizer.noisy_tables()
    synthesizer.fit(TABLE)
    old = synthesizer.answer("count", where={"age": Between(low=60), "smoker": True})
    assert isinstance(old, Answer)
    assert abs(old.estimate - ((TABLE["age"] >= 60) & TABLE["smoker"]).sum()) < 8 * old.stddev + 20
    table = synthesizer.answer("table", of=["ward", "grade"])
    assert isinstance(table, TableAnswer)
    assert table.estimate.sum() == pytest.approx(1_500)
    tables = synthesizer.noisy_tables(tmp_path / "tables.csv")
    assert len(pd.read_csv(tmp_path / "tables.csv")) == len(tables)
    before = pickle.dumps(synthesizer)
    loaded = pickle.loads(before)
    assert str(loaded.answer("mean", of="income")) == str(synthesizer.answer("mean", of="income"))
    assert pickle.dumps(synthesizer) == before  # asking leaves no trace
    with pytest.raises(ValueError, match="column 'mail': choose from"):
        synthesizer.answer("count", where={"mail": "a@b.example"})


@pytest.mark.long
def test_differences_are_columns_of_their_own_and_repetitions_obey_their_constraint():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 300, 1_500)
    stays = pd.DataFrame({"admitted": first, "discharged": first + rng.integers(0, 20, 1_500)})
    whole = {"range_min": 0, "range_max": 320, "decimal_places": 0}
    numbers = {name: {"sdtype": "numerical"} for name in stays}
    synthesizer = MSTSynthesizer(
        sdv_tables.metadata_of(numbers), 5.0, public_domain=dict.fromkeys(stays, whole)
    )
    synthesizer.add_constraints([Inequality("admitted", "discharged")])
    synthesizer.fit(stays)
    answer = synthesizer.answer("mean", of="discharged - admitted")
    true = (stays["discharged"] - stays["admitted"]).mean()
    assert abs(answer.estimate - true) < 3
    assert "discharged - admitted" in set(synthesizer.noisy_tables()["column_1"].dropna())
    found = synthesizer.bootstrap(lambda rows: (rows["admitted"] <= rows["discharged"]).mean(), 3)
    assert found.replicates.tolist() == [1.0, 1.0, 1.0]


def test_a_protected_statistic_leaves_the_model_s_answers_and_no_repetitions(few_epochs):
    penalty = ProtectedThreshold({"age": 1.0, "income": -0.5}, b=0.2, weight=0.1)
    synthesizer = new(method=PrivPGD(engine=ParticleGradientDescent(penalties=[penalty])))
    synthesizer.fit(TABLE)
    assert synthesizer.answer("count", where={"smoker": True}).basis == "model"
    assert len(synthesizer.noisy_tables()) == 1  # the number of rows
    with pytest.raises(ValueError, match="were not kept"):
        synthesizer.bootstrap(share_of_old_smokers)
    with pytest.raises(ValueError, match="do not determine"):
        synthesizer.regression("smoker", ["age"])


def test_a_table_of_ids_alone_has_no_answers():
    metadata = sdv_tables.metadata_of({"id": {"sdtype": "id"}}, primary_key="id")
    synthesizer = MSTSynthesizer(metadata, 1.0)
    synthesizer.fit(pd.DataFrame({"id": range(10)}))
    assert synthesizer.sample(20)["id"].is_unique
    assert synthesizer.ledger.spent() == 0
    with pytest.raises(ValueError, match="No column is modelled"):
        synthesizer.answer("count")
    assert "epsilon spent" in synthesizer.report().html()


def test_a_fitted_table_that_was_asked_is_not_kept_alive():
    done = fitted()
    done.answer("count", where={"smoker": True})
    release = ref(done.fitted.release)
    del done
    gc.collect()
    assert release() is None


def share_of_old_smokers(rows):
    return float(((rows["age"] >= 60) & rows["smoker"].astype(bool)).mean())


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_both_doors_say_how_sure_a_statistic_and_a_regression_are(adjacency):
    synthesizer = new(epsilon=5.0)
    for method in (synthesizer.bootstrap, synthesizer.imputations):
        with pytest.raises(NotFittedError):
            method(2)
    with pytest.raises(NotFittedError):
        synthesizer.regression("smoker", ["age"])
    done = fitted(adjacency=adjacency, delta=1e-5, method="privpgd")
    spent = done.ledger
    found = done.bootstrap(share_of_old_smokers, 8, num_processes=1)
    true = ((TABLE["age"] >= 60) & TABLE["smoker"]).mean()
    assert abs(found.estimate - true) < 0.1
    assert 0.001 < found.stddev < 0.05
    assert [len(table) for table in done.imputations(2, 50)] == [50, 50]
    regressed = done.regression("smoker", ["age", "ward"], kind="logistic")
    assert regressed.coefficients.index[0] == "intercept"
    assert (regressed.stddev > 0).all()
    assert done.ledger is spent


@pytest.mark.long
def test_a_model_s_answer_gets_an_interval_if_asked():
    age = Numerical(0, 110, decimal_places=0, cut_points=[20, 40, 60, 80])
    done = fit_table(TABLE, {**COLUMNS, "age": age}, epsilon=5.0, method=PrivPGD(triples=0))
    how = {"where": {"ward": "A", "smoker": True, "age": Between(low=50)}}  # which cuts a cell
    bare, sure = (done.answer("count", **how, bootstrap=number) for number in (0, 12))
    own, again = (done.answer("count", **how) for _ in range(2))
    assert bare.statistic is None
    assert bare.estimate == sure.estimate == own.estimate
    for kind in ("table", "population"):
        for each in (sure, own):
            (low, high), (least, most) = each.interval(kind), each.origin.reach
            assert 0 <= low < least < each.estimate < most < high
        assert again.interval(kind) == own.interval(kind)
    assert "from 12 repetitions of the fit. It is model-based" in str(sure)
    assert "from 25 repetitions of the fit. It is model-based" in str(own)
    exact = done.answer("count", where={"ward": "A"}, bootstrap=12)
    assert exact.stddev == done.answer("count", where={"ward": "A"}).stddev
    with pytest.raises(ValueError, match="one by one"):
        done.answer("table", of="ward", bootstrap=12)


@pytest.mark.parametrize("method", ["independent", "mst+particles"])
def test_a_model_s_answer_gets_no_interval_by_itself_where_no_table_holds_two_columns(method):
    done = fit_table(TABLE, COLUMNS, epsilon=5.0, method=method)
    columns = {"ward": "B", "smoker": True, "age": Between(30, 50)}
    bare, asked = (done.answer("share", where=columns, bootstrap=each) for each in (None, 2))
    assert bare.statistic is None
    assert asked.statistic is not None
    for each in (bare, asked):
        assert "the model does not know how they go together" in str(each)


def test_nothing_of_the_private_path_is_touched_by_repetitions(monkeypatch):
    done = fitted()

    def refuse(*_, **__):
        raise AssertionError("a curator was asked")

    monkeypatch.setattr("sdv_privpgd.privacy.curator.Curator.measure", refuse)
    monkeypatch.setattr("sdv_privpgd.privacy.curator.Curator.__init__", refuse)
    before = pickle.dumps(done.ledger)
    done.bootstrap(share_of_old_smokers, 2)
    done.imputations(2)
    done.regression("smoker", ["age"])
    assert pickle.dumps(done.ledger) == before
