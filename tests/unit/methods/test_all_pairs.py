"""All pairs are measured, then those that depend most, then triples in groups."""

from fractions import Fraction

import numpy as np
import pytest
from answers import open_curator
from selecting import ADD, REPLACE, chain, cliques_of
from small_engine import measured_by

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods import coarse_pairs
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import CountQuery

ONE_ROUND = PrivPGD(first_share=Fraction(1), triples=Fraction(0))


PAIRS = PrivPGD(columns=False, triples=Fraction(0))


class TestAllPairs:
    @staticmethod
    def shares(epsilon, *, num_rows=2_000, adjacency=REPLACE, known=True, strategy=ONE_ROUND):
        """The cliques that were asked about and each charge's share of mu^2."""
        curator = open_curator(chain(num_rows), epsilon=epsilon, adjacency=adjacency)
        return TestAllPairs.shares_of(curator, known=known, strategy=strategy)

    @staticmethod
    def shares_of(curator, *, known=True, strategy=ONE_ROUND):
        if known:
            curator.measure([CountQuery()], curator.ledger.budget / 100, what="number of rows")
        left = curator.ledger.remaining
        measured = measured_by(strategy, curator)
        charges = [charge for charge in curator.ledger.charges if "marginals" in charge.what]
        return cliques_of(measured), [charge.mu_squared / left for charge in charges]

    @staticmethod
    def of_five_codes(epsilon, adjacency=REPLACE):
        domain = Domain(tuple("abcde"), (5,) * 5)
        codes = np.random.default_rng(0).integers(0, 5, (2_000, 5))
        return open_curator(Dataset(domain, codes), epsilon=epsilon, adjacency=adjacency)

    @pytest.mark.parametrize("adjacency", [REPLACE, ADD])
    def test_the_louder_the_noise_the_more_goes_to_columns_alone(self, adjacency):
        names = Domain(tuple("abcde"), (5,) * 5)
        before = Fraction(0)
        for epsilon in (0.7, 0.5, 0.3, 0.03):
            curator = self.of_five_codes(epsilon, adjacency)
            asked, (one_way, pairs) = self.shares_of(curator)
            assert asked == [*names.cliques(1), *names.cliques(2)]
            assert before < one_way
            assert one_way + pairs == 1
            before = one_way

    def test_the_share_of_columns_makes_the_forecast_of_all_noise_least(self):
        """sigma^2 = 2 x 10 / mu^2; each column is the sum of 5 in 4 tables, a mean of 400."""
        curator = self.of_five_codes(1.0)
        _, (share, _) = self.shares_of(curator)
        sigma = stddev_for(20, curator.ledger.budget * Fraction(99, 100))
        noise = sigma * (5 / 4) ** 0.5 / 400
        gain = (20 * 5 / 4) / (2 * 5) - 1  # of five questions beside the sums of four tables
        part = np.linspace(0, 0.999, 1_000)
        of_columns = 22 * noise**0.75 / np.sqrt(1 + gain * part)
        best = part[np.argmin(of_columns + 1 / np.sqrt(1 - part))]
        assert float(share) == pytest.approx(best, abs=2e-3)

    def test_columns_are_asked_alone_or_again_where_that_pays(self):
        domain = Domain(tuple("abcde"), (2,) * 5)
        table = Dataset(domain, np.random.default_rng(0).integers(0, 2, (100, 5)))
        asked, shares = self.shares_of(open_curator(table, epsilon=0.1))
        assert asked == list(domain.cliques(2))
        assert shares == [1]
        constant = Dataset(Domain(tuple("abc"), (1, 1, 2)), np.zeros((50, 3), np.int64))
        curator = open_curator(constant, epsilon=1.0)
        assert len(measured_by(PAIRS, curator)) > 3
        assert curator.ledger.remaining == 0

    @pytest.mark.parametrize(
        "quiet", [{"num_rows": 2_000_000}, {"known": False}], ids=["many rows", "rows unknown"]
    )
    def test_where_the_noise_is_quiet_or_unknown_pairs_take_all(self, quiet):
        asked, shares = self.shares(1.0, **quiet)
        assert asked == list(Domain(tuple("abcde"), (3,) * 5).cliques(2))
        assert shares == [1]

    @pytest.mark.parametrize("adjacency", [REPLACE, ADD])
    def test_the_second_round_asks_again_about_what_depends(self, adjacency):
        """Attributes next to each other in the chain depend most."""
        pairs = list(Domain(tuple("abcde"), (3,) * 5).cliques(2))
        asked, shares = self.shares(2.0, adjacency=adjacency, strategy=PAIRS)
        assert asked[:10] == pairs
        again = asked[10:]
        assert again
        assert len(set(again)) == len(again) < 10
        assert {("a", "b"), ("b", "c")} & set(again)
        assert shares[0] == Fraction(2, 3)
        assert sum(shares) == 1

    @pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
    def test_no_answer_of_the_second_round_is_noisier_than_the_first(self, epsilon):
        curator = open_curator(chain(), epsilon=epsilon)
        measured = measured_by(PAIRS, curator)
        assert max(each.stddev for each in measured[10:]) <= measured[0].stddev
        assert curator.ledger.remaining == 0

    @pytest.mark.parametrize("adjacency", [REPLACE, ADD])
    def test_triples_take_their_share_last_in_groups_of_about_equal_counts(self, adjacency):
        domain = Domain(tuple("abcd"), (12, 5, 3, 1))
        codes = np.random.default_rng(0).integers(0, domain.sizes, (5_000, 4))
        curator = open_curator(Dataset(domain, codes), epsilon=2.0, adjacency=adjacency)
        measured = measured_by(PrivPGD(columns=False), curator)
        charge = curator.ledger.charges[-1]
        assert charge.mu_squared / curator.ledger.budget == Fraction(1, 10)
        assert curator.ledger.remaining == 0
        assert charge.num_queries == 1  # an attribute of one value is in none
        query = measured[-1].query
        assert query.clique == ("a", "b", "c")
        assert query.grouping.domain.sizes == (4, 4, 3, 1)
        np.testing.assert_array_equal(query.grouping["a"], np.repeat([0, 1, 2, 3], 3))
        assert not any(len(each.query.clique) > 2 for each in measured[:-1])

    def test_the_strongest_triples_are_measured_and_two_attributes_have_none(self, monkeypatch):
        two = Dataset(Domain(("a", "b"), (3, 2)), np.zeros((50, 2), np.int64))
        curator = open_curator(two, epsilon=1.0)
        measured = measured_by(PrivPGD(), curator)
        assert {each.query.clique for each in measured} == {("a", "b")}
        assert curator.ledger.remaining == 0
        monkeypatch.setattr(coarse_pairs, "MOST", 3)
        curator = open_curator(chain(20_000), epsilon=5.0)
        measured = measured_by(PrivPGD(), curator)
        asked = [each.query.clique for each in measured if len(each.query.clique) == 3]
        assert asked == [("a", "b", "c"), ("a", "b", "e"), ("b", "c", "d")]
