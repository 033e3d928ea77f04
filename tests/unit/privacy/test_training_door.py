"""The curator lets train: it charges first, hands over copies, and tells nothing of what fails."""

import json
import traceback
from fractions import Fraction

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.files import digest_of
from sdv_privpgd.methods.dp_sgd import TrainingQuery
from sdv_privpgd.privacy.accounting import delta_of_one, delta_of_rows, epsilon_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery

DOMAIN = Domain(("a", "b"), (4, 3))
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
CODES = np.random.default_rng(0).integers(0, (4, 3), (60, 2))


class Toy:
    """Writes down what it is told."""

    query = TrainingQuery(network="toy", num_weights=5, clip=1.0, rate=Fraction(1, 4), steps=3)
    steps = 3

    def __init__(self, fails=None):
        self.told, self.codes, self.taken, self.fails = None, None, 0, fails

    def prepare(self, mu, delta):
        self.told = mu, delta

    def train(self, codes, words):
        self.codes, self.seen = codes, codes.copy()
        for _ in range(self.steps):
            if self.fails is not None and self.taken == 1:
                raise self.fails
            self.taken += 1
            yield

    def weights(self):
        return np.full(5, float(self.taken))


def curator(data=CODES, adjacency=REPLACE, rows=1, reserved=Fraction(1, 10**6), **own):
    ledger = PrivacyLedger.open(1.0, 1e-5, adjacency, rows, reserved=reserved, **own)
    return Curator(Dataset(DOMAIN, data), FitLedger(ledger))


def train(held, toy, share=Fraction(1), **more):
    return held.train(toy, held.ledger.remaining * share, held.ledger.reserved, **more)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("rows", [1, 3])
def test_the_charge_is_one_release_that_is_no_more_private(adjacency, rows):
    held, toy = curator(adjacency=adjacency, rows=rows), Toy()
    trained = train(held, toy)
    (charge,) = held.ledger.charges
    assert held.ledger.remaining == 0
    assert charge.mechanism == "training, weaker than counts"
    assert 0.9 * held.ledger.reserved < charge.delta <= held.ledger.reserved
    assert charge.mu_squared_under(adjacency) <= charge.mu_squared
    assert float(charge.mu_squared_under(adjacency)) == pytest.approx(float(charge.mu_squared))
    assert 0.99 < held.ledger.spent() <= 1.0
    # Rows that are replaced are twice as many: both mu and delta are of so many.
    mu, own = toy.told
    assert mu == 1 / charge.stddev
    assert own == delta_of_one(
        mu, float(held.ledger.reserved) * (1 - 2**-40), rows * (2 if adjacency is REPLACE else 1)
    )
    for each, many in ((ADD, rows), (REPLACE, 2 * rows)):
        assert float(charge.delta_under(each)) == pytest.approx(delta_of_rows(mu, own, many))
    other = ADD if adjacency is REPLACE else REPLACE
    left = float(Fraction(1e-5) - charge.delta_under(other))
    known = epsilon_of(charge.mu_squared_under(other), left)
    assert held.ledger.spent(adjacency=other) == pytest.approx(known)
    assert read_ledger(held.ledger.to_json()) == held.ledger
    assert trained.answer.tolist() == [3.0] * 5
    assert held.measurements == (trained,)


def test_it_composes_with_counts_and_files_of_one_delta():
    held = curator()
    held.measure([MarginalQuery(("a",))], held.ledger.budget / 4, what="a table")
    train(held, Toy())
    assert held.ledger.remaining == 0
    assert held.ledger.spent() <= 1.0
    with pytest.raises(PrivacyBudgetError):
        held.measure([MarginalQuery(("a",))], Fraction(1, 10**6), what="one more")
    held = curator()
    train(held, Toy())
    facts = json.loads(held.ledger.to_json())
    facts["charges"][0]["delta"] = "0"
    facts["digest"] = digest_of(facts)
    with pytest.raises(ValueError, match="two deltas"):
        read_ledger(json.dumps(facts))


def test_it_is_handed_a_copy_of_all_codes_which_is_wiped():
    data, toy = CODES.copy(), Toy()
    train(curator(data), toy)
    assert np.array_equal(toy.seen, CODES)
    assert np.array_equal(data, CODES)
    assert not toy.codes.any()
    empty = Toy()
    train(curator(CODES[:0], adjacency=ADD), empty)
    assert empty.seen.shape == (0, 2)


def test_more_than_is_left_is_refused_before_a_record_is_read(monkeypatch):
    monkeypatch.setattr(Dataset, "blocks", lambda *_: pytest.fail("a record was read"))
    held = curator()
    with pytest.raises(PrivacyBudgetError, match="is left"):
        train(held, Toy(), share=Fraction(101, 100))
    with pytest.raises(BaseException, match="a record was read"):
        train(held, Toy())
    assert held.ledger.charges  # charged before the first record


def test_what_cannot_be_kept_and_weighed_people_are_refused_before_the_charge():
    class Unable(Toy):
        def prepare(self, mu, delta):
            raise PrivacyBudgetError("no noise is enough")

    held = curator()
    with pytest.raises(PrivacyBudgetError, match="no noise"):
        train(held, Unable())
    assert not held.ledger.charges
    ledger = PrivacyLedger.open(
        1.0, 1e-5, ADD, 2, reserved=Fraction(1, 10**6), weighed=True, people="who"
    )

    class Weighed(Dataset):
        units = ledger.units

    held = Curator(Weighed(DOMAIN, CODES[:9]), FitLedger(ledger))
    with pytest.raises(ValueError, match="leave out weighed=True"):
        train(held, Toy())
    assert not held.ledger.charges


@pytest.mark.parametrize("error", [ValueError("the record was 7"), MemoryError("7 rows")])
def test_of_a_step_that_fails_nothing_is_told(error):
    held, toy = curator(), Toy(error)
    with pytest.raises(RuntimeError, match="report this") as stopped:
        train(held, toy)
    told = stopped.value
    assert told.__cause__ is told.__context__ is None
    assert all(
        not frame.f_locals
        for frame, _ in traceback.walk_tb(told.__traceback__)
        if frame.f_globals["__name__"].endswith("privacy.curator")
    )
    assert not toy.codes.any()
    assert held.ledger.remaining == 0


def test_whoever_stops_a_training_has_the_weights_that_were_paid_for():
    held, toy = curator(), Toy(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        train(held, toy)
    (kept,) = held.measurements
    assert kept.answer.tolist() == [1.0] * 5
    assert held.ledger.remaining == 0


def test_a_bar_that_goes_on_gets_no_more_steps_and_one_that_fails_is_heard():
    held, toy = curator(), Toy()
    with pytest.raises(ValueError, match="longer"):
        train(held, toy, progress=lambda items, stage: [*items, 9, 9])
    assert toy.taken == 3

    def stops(items, stage):
        yield 0
        raise LookupError("the bar's own")

    with pytest.raises(LookupError, match="the bar's own"):
        train(curator(), Toy(), progress=stops)


def test_rows_together_cost_their_number_of_mu_and_more_delta():
    from scipy.stats import norm

    assert delta_of_rows(0.2, 1e-7, 1) == 1e-7
    assert delta_of_rows(0.2, 1e-7, 2) == pytest.approx(1e-7 + norm.cdf(norm.ppf(1e-7) + 0.2))
    own = delta_of_one(0.2, 1e-6, 4)
    assert 0.99e-6 < delta_of_rows(0.2, own, 4) <= 1e-6
    assert delta_of_one(0.2, 1e-6, 1) == 1e-6
    assert delta_of_one(5.0, 1e-6, 20) < 1e-12
