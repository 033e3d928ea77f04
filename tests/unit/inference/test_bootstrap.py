"""Bootstraps, imputations and Rubin's rules: their numbers, their words, and what they refuse."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import toy

from sdv_privpgd import rubin
from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.inference import Bootstrap
from sdv_privpgd.inference.bootstrap import bootstrap, imputations
from sdv_privpgd.inference.refits import (
    STAGE,
    Population,
    Refits,
    independent_rows,
    repeated,
    simulated_answers,
)
from sdv_privpgd.methods import ParticleGradientDescent, PrivatePGM
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery, Measurement
from sdv_privpgd.sampling.sampler import Sampler
from sdv_privpgd.synthesize.engine import Particles

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def sampler_of(model, seed):
    return Sampler(toy.SCHEMA, model, seed, held={})


@pytest.fixture(scope="module")
def refits():
    codes = toy.drawn(np.random.default_rng(0))
    release = toy.questions_of(codes, toy.Joints(), epsilon=5.0).release
    return Refits(release=release, engine=toy.Joints(), sampler_of=sampler_of)


def asked(stddev):
    grouping = Grouping.of({"b": np.array([0, 0, 1]), "c": np.array([0, 1, 1, 1])})
    queries = [CountQuery(), MarginalQuery(("c", "a")), GroupedMarginalQuery(("b", "c"), grouping)]
    return [
        Measurement(query=query, answer=np.zeros(query.shape(DOMAIN), int), stddev=stddev)
        for query in queries
    ]


def test_simulated_answers_count_the_rows_with_the_noise_that_was_known():
    codes = np.array([[0, 0, 3], [0, 1, 3], [1, 2, 0]])
    count, pair, groups = simulated_answers(asked(0.0), DOMAIN, codes, np.random.default_rng(0))
    assert count.answer.tolist() == [3]
    assert pair.answer.tolist() == [[0, 1], [0, 0], [0, 0], [2, 0]]
    assert groups.answer.tolist() == [[0, 2], [1, 0]]
    codes, rng = np.zeros((1, 3), dtype=int), np.random.default_rng(0)
    noise = [
        (each.answer - exact.answer).ravel()
        for _ in range(400)
        for each, exact in zip(
            simulated_answers(asked(7.0), DOMAIN, codes, rng),
            simulated_answers(asked(0.0), DOMAIN, codes, rng),
            strict=True,
        )
    ]
    # 5,200 draws: the standard error is 1 %.
    assert np.concatenate(noise).std() == pytest.approx(7.0, rel=0.05)


def test_rows_vary_as_a_population_s_do():
    model = Particles(domain=Domain(("a",), (2,)), codes=np.array([[0], [1]] * 50))
    rng = np.random.default_rng(0)
    means = [independent_rows(model, 100, rng).mean() for _ in range(2_000)]
    assert np.std(means) == pytest.approx(0.05, rel=0.1)  # a deck has no variance at all
    assert np.std([model.sample(100, seed).mean() for seed in range(20)]) == 0
    population = Population(model=model)
    assert np.array_equal(population.sample(9, seed=4), population.sample(9, seed=4))
    assert (population.block, population.domain) == (100, model.domain)
    assert population.marginal(("a",)).tolist() == [0.5, 0.5]


def test_a_bootstrap_keeps_the_shape_of_its_statistic(refits):
    number = bootstrap(refits, lambda rows: rows["y"].mean(), 4)
    assert isinstance(number.estimate, float)
    assert number.replicates.shape == (4,)
    assert number.interval().low < number.estimate < number.interval().high
    series = bootstrap(refits, lambda rows: rows.mean(), 4)
    assert series.stddev.index.tolist() == ["a", "b", "y"]
    assert series.replicates.columns.tolist() == ["a", "b", "y"]
    assert series.interval(0.5)["low"].gt(series.interval(0.9)["low"]).all()
    assert series.to_frame().loc["a", "estimate"] == series.estimate["a"]
    square = bootstrap(refits, lambda rows: rows.to_numpy(float).T @ rows.to_numpy(float), 4)
    assert square.stddev.shape == (3, 3)
    assert "repetitions of the fit" in str(square)


def test_a_repetition_draws_people_whose_rows_are_alike(refits):
    ledger = replace(refits.release.ledger, rows_per_person=4)
    own = replace(refits, release=replace(refits.release, ledger=ledger)).refit(0)
    assert len(own.codes) == refits.num_rows
    assert (own.codes[:4] == own.codes[0]).all()
    assert len(np.unique(own.codes[::4], axis=0)) > 1


def test_the_same_seed_gives_the_same_repetitions_and_changes_nothing(refits):
    before = pickle.dumps(refits.release.measurements), refits.release.ledger
    one, same, other = (
        bootstrap(refits, lambda rows: rows["y"].mean(), 4, seed=seed).replicates
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert (pickle.dumps(refits.release.measurements), refits.release.ledger) == before


@pytest.mark.long
def test_processes_find_what_one_process_finds_and_lambdas_stay_here(refits):
    other = Refits(release=refits.release, engine=PrivatePGM(), sampler_of=sampler_of)
    alone, together = (
        repeated(other, toy_share, range(5), num_processes=processes) for processes in (1, 2)
    )
    assert alone == together
    stuck = (each for each in ())  # a generator cannot be pickled
    found = repeated(refits, lambda refit: (stuck is None, len(refit.codes)), range(4),
                     num_processes=2)  # fmt: skip
    assert found == [(False, toy.NUM_ROWS)] * 4


def toy_share(refit):
    return float(refit.model.marginal(("y",))[1])


def test_progress_is_told_each_repetition(refits):
    steps = []

    def progress(items, stage):
        for item in items:
            yield item
            steps.append((stage, item))

    bootstrap(refits, lambda rows: rows["y"].mean(), 6, progress=progress)
    assert steps == [(STAGE, number) for number in range(2, 6)]


def test_the_error_in_this_table_is_smaller_than_in_its_population(refits):
    statistic = lambda rows: rows["y"].mean()
    table, people = (
        bootstrap(refits, statistic, 60, kind=kind) for kind in ("table", "population")
    )
    # At epsilon 5 noise is a few rows, while sampling is 22; a ratio of 2 is far away by chance.
    assert 2 * table.stddev < people.stddev
    assert people.stddev == pytest.approx(0.0112, rel=0.5)
    assert "in this table" in str(table)


def test_what_is_missing_in_a_repetition_is_left_out_and_said():
    found = Bootstrap.of(
        pd.Series({"x": 1.0, "z": 2.0}),
        [pd.Series({"x": 1.1, "z": 2.0}), pd.Series({"x": 0.9}), pd.Series({"z": 2.2, "x": 1.0})],
        kind="population",
    )
    assert found.stddev["z"] == pytest.approx(np.std([2.0, 2.2], ddof=1))
    assert found.notes[0].startswith("In 1 of 3 repetitions")


def test_a_pivot_interval_takes_the_bias_off():
    values = list(np.linspace(1.0, 1.2, 201))  # errors from 0 to 0.2, so 0.1 too much on average
    found = Bootstrap.of(1.0, values, kind="population")
    low, high = found.interval(0.9, "pivot")
    assert (low, high) == pytest.approx((0.81, 0.99), abs=1e-3)
    assert found.bias == pytest.approx(0.1)
    with pytest.raises(ValueError, match="method must be"):
        found.interval(method="percentile")


@pytest.mark.parametrize(
    ("statistic", "number", "how", "said"),
    [
        (lambda rows: "many", 50, {}, "must return a number"),
        (lambda rows: rows, 50, {}, "not a frame"),
        (lambda rows: float("nan"), 50, {}, "finite"),
        (len, 1, {}, "at least 2"),
        (len, 2.5, {}, "must be an integer"),
        (len, 50, {"kind": "rows"}, "kind must be"),
        (len, 4, {"num_processes": 0}, "num_processes"),
    ],
)
def test_what_makes_no_sense_is_refused(refits, statistic, number, how, said):
    with pytest.raises(ValueError, match=said):
        bootstrap(refits, statistic, number, **how)


def test_a_particle_engine_starts_from_the_model_with_a_seed_of_its_own(refits, monkeypatch):
    seen = []

    def fit(self, domain, measurements, *, warm_start=None, progress=None):
        seen.append((self.seed, self.num_epochs, warm_start))
        return warm_start

    monkeypatch.setattr(ParticleGradientDescent, "fit", fit)
    own = Refits(release=refits.release, engine=ParticleGradientDescent(), sampler_of=sampler_of)
    for number in range(2):
        own.refit(number)
    assert seen[0][0] != seen[1][0]
    assert [(epochs, model) for _, epochs, model in seen] == [(5, refits.release.model)] * 2


def test_imputations_are_tables_of_different_models(refits):
    tables = imputations(refits, 3, 500)
    assert [each.shape for each in tables] == [(500, 3)] * 3
    assert not tables[0].equals(tables[1])
    again = imputations(refits, 3, 500)
    assert all(one.equals(other) for one, other in zip(tables, again, strict=True))


def test_rubin_takes_arrays_and_sampling_alone_where_tables_agree_by_chance():
    found = rubin([1.0, 1.0, 1.0], [0.5, 0.4, 0.6], num_synthetic=100, num_rows=400)
    assert found.stddev**2 == pytest.approx(0.25 * 0.5)
    assert found.df == 2
    values, squares = np.array([[1.0, 5.0], [2.0, 5.5], [3.0, 4.5]]), np.full((3, 2), 0.05)
    both = rubin(values, squares, 50, 50)
    for place in range(2):
        one = rubin(values[:, place], squares[:, place], 50, 50)
        assert [part[place] for part in both] == pytest.approx(list(one))
    assert both.interval().low.shape == (2,)


@pytest.mark.parametrize("arguments", [([1.0], [1.0], 5, 5), ([1.0, 2.0], [1.0], 5, 5),
                                       ([1.0, 2.0], [1.0, 1.0], 0, 5)])  # fmt: skip
def test_rubin_refuses_what_cannot_be_combined(arguments):
    with pytest.raises(ValueError, match="at least"):
        rubin(*arguments)
