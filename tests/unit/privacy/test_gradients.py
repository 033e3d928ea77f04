"""The curator trains: it charges first, and no record adds more than is charged for."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sdv_privpgd.privacy.gradients import GradientSums, TrainingQuery
from sdv_privpgd.privacy.sampled import excess, for_one, for_rows

from sdv_privpgd.damage import digest_of
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy import curator as curator_module
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import Adjacency

DOMAIN = Domain(("a", "b"), (4, 3))
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


def query(**changes):
    settings = {"network": "toy", "num_weights": 5, "clip": 1.0, "rate": Fraction(1, 4), "steps": 3}
    return TrainingQuery(**{**settings, **changes})


class Toy:
    """Weights that add up what they are handed; its gradients are wild."""

    def __init__(self, gradient=None):
        self.seen, self.kept, self._gradient = [], [], gradient

    def gradient(self, codes):
        self.kept.append(codes)
        if self._gradient is not None:
            return self._gradient(codes)
        return np.sin(np.arange(5.0) * (codes[0] + 1)) * 10.0 ** (codes[1] - 1)

    def update(self, gradient):
        self.seen.append(gradient)

    def weights(self):
        return np.sum(self.seen, axis=0) if self.seen else np.zeros(5)


def codes(num_rows, seed=0):
    return np.random.default_rng(seed).integers(0, (4, 3), (num_rows, 2))


def ledger(adjacency=REPLACE, rows=1, reserved=Fraction(1, 10**6), **own):
    return PrivacyLedger.open(1.0, 1e-5, adjacency, rows, reserved=reserved, **own)


def curator(data=None, **own):
    return Curator(Dataset(DOMAIN, codes(60) if data is None else data), Books(ledger(**own)))


def train(held, learner, asked=None, share=Fraction(1)):
    return held.train(
        asked or query(), learner, held.ledger.remaining * share, held.ledger.reserved
    )


FLOATS = st.floats(width=64) | st.sampled_from([0.0, 1e-320, 1e308, -1e308, float("nan")])


@given(st.lists(FLOATS, min_size=1, max_size=40), st.sampled_from([1e-3, 1.0, 1e9]))
def test_no_gradient_adds_more_than_the_grid(numbers, clip):
    asked = query(num_weights=len(numbers), clip=clip)
    found = asked.clipped(np.array(numbers))
    assert (found == np.rint(found)).all()
    assert sum(int(x) ** 2 for x in found) <= asked.GRID**2


@given(st.integers(1, 5_000), st.integers(0, 99))
def test_a_long_gradient_keeps_its_direction_and_nearly_the_clip(size, seed):
    asked = query(num_weights=size)
    gradient = np.random.default_rng(seed).normal(size=size) * 1e5
    found = asked.clipped(gradient) / asked.GRID
    assert 1 - 3 * np.sqrt(size) / asked.GRID < np.linalg.norm(found) <= 1
    direction = gradient / np.linalg.norm(gradient)
    assert np.abs(found - direction).max() < 2 * np.sqrt(size) / asked.GRID


@given(st.integers(0, 30), st.integers(0, 11), st.integers(0, 11), st.integers(0, 2**31))
def test_neighbors_sums_differ_by_the_sensitivity_at_most(place, one, other, seed):
    """Whatever the sample is, and with the same samples of all other rows."""
    data = codes(31, seed)
    worlds = [data.copy(), data.copy(), np.delete(data, place, axis=0)]
    worlds[0][place] = divmod(one, 3)
    worlds[1][place] = divmod(other, 3)
    drawn = np.random.default_rng(seed).integers(0, 2**32, 31).astype("<u4")
    words = [drawn, drawn, np.delete(drawn, place)]
    asked = query()
    sums = [
        Dataset(DOMAIN, world).total(GradientSums(asked, Toy(), lambda n, own=own: own.tobytes()))[
            0
        ]
        for world, own in zip(worlds, words, strict=True)
    ]
    apart = [sum(int(x) ** 2 for x in sums[0] - each) for each in sums[1:]]
    assert apart[0] <= asked.l2_sensitivity_squared(REPLACE)
    assert apart[1] <= asked.l2_sensitivity_squared(ADD)


def test_the_sample_is_of_independent_rows_at_the_rate():
    data, counted = np.zeros((40_000, 2), dtype=int), []
    asked = query(num_weights=1, rate=Fraction(1, 8))
    for _ in range(4):
        one = Toy(lambda _: np.ones(1) * 0.5)
        (found,) = Dataset(DOMAIN, data).total(GradientSums(asked, one, np.random.bytes))
        counted.append(int(found[0]) / (asked.GRID // 2))
    mean, deviation = 5_000, (40_000 * 7 / 64) ** 0.5
    assert all(abs(each - mean) < 6 * deviation for each in counted)
    assert len(set(counted)) > 1


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("rows", [1, 3])
def test_the_charge_is_one_release_that_is_no_more_private(adjacency, rows):
    held, toy = curator(adjacency=adjacency, rows=rows), Toy()
    trained = train(held, toy)
    (charge,) = held.ledger.charges
    assert held.ledger.remaining == 0
    assert charge.mechanism == "Gaussian, rounded, of samples"
    assert 0.9 * held.ledger.reserved < charge.delta <= held.ledger.reserved
    assert charge.mu_squared_under(adjacency) <= charge.mu_squared
    assert float(charge.mu_squared_under(adjacency)) == pytest.approx(float(charge.mu_squared))
    assert 0.99 < held.ledger.spent() <= 1.0
    # Rows that are replaced are twice as many: both mu and delta are of so many.
    mu = trained.query.GRID / charge.stddev
    one = for_one(mu, float(held.ledger.reserved), rows * (2 if adjacency is REPLACE else 1))
    for each, many in ((ADD, rows), (REPLACE, 2 * rows)):
        expected = for_rows(mu, one, many)
        assert float(charge.delta_under(each)) == pytest.approx(expected, rel=1e-3)
    other = ADD if adjacency is REPLACE else REPLACE
    left = float(Fraction(1e-5) - charge.delta_under(other))
    known = epsilon_of(charge.mu_squared_under(other), left)
    assert held.ledger.spent(adjacency=other) == pytest.approx(known)
    assert read_ledger(held.ledger.to_json()) == held.ledger
    assert len(toy.seen) == 3
    assert trained.answer.tolist() == toy.weights().tolist()
    assert held.measurements == (trained,)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("rows", [1, 3])
def test_the_noise_of_all_steps_is_what_the_charge_pays_for(adjacency, rows, monkeypatch):
    """Of the sums that are noised, by the accountant: of all of them, at the rate they had."""
    drawn, noisy = [], curator_module._noisy

    def noised(answer, stddev, words):
        drawn.append(stddev)
        return noisy(answer, stddev, words)

    monkeypatch.setattr(curator_module, "_noisy", noised)
    asked, held = query(steps=40), curator(adjacency=adjacency, rows=rows)
    trained = train(held, Toy(), asked)
    (charge,) = held.ledger.charges
    assert drawn == [trained.stddev] * asked.steps
    assert charge.num_queries == asked.steps
    mu, most = asked.GRID / charge.stddev, rows * (2 if adjacency is REPLACE else 1)
    own = for_one(mu, float(charge.delta), most)
    assert excess(float(asked.rate), len(drawn), drawn[0] / asked.GRID, mu) <= own
    # And not much more: half the steps would be heard.
    assert excess(float(asked.rate), 2 * len(drawn), drawn[0] / asked.GRID, mu) > 2 * own


def test_a_file_with_another_delta_for_the_same_adjacency_is_refused():
    held = curator()
    train(held, Toy())
    facts = json.loads(held.ledger.to_json())
    facts["charges"][0]["delta"] = "0"
    facts["digest"] = digest_of(facts)
    with pytest.raises(ValueError, match="two deltas"):
        read_ledger(json.dumps(facts))


def test_it_composes_with_counts():
    from sdv_privpgd.privacy.queries import MarginalQuery

    held = curator()
    held.measure([MarginalQuery(("a",))], held.ledger.budget / 4, what="a table")
    train(held, Toy())
    assert held.ledger.remaining == 0
    assert held.ledger.spent() <= 1.0
    with pytest.raises(PrivacyBudgetError):
        held.measure([MarginalQuery(("a",))], Fraction(1, 10**6), what="one more")


def test_without_a_reserved_delta_nothing_is_read():
    held, toy = curator(reserved=Fraction(0)), Toy()
    with pytest.raises(PrivacyBudgetError, match="let the ledger reserve it"):
        train(held, toy)
    assert not toy.kept
    assert not held.ledger.charges


def test_more_than_is_left_is_refused_before_a_gradient_of_a_record(monkeypatch):
    monkeypatch.setattr(Dataset, "total", lambda *_: pytest.fail("a record was read"))
    held = curator()
    with pytest.raises(PrivacyBudgetError, match="is left"):
        train(held, Toy(), share=Fraction(101, 100))
    monkeypatch.setattr(curator_module, "_noisy", lambda *_: pytest.fail("too late"))
    with pytest.raises(BaseException, match="a record was read"):
        train(held, Toy())
    assert held.ledger.charges  # charged before the first gradient


def test_weighed_people_are_refused():
    books = Books(ledger(adjacency=ADD, rows=2, weighed=True, people="who"))

    class Weighed(Dataset):
        units = books.ledger.units

    held = Curator(Weighed(DOMAIN, codes(9)), books)
    with pytest.raises(ValueError, match="leave out weigh_people"):
        train(held, Toy())


def test_gradients_of_another_shape_are_refused_before_anything_is_spent():
    held = curator()
    with pytest.raises(ValueError, match=r"shape \(5,\)"):
        train(held, Toy(lambda _: np.zeros(4)))
    with pytest.raises(ValueError, match="float32"):
        train(held, Toy(lambda _: np.zeros(5, dtype=np.float32)))
    assert not held.ledger.charges


def test_a_gradient_that_fails_on_a_record_is_zero_and_nobody_is_told():
    calls = []

    def fails(codes):
        calls.append(1)
        if len(calls) > 2:  # not on the made-up ones
            raise RuntimeError(f"the record was {codes}")
        return np.zeros(5)

    held = curator()
    monkey = train(held, Toy(fails), query(rate=Fraction(1)))
    assert len(calls) > 100
    assert np.isfinite(monkey.answer).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "odd",
    [
        lambda _: None,
        lambda _: np.zeros(4),
        lambda _: np.zeros(5, dtype=np.float32),
        lambda _: np.full(5, np.nan),
        lambda _: np.exp(np.full(5, 1e4)),
        lambda _: np.zeros(5) / 0.0,
    ],
)
def test_what_is_no_gradient_is_zero_without_a_word(odd, caplog, capsys):
    whole = query(rate=Fraction(1))
    held, calls = Dataset(DOMAIN, codes(30)), []

    def gradient(record):
        calls.append(1)
        return odd(record)

    (found,) = held.total(GradientSums(whole, Toy(gradient), bytes))
    assert len(calls) == 30
    assert found.tolist() == [0] * 5
    assert not caplog.records
    assert capsys.readouterr() == ("", "")


def test_what_a_learner_keeps_of_a_record_is_wiped():
    held, toy = curator(data=codes(50) * 0 + 1), Toy()
    train(held, toy)
    assert all((kept == 0).all() for kept in toy.kept[2:])


def test_a_stopped_training_leaves_the_weights_that_were_paid_for():
    class Stopped(Toy):
        def update(self, gradient):
            super().update(gradient)
            if len(self.seen) == 2:
                raise KeyboardInterrupt

    held = curator()
    with pytest.raises(KeyboardInterrupt):
        train(held, Stopped())
    (kept,) = held.measurements
    assert kept.answer.shape == (5,)
    assert held.ledger.remaining == 0


def test_a_bar_that_goes_on_gets_no_more_steps():
    held, toy = curator(), Toy()
    with pytest.raises(ValueError, match="longer"):
        held.train(
            query(),
            toy,
            held.ledger.budget,
            held.ledger.reserved,
            progress=lambda items, stage: [*items, 9, 9],
        )
    assert len(toy.seen) == 3


def test_with_frozen_answers_nothing_depends_on_the_table(monkeypatch):
    monkeypatch.setattr(
        curator_module,
        "_noisy",
        lambda answer, stddev, words: np.random.default_rng(answer.size).integers(-9, 9, 5),
    )
    said = []
    for data in (codes(60), codes(60, 5), codes(60) * 0):
        held, toy = curator(data=data), Toy()
        trained = train(held, toy)
        said.append((trained.answer.tolist(), np.array(toy.seen).tolist(), held.ledger.to_json()))
    assert said[0] == said[1] == said[2]
    adding = []
    for data in (codes(60), codes(9), codes(0)):
        held, toy = curator(data=data, adjacency=ADD), Toy()
        adding.append((train(held, toy).answer.tolist(), held.ledger.to_json()))
    assert adding[0] == adding[1] == adding[2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"clip": 0.0},
        {"clip": float("nan")},
        {"rate": Fraction(1, 3)},
        {"rate": Fraction(0)},
        {"steps": 0},
        {"num_weights": True},
        {"num_weights": 2**40},
    ],
    ids=str,
)
def test_plans_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)).replace("num_weights", "weights")):
        query(**wrong)
