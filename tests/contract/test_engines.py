"""What every engine and its model keep to. A new engine is one line of ``ENGINES``."""

import copy
import pickle
import pkgutil
from importlib import import_module

import numpy as np
import pytest
import torch
from answers import margin, noisy_answers, number_of_rows
from engines import ENGINES
from protocols import concrete, differences
from small_engine import MaximumEntropy

from sdv_privpgd import synthesize
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.queries import Query
from sdv_privpgd.synthesize.engine import Engine, Model

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
ROWS = 20_000
PAIRS = DOMAIN.cliques(2)


def table():
    """Counts with strong dependence."""
    weights = np.random.default_rng(0).gamma(0.8, size=DOMAIN.sizes)
    return np.rint(ROWS * weights / weights.sum())


def answered(counts, cliques=PAIRS, stddev=2.0, seed=0):
    tables = {clique: margin(counts, DOMAIN, clique) for clique in cliques}
    return [number_of_rows(int(counts.sum())), *noisy_answers(tables, stddev, seed)]


@pytest.fixture(scope="module", params=ENGINES.values(), ids=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def model(engine):
    return engine.fit(DOMAIN, answered(table()))


def distance(model, counts, cliques=PAIRS):
    """Mean total variation distance from the true marginals."""
    truth = counts / counts.sum()
    far = [np.abs(model.marginal(c) - margin(truth, DOMAIN, c)).sum() / 2 for c in cliques]
    return np.mean(far)


def test_every_engine_of_the_package_is_tested():
    for module in pkgutil.iter_modules(synthesize.__path__):
        import_module(f"{synthesize.__name__}.{module.name}")
    found = concrete(Engine, synthesize.__name__)
    assert found
    assert found <= {type(engine) for engine in ENGINES.values()}


def test_it_and_its_model_are_what_the_protocols_say(engine, model):
    assert not differences(Engine, engine)
    assert not differences(Model, model)
    assert all(isinstance(query, Query) for query in engine.statistics(DOMAIN))
    assert model.domain == DOMAIN
    assert model.block >= 1


@pytest.mark.parametrize("clique", [("a",), ("c", "a"), ("b", "c"), ("c", "a", "b")], ids=str)
def test_marginals_are_probabilities_in_the_order_of_the_clique(model, clique):
    found = model.marginal(clique)
    assert found.shape == DOMAIN.shape(clique)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-6)
    turned = model.marginal(clique[::-1])
    np.testing.assert_allclose(turned, found.T, rtol=0, atol=1e-9)


def test_what_was_measured_is_reproduced_and_what_was_not_is_nearly_uniform(model, engine):
    counts = table()
    one_way = [margin(counts / counts.sum(), DOMAIN, clique) for clique in DOMAIN.cliques(1)]
    independent = np.einsum("a,b,c->abc", *one_way)
    far = np.mean(
        [
            np.abs(margin(independent - counts / counts.sum(), DOMAIN, clique)).sum() / 2
            for clique in PAIRS
        ]
    )
    assert distance(model, counts) < 0.02 < far / 10 * 2
    uniform = np.full(DOMAIN.sizes, 1_000.0)
    assert distance(engine.fit(DOMAIN, answered(uniform)), uniform) < 0.03
    model = engine.fit(DOMAIN, answered(table(), cliques=[("a", "b")]))
    assert model.sample(10, 0).shape == (10, 3)
    assert model.marginal(("c",)).sum() == pytest.approx(1, abs=1e-6)
    assert distance(model, table(), [("a", "b")]) < 0.02
    sizes = [engine.megabytes(DOMAIN, PAIRS[:number]) for number in (1, 2, 3)]
    assert 0 < sizes[0] <= sizes[1] <= sizes[2]


def test_rows_are_codes_that_follow_the_marginals_the_same_for_a_seed_and_from_a_file(model):
    rows = model.sample(5_000, 3)
    assert rows.shape == (5_000, 3)
    assert np.issubdtype(rows.dtype, np.integer)
    assert (rows >= 0).all()
    assert (rows < DOMAIN.sizes).all()
    np.testing.assert_array_equal(rows, model.sample(5_000, 3))
    assert (rows != model.sample(5_000, 4)).any()
    assert model.sample(0, 3).shape == (0, 3)
    with pytest.raises(ValueError, match=r"num_rows must be at least 0, got -1|negative"):
        model.sample(-1, 0)
    rows = model.sample(20_000, 0)
    for clique in PAIRS:
        found = np.zeros(DOMAIN.shape(clique))
        np.add.at(found, tuple(rows[:, list(DOMAIN.axes(clique))].T), 1 / len(rows))
        chance = model.marginal(clique)
        error = 5 * np.sqrt(chance * (1 - chance) / len(rows)) + 1e-4
        assert (np.abs(found - chance) <= error).all()
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.sample(40, 2), model.sample(40, 2))
    np.testing.assert_array_equal(loaded.marginal(("b", "a")), model.marginal(("b", "a")))


def test_nothing_that_it_was_given_changes_no_answer_no_model_and_no_generator(engine, model):
    measurements = answered(table())
    before = copy.deepcopy(measurements)
    again = engine.fit(DOMAIN, measurements)
    for clique in PAIRS:
        np.testing.assert_array_equal(again.marginal(clique), model.marginal(clique))
    np.testing.assert_array_equal(again.sample(50, 1), model.sample(50, 1))
    for ours, theirs in zip(measurements, before, strict=True):
        assert ours.query == theirs.query
        np.testing.assert_array_equal(ours.answer, theirs.answer)
    states = lambda: (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    torch.manual_seed(1)
    before = states()
    engine.small().fit(DOMAIN, answered(table())).sample(50, 0)
    assert states() == before
    before = {clique: model.marginal(clique).copy() for clique in PAIRS}
    warm = engine.fit(DOMAIN, answered(table(), seed=1), warm_start=model)
    assert distance(warm, table()) < 0.02
    for clique, was in before.items():
        np.testing.assert_array_equal(model.marginal(clique), was)


def test_the_bar_shows_what_the_settings_fix(engine):
    """Whatever the answers are, the same steps in the same order."""

    def told(answers):
        seen = []

        def bar(items, stage):
            for item in items:
                seen.append(stage)
                yield item

        engine.small().fit(DOMAIN, answers, progress=bar)
        return seen

    first, second = (told(answered(own)) for own in (table(), table()[::-1, :, ::-1] ** 2 // ROWS))
    assert first == second
    assert first or isinstance(engine, MaximumEntropy)
