"""What planted faults in the core had got past all other tests."""

import copy
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from answers import charge_of, values_of

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.features import SigmoidSumQuery
from sdv_privpgd.privacy import accounting, counting, ledger, selection, thresholding
from sdv_privpgd.privacy.counting import Weights
from sdv_privpgd.privacy.curator import Curator, _squared, _usable_stddev
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.noise import MAX_STDDEV, SAMPLING_DELTA
from sdv_privpgd.privacy.queries import (
    Adjacency,
    CountQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    ModelErrorQuery,
)
from sdv_privpgd.privacy.streams import ClusterRecords, MarginRecords
from sdv_privpgd.privacy.thresholding import thresholded_delta
from sdv_privpgd.privacy.value_counts import NumberCounts

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
PART = Fraction(1, 100)


def curator_of(columns=None, adjacency=REPLACE):
    codes = np.array([[0, 0], [1, 1], [1, 2]])
    ledger = PrivacyLedger.open(2.0, 1e-5, adjacency, reserved=Fraction(1e-6))
    values = None if columns is None else values_of(columns)
    return Curator(Dataset(Domain(("a", "b"), (2, 3)), codes), FitLedger(ledger), values=values)


def error(clique=("a",), expected=(1, 1), **settings):
    return ModelErrorQuery(clique=clique, expected=np.array(expected), **settings)


def test_margins_and_limits_are_those_that_the_docstrings_argue_with():
    assert accounting._RELATIVE_MARGIN == 1e-13
    assert accounting._ABSOLUTE_MARGIN == 2.0**-50
    assert selection._ERROR == 2.0**-45
    assert thresholding._RELATIVE_ERROR == 2.0**-40
    assert Fraction(1, 2**60) == ledger._EVENTS_SHARE
    assert ModelErrorQuery._LIMIT == 2**60
    assert SigmoidSumQuery.GRID == 2**20
    assert SigmoidSumQuery._SCORES == 2**16
    assert counting.MOST == 100  # up to so many rows README's numbers are for


class TestCharges:
    """The whole entry is as it should be, each of its words and numbers."""

    def test_of_a_measurement(self):
        curator = curator_of()
        curator.measure([MarginalQuery(("a",)), MarginalQuery(("a", "b"))], PART, what="two")
        made = charge_of("Gaussian, rounded", "two", 2, 8, (4, 2), 20.0, PART, SAMPLING_DELTA)
        assert curator.ledger.charges == (made,)

    def test_of_values_over_a_threshold(self):
        curator = curator_of({"x": [("a", 50)], "y": [("b", 50)]})
        curator.discover(PART, Fraction(1e-6), what="values")
        (charge,) = curator.ledger.charges
        books = {each: replace(curator.ledger, adjacency=each) for each in Adjacency}
        own = {"threshold": charge.threshold}
        own["deltas"] = tuple(
            (each, SAMPLING_DELTA + thresholded_delta(20.0, charge.threshold, 2, book))
            for each, book in books.items()
        )
        kind, delta = "Gaussian, rounded, over a threshold", dict(own["deltas"])[REPLACE]
        assert charge == charge_of(kind, "values", 2, 0, (4, 2), 20.0, PART, delta, **own)

    def test_of_people_that_are_weighed_is_in_units_and_answers_are_not(self):
        """Two rows are two halves of a person: the noise is that of one row, the ledger' twice."""
        weighed = PrivacyLedger.open(
            2.0, 1e-5, ADD, 2, people="who", weighed=True, reserved=Fraction(1e-6)
        )
        records = type("InUnits", (Dataset,), {"units": 2})(Domain(("a",), (1,)), np.zeros((9, 1)))
        values = values_of({"x": [("a", 2_000), (None, 4_000)]})
        curator = Curator(records, FitLedger(weighed), values=values)
        (measured,) = curator.measure([MarginalQuery(("a",))], PART, what="a")
        assert (measured.stddev, measured.units) == (10.0, 2)
        found = curator.discover(PART, Fraction(1e-6), what="values")["x"]
        assert [(value, type(number), round(number, -3)) for value, number in found] == [
            ("a", int, 1_000), (None, int, 2_000),
        ]  # fmt: skip
        for charge in curator.ledger.charges:
            assert charge.sensitivity_squared == ((REPLACE, 8), (ADD, 4))
            assert charge.stddev == 20.0

    def test_of_a_choice(self):
        curator = curator_of()
        curator.select([error(), error(("b",), (1, 1, 1))], PART, what="a column")
        (charge,) = curator.ledger.charges
        told = ("exponential", "a column", 2, 1, (4, 1), 0.0, PART, SAMPLING_DELTA)
        assert charge == charge_of(*told, temperature=charge.temperature)
        assert not charge.is_exact


def test_ledger_of_people_say_whose_rows_they_protect_and_compose_with_their_like():
    open_ = PrivacyLedger.open
    one, many = open_(1.0, 1e-5, ADD), open_(1.0, 1e-5, ADD, 3)
    plain, weighed = (open_(1.0, 1e-5, ADD, 3, people="who", weighed=each) for each in (0, 1))
    rows = "all rows of one person, of which 3 at most are used"
    assert [each.unit for each in (one, many, plain, weighed)] == [
        "one row",
        "up to 3 rows of one person",
        f"{rows} (told apart by 'who')",
        f"{rows}, together as one row (told apart by 'who')",
    ]
    assert [each.rows_counted for each in (one, many, plain, weighed)] == [1, 3, 3, 1]
    assert (weighed.bound, many.bound) == (("who", 3, True), None)
    assert plain.followed_by(plain).people == "who"
    assert plain.followed_by(many).people is many.followed_by(plain).people is None
    with pytest.raises(ValueError, match=r"got add_remove/3 and add_remove/3/weighed\.$"):
        plain.followed_by(weighed)
    alone, two = open_(1.0, 1e-5, ADD, people="who"), open_(1.0, 1e-5, ADD, 2)
    ours, heavy = replace(one, rows_are_people=True), replace(one, weights=Weights("w", 1.0, 4.0))
    tied = replace(weighed, people="home", family=("homes", "people", "visits"))
    assert [each.says_whose for each in (one, two, alone, ours)] == [False, True, True, True]
    assert ours.unit == "the row of one person"
    assert tied.unit == "one row of 'homes' with all rows of 'people', 'visits' that lead to it"
    both = [each.followed_by(ours).rows_are_people for each in (one, ours)]
    assert [*both, ours.followed_by(one).rows_are_people] == [False, True, False]
    for unlike, end in (
        (heavy, r"/1/\('w', 1\.0, 4\.0\)"),
        (tied, "/3/weighed/homes/people/visits"),
    ):
        with pytest.raises(ValueError, match=f"got add_remove/1 and add_remove{end}\\.$"):
            one.followed_by(unlike)


class TestCurators:
    def test_a_threshold_hides_what_all_rows_of_a_weighed_person_count_as(self):
        whose = {"people": "who", "weighed": True, "reserved": Fraction(1e-6)}
        shared = FitLedger(PrivacyLedger.open(2.0, 1e-5, ADD, 3, **whose))
        records, values = MarginRecords(Domain((), ()), {}, 6), values_of({"x": [("a", 50)]})
        Curator(records, shared, values=values).discover(PART, Fraction(1e-6), what="values")
        (charge,), both = (
            shared.ledger.charges,
            (shared.ledger, replace(shared.ledger, weighed=False)),
        )
        found = [thresholding.threshold_for(charge.stddev, Fraction(1e-6), 1, own) for own in both]
        assert charge.threshold == found[0] > found[1]

    def test_rows_that_are_weighed_are_as_far_apart_as_two_or_as_one_from_none(self):
        plain = PrivacyLedger.open(1.0, 1e-5, REPLACE)
        heavy = replace(plain, weights=Weights("w", 1.0, 4.0))
        asked = CountQuery(), MarginalQuery(("a",))
        assert [_squared(query, REPLACE, plain) for query in asked] == [0, 2]
        assert [_squared(query, REPLACE, heavy) for query in asked] == [1, 2]
        # Of a person in whose place another one comes the number of rows may be another one.
        books = [PrivacyLedger.open(1.0, 1e-5, own, 3) for own in (REPLACE, ADD)]
        books.append(PrivacyLedger.open(1.0, 1e-5, ADD, 3, weighed=True))  # and still count as 1
        assert [_squared(asked[0], REPLACE, book) for book in books] == [0, 1, 0]

    def test_only_named_columns_are_asked_for_and_of_no_values_or_choices_nothing(self):
        curator = curator_of({"x": [("a", 50)], "y": [("b", 50)]})
        found = curator.discover(PART, Fraction(1e-6), what="values", names=["y"])
        assert list(found) == ["y"]
        assert curator.ledger.charges[0].num_queries == 1
        assert curator_of().discover(PART, Fraction(1e-6), what="values") == {}
        with pytest.raises(ValueError, match=r"^Nothing to select from: scores is empty\.$"):
            curator_of().select([], PART, what="x")

    def test_useless_noise_is_refused_by_name(self):
        curator = curator_of({"x": [("a", 50)]})
        with pytest.raises(
            PrivacyBudgetError, match=r"^Measuring rare values with mu²=1e-30 needs"
        ):
            curator.discover(Fraction(1, 10**30), Fraction(1e-6), what="rare values")

        with pytest.raises(PrivacyBudgetError, match=r"^Measuring a column with mu²=1e-30 needs"):
            curator.measure([MarginalQuery(("a",))], Fraction(1, 10**30), what="a column")
        assert _usable_stddev(2**80, Fraction(1), "the most") == MAX_STDDEV
        assert curator.ledger.charges == ()

    @pytest.mark.parametrize(("records", "blocks"), [(Dataset, [0, 1]), (ClusterRecords, [0])])
    def test_a_bar_is_told_all_and_cannot_leave_a_query_out(self, records, blocks, monkeypatch):
        monkeypatch.setattr(Dataset, "in_one_pass", records.in_one_pass)
        told = []

        def bar(blocks, name):
            told.append((list(blocks), name))
            return blocks

        query = MarginalQuery(("a",))
        assert len(curator_of().measure([query] * 1_025, PART, what="a", progress=bar)) == 1_025
        assert told == [(blocks, "measure")]
        with pytest.raises(ValueError, match="shorter"):
            curator_of().measure([query], PART, what="a", progress=lambda blocks, name: blocks[1:])


def test_what_was_measured_cannot_be_changed():
    (measured,) = curator_of().measure([MarginalQuery(("a",))], PART, what="a")
    with pytest.raises(ValueError, match="read-only"):
        measured.answer[0] = 7


class TestQueries:
    def test_groups_and_adjacencies_are_described(self):
        grouping = Grouping(("a", "b"), ((0, 0), (0, 1, 1)))
        query = GroupedMarginalQuery(("a", "b"), grouping)
        assert query.describe() == "marginal of a x b in groups"
        said = "^adjacency must be 'replace_one' or 'add_remove', got 'swap'.$"
        with pytest.raises(ValueError, match=said):
            Adjacency("swap")

    def test_expected_counts_and_errors_go_up_to_their_limits(self):
        half = 2**59
        assert error(expected=(half, 0), bias=half).bias == half
        assert error(expected=(half, 0), weight=2).weight == 2
        with pytest.raises(ValueError, match=r"at most 2\^60 with their weight, got 1\.73e\+18"):
            error(expected=(half, 0), weight=3)
        found = error(expected=(3, 1), bias=-2, weight=3).in_units(4)
        assert (found.clique, found.expected.tolist()) == (("a",), [12, 4])
        assert (found.bias, found.weight, found.expected.flags.writeable) == (-8, 3, False)
        for bias in (0, -(2**59)):
            with pytest.raises(ValueError, match=r"at most 2\^60"):
                error(expected=(2**59, 0), bias=bias).in_units(32)
        for wrong in ({"weight": 0}, {"expected": (0.5, 1)}):
            with pytest.raises(ValueError, match="weight of at least 1"):
                error(**wrong)
        domain = Domain(("a", "b"), (2, 3))
        assert error().shape(domain) == (1,)
        assert error().of_counts(np.array([1, 3])) == 2


@pytest.mark.parametrize("weight", [1e-6, 0.01, 3.0])
def test_the_grid_of_scores_is_as_fine_for_small_coefficients(weight):
    dataset = Dataset(Domain(("a",), (4,)), np.array([[0], [1], [1], [3]]))
    query = SigmoidSumQuery.of({"a": weight}, b=weight / 3, slope=2 / weight)
    scores = 2 / weight * (weight * (2 * np.array([0, 1, 1, 3]) + 1) / 8 - weight / 3)
    expected = query.GRID * (1 / (1 + np.exp(-scores))).sum()
    assert abs(int(query.answer(dataset)[0]) - expected) < 40  # a step of the grid is 8 of a row


def test_a_number_so_near_an_end_that_the_margin_of_all_scores_holds_it_is_decided_exactly():
    """Of four equal scores the second ends at 1/2; the margin is four times that of one."""
    word = 2**63 - int(2 * selection._ERROR * 2**64)
    drawn = []

    def words(size):
        drawn.append(size)
        return word.to_bytes(8, "little") if size == 8 else bytes(size)

    assert selection.exponential_choice([5, 5, 5, 5], Fraction(1), words) == 1
    assert drawn == [8, 128]


class TestDatasets:
    def test_tables_that_begin_alike_are_counted_apart(self):
        """After a table of two attributes comes one of three that begins with the same one."""
        codes = np.array([[1, 2, 0], [0, 1, 1], [1, 0, 1]])
        dataset = Dataset(Domain(("a", "b", "c"), (2, 3, 2)), codes)
        cliques = [("a", "b"), ("a", "b", "c"), ("a", "c"), ("a",), ("b", "a", "c"), ()]
        for table, clique in zip(dataset.counts_of(cliques), cliques, strict=True):
            np.testing.assert_array_equal(table, dataset.counts(clique))
            assert table.sum() == 3

    def test_attributes_of_one_value_codes_beyond_and_contributions(self):
        codes = np.array([[0, 1, 2]], dtype=np.uint8)
        assert Dataset(Domain(("a",), (2,)), codes.T).counts(("a",)).tolist() == [1, 2]
        assert Dataset(Domain(("a",), (2,)), codes[:, :0].T).counts(("a",)).tolist() == [0, 0]
        dataset = Dataset(Domain(("a", "b"), (2, 2)), np.array([[0, 1]]))
        with pytest.raises(ValueError, match="zip"):
            dataset.total(counting.LookupSums((0, 1), [np.array([[1], [2]])], np.arange(3)))


class TestValueCounts:
    def test_missing_cells_parts_and_floats_are_counted_alike(self):
        values = values_of({"x": [(None, 3), ("a", 2), (None, 4)]})
        assert values.counts("x").pairs() == [("a", 2), (None, 7)]
        values = values_of({"x": [("a", 2), ("b", 1), ("a", 3)]})
        assert values.counts("x").pairs() == [("a", 5), ("b", 1), (None, 0)]
        numbers = NumberCounts()
        for part in ([2.5, -0.0, np.nan], [], [2.5, 1e300]):
            numbers.add(np.array(part), np.ones(len(part), dtype=np.int64))
        found = numbers.counted()
        assert repr(found.pairs()) == "[(0.0, 1), (2.5, 2), (1e+300, 1), (None, 1)]"
        assert (found.values.dtype, found.numbers.dtype) == (np.float64, np.int64)
        assert NumberCounts().counted().pairs() == [(None, 0)]


TAKE = [*(lambda held, p=protocol: pickle.dumps(held, p) for protocol in range(6)), copy.copy]


@pytest.mark.parametrize("take", [*TAKE, copy.deepcopy, lambda held: held.__reduce__()])
def test_what_is_private_can_be_neither_pickled_nor_copied_and_shows_nothing(take):
    dataset = Dataset(Domain(("a",), (2,)), np.array([[0]]))
    values = values_of({"x": [("SECRET", 5)], "y": [(98765.0, 1)]})
    assert repr(values) == "ValueCounts()"
    for held in (curator_of(), dataset, values):
        said = rf"^A {type(held).__name__} is private and cannot be pickled or copied\.$"
        with pytest.raises(TypeError, match=said):
            take(held)
