"""Half-spaces of places that are whole numbers: by hand, and against a count of all records."""

import numpy as np
import pytest
from answers import open_curator

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.privacy import curator as curating
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import CutMarginalQuery, MarginalQuery, ModelErrorQuery, answers
from sdv_privpgd.privacy.streams import StoredRecords

DOMAIN = Domain(("age", "pay", "ill"), (4, 6, 2))
AGE = Line("age", (-3, 0, 8), nullable=True)
PAY = Line("pay", (0, 1, 2, 5, 9, 100))
CODES = np.random.default_rng(0).integers(0, DOMAIN.sizes, (500, 3))
QUERY = CutMarginalQuery(("ill",), (Cut((AGE, PAY), (3, -2), (-10, 0, 7)), Cut((PAY,), (1,), (2,))))


def counted_one_by_one(query, codes):
    """In Python's integers, as the definition says."""
    lines = {"age": (-3, 0, 8, None), "pay": PAY.places}
    found = np.zeros(query.shape(DOMAIN), dtype=np.int64)
    for row in codes.tolist():
        named = dict(zip(DOMAIN.attributes, row, strict=True))
        cell = [named[name] for name in query.clique]
        for cut in query.cuts:
            places = [lines[line.name][named[line.name]] for line in cut.lines]
            if None in places:
                cell.append(cut.size - 1)
                continue
            total = sum(x * weight for x, weight in zip(places, cut.weights, strict=True))
            cell.append(sum(total > threshold for threshold in cut.thresholds))
        found[tuple(cell)] += 1
    return found


def test_a_record_is_where_the_definition_says_and_what_is_missing_apart():
    assert QUERY.shape(DOMAIN) == (2, 5, 2)
    expected = counted_one_by_one(QUERY, CODES)
    assert (QUERY.answer(Dataset(DOMAIN, CODES)) == expected).all()
    stored = StoredRecords(DOMAIN, np.array_split(CODES.T.astype(np.uint8), 3, axis=1))
    assert (QUERY.answer(stored) == expected).all()
    assert stored._file._max_size == 2**25  # bytes that stay in memory
    three = Dataset(Domain(("pay",), (6,)), np.array([[1], [2], [3]]))  # 1, 2 and 5
    assert CutMarginalQuery((), (Cut((PAY,), (1,), (2,)),)).answer(three).tolist() == [2, 1]
    assert CutMarginalQuery((), (Cut((PAY,), (-1,), (-2,)),)).answer(three).tolist() == [2, 1]
    wide = Line("pay", (0, 0, 0, 0, 0, 2**20))
    cut = Cut((AGE, wide), (2**10, -(2**10)), (-(2**31), 2**31))
    found = CutMarginalQuery((), (cut,)).answer(Dataset(DOMAIN, CODES))
    assert found[-1] == (CODES[:, 0] == 3).sum()
    assert found[0] == found[2] == 0
    nowhere, low = Line("age", (0, 0, 0), nullable=True), Line("pay", (-100, 0, 0, 0, 0, 0))
    for thresholds in ((-200,), (5,), (1_000,)):
        cut = Cut((nowhere, low), (1, 1), thresholds)
        found = CutMarginalQuery((), (cut,)).answer(Dataset(DOMAIN, CODES))
        assert found[-1] == (CODES[:, 0] == 3).sum()
    for threshold in (2**40, 2**40 - 1):
        cut = Cut((Line("ill", (0, 2**40)),), (1,), (threshold,))
        found = CutMarginalQuery((), (cut,)).answer(Dataset(DOMAIN, CODES))
        assert found[1] == (0 if threshold == 2**40 else CODES[:, 2].sum())


def test_several_kinds_of_tables_are_answered_in_order():
    data = Dataset(DOMAIN, CODES)
    other = CutMarginalQuery((), QUERY.cuts[1:])
    asked = [QUERY, MarginalQuery(("ill",)), other]
    for query, found in zip(asked, answers(asked, data), strict=True):
        assert (found == query.answer(data)).all()


def test_a_choice_weighs_half_spaces_beside_tables():
    data = Dataset(DOMAIN, np.zeros((4_000, 3), dtype=np.int64))
    scores = [
        ModelErrorQuery(clique=("ill",), expected=np.array([4_000, 0])),
        ModelErrorQuery(clique=(), cuts=QUERY.cuts[1:], expected=np.array([0, 4_000])),
        ModelErrorQuery(clique=(), cuts=QUERY.cuts[1:], expected=np.array([4_000, 0]), bias=-7),
    ]
    assert [int(score.answer(data)[0]) for score in scores] == [0, 8_000, 7]
    curator = open_curator(data, epsilon=3.0)
    assert curator.select(scores, curator.ledger.remaining, what="worst") == 1
    assert len(curator._tables) == 2  # of two scores it is the same


def test_lines_and_scores_of_other_codes_are_refused_before_they_are_paid_for(monkeypatch):
    query = CutMarginalQuery((), (Cut((Line("ill", (0, 1, 2)),), (1,), (1,)),))
    with pytest.raises(ValueError, match="'ill' has 2 codes, and a line for 3"):
        query.shape(DOMAIN)
    monkeypatch.setattr(curating, "answers", None)
    curator = open_curator(Dataset(DOMAIN.project(("ill",)), CODES[:, 2:]))
    score = ModelErrorQuery(clique=(), cuts=QUERY.cuts[1:], expected=np.array([1, 1]))
    with pytest.raises(ValueError, match="not in the domain"):
        curator.select([score, score], curator.ledger.remaining, what="worst")
    assert not curator.ledger.charges


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Line("pay", ()), "must be integers"),
        (lambda: Line("pay", (0.5,)), "must be integers"),
        (lambda: Cut((), (), (1,)), "needs lines"),
        (lambda: Cut((PAY, PAY), (1, 1), (1,)), "named once"),
        (lambda: Cut((PAY,), (1, 2), (1,)), "as many weights"),
        (lambda: Cut((PAY,), (1,), ()), "ascending"),
        (lambda: Cut((PAY,), (1,), (3, 2)), "ascending"),
        (lambda: Cut((PAY,), (0.5,), (3,)), "must be integers"),
        (lambda: Cut((PAY,), (2**40,), (3,)), r"2\^40"),
        (lambda: Cut((PAY,), (1,), (2**41,)), r"2\^40"),
    ],
)
def test_what_could_wrap_around_or_means_nothing_is_refused(made, says):
    with pytest.raises(ValueError, match=says):
        made()
