"""Questions mean what they say: to the digit where there is no noise, and with clear refusals."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from answers import noisy_answers, number_of_rows
from columns_of_words import ranged
from fast_fits import DOMAIN, QUESTIONS, SCHEMA, asked, drawn
from small_engine import Joint

from sdv_privpgd import Numerical, fit_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.answers import Answer
from sdv_privpgd.inference.conditions import code_values, condition_shares
from sdv_privpgd.inference.intervals import Ratio
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.regression import regression
from sdv_privpgd.methods.k_way import Independent
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.sampling.conditions import Between

LEDGER = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)


def questions_of(schema, counts, cliques, model=None, ledger=LEDGER):
    """Of measurements with hardly any noise, given the counts of all cells."""
    domain = schema.domain()
    axes = range(len(domain))
    tables = {clique: np.einsum(counts, [*axes], [*domain.axes(clique)]) for clique in cliques}
    measured = [number_of_rows(int(counts.sum())), *noisy_answers(tables, stddev=1e-3)]
    release = Release(domain=domain, ledger=ledger, measurements=tuple(measured), model=model)
    return Questions(release, schema)


@pytest.fixture(scope="module")
def exact():
    """All triples of the small table, and the counts of its cells."""
    counts, _ = drawn(np.random.default_rng(0))
    return questions_of(SCHEMA, counts, DOMAIN.cliques(3)), counts


@pytest.mark.parametrize("name", QUESTIONS)
def test_without_noise_an_answer_is_the_truth(exact, name):
    questions, counts = exact
    (what, how), truth = QUESTIONS[name]
    answer = questions.answer(what, **how)
    assert answer.estimate == pytest.approx(truth(counts), abs=0.03)
    low, high = answer.interval("table")
    assert low - 0.03 <= truth(counts) <= high + 0.03
    assert answer.basis == "tables"
    assert answer.notes == ()


@pytest.mark.parametrize(
    "name", [name for name in QUESTIONS if "quantile" not in QUESTIONS[name][0]]
)
def test_sampling_counts_as_often_as_a_person_has_rows(exact, name):
    (_, counts), ((what, how), _) = exact, QUESTIONS[name]

    def width(kind, *people, **weighed):
        ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, *people, **weighed)
        asked_of_these = questions_of(SCHEMA, counts, DOMAIN.cliques(3), ledger=ledger)
        return float(np.subtract(*asked_of_these.answer(what, **how).interval(kind, 0.1)))

    assert width("population", 4) == pytest.approx(2 * width("population"), rel=0.02)
    assert width("population", 4, weighed=True) == pytest.approx(width("population"))
    assert width("table", 4) == pytest.approx(width("table"))


def test_differences_regressions_tables_and_quantiles_know_how_many_rows_a_person_has(exact):
    def widths(*people):
        ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, *people)
        model = Joint(DOMAIN, exact[1] / exact[1].sum())
        own = questions_of(SCHEMA, exact[1], DOMAIN.cliques(3), model, ledger)
        one, other = (
            own.answer("share", where={"smokes": True}, among={"ward": ward}) for ward in "AB"
        )
        numbers = np.subtract(*(one - other).interval("population"))
        table = own.answer("table", of=["ward"]).interval("population", 0.1)
        quantile = own.answer("quantile", of="age", q=0.5).statistic
        return (
            -numbers,
            *(table["high"] - table["low"]),
            *regression(own, "age", ["smokes"]).stddev,
            quantile.alike**0.5,
        )

    np.testing.assert_allclose(widths(9), 3 * np.array(widths()), rtol=0.05)


def test_intervals_of_the_population_hold_where_all_rows_of_a_person_are_alike():
    people = np.random.default_rng(0).binomial(100, 0.3, size=400)
    held = [
        [
            low <= 0.3 <= high
            for alike in (4, 1)
            for low, high in [
                Ratio(4.0 * own, 400.0, np.zeros((2, 2)), alike=alike).interval("population", 0.95)
            ]
        ]
        for own in people
    ]
    known, taken_for_independent = np.mean(held, axis=0)
    assert known > 0.92
    assert taken_for_independent < 0.75


def test_a_cross_table_is_the_counts_and_the_answers_to_them(exact):
    questions, counts = exact
    found = questions.answer("table", of=["grade", "ward"])
    expected = counts.sum(axis=(1, 2))
    np.testing.assert_allclose(found.estimate.unstack().to_numpy(), expected.T, atol=0.01)
    assert found.estimate.loc["2", "B"] == pytest.approx(expected[1, 1], abs=0.01)
    some = questions.answer("table", of="ward", where={"age": Between(3, 5), "smokes": True})
    np.testing.assert_allclose(some.estimate, counts[:, 1, 3:6].sum(axis=(1, 2)), atol=0.01)
    own = questions.answer("table", of="ward", where={"ward": ["A", "B"]})
    assert own.estimate["C"] == pytest.approx(0, abs=0.01)
    assert list(found.to_frame("population", 0.9)) == ["estimate", "stddev", "low", "high"]
    assert "95 % intervals" in str(found)
    _, codes = drawn(np.random.default_rng(2))
    questions = asked(codes)
    table = questions.answer("table", of=["smokes", "age"])
    cell = questions.answer("count", where={"smokes": True, "age": 5})
    assert table.estimate.loc["True", "5"] == pytest.approx(cell.estimate)
    assert table.stddev.loc["True", "5"] == pytest.approx(cell.stddev)
    ends = table.interval("population", 0.8).loc[("True", "5")]
    np.testing.assert_allclose(ends, cell.interval("population", 0.8))
    where = questions.answer("table", of="age", where={"smokes": True})
    assert where.estimate["5"] == pytest.approx(cell.estimate)


def test_what_no_table_holds_is_the_model_s_and_says_so():
    counts, codes = drawn(np.random.default_rng(3))
    model = Joint(DOMAIN, counts / counts.sum())
    questions = asked(codes, method=Independent(), model=model)
    alone = questions.answer("count", where={"ward": "B"})
    assert alone.basis == "tables"
    both = questions.answer("count", where={"ward": "B", "smokes": True})
    assert both.basis == "model"
    assert both.stddev is None
    assert both.estimate == pytest.approx(counts[1, 1].sum())
    assert "comes from the model" in str(both)
    with pytest.raises(ValueError, match="No interval is known: the measured tables do not"):
        both.interval()
    table = questions.answer("table", of=["ward", "smokes"])
    assert table.basis == "model"
    np.testing.assert_allclose(table.estimate.unstack(), counts.sum(axis=(2, 3)))
    with pytest.raises(ValueError, match="No interval is known"):
        table.interval()
    assert list(table.to_frame()) == ["estimate"]
    assert "comes from the model" in str(table)
    mean = questions.answer("mean", of="age", where={"ward": "A"})
    ages = counts[0].sum(axis=(0, 2))
    assert mean.estimate == pytest.approx((ages * np.arange(12)).sum() / ages.sum())
    median = questions.answer("quantile", of="age", q=0.5, where={"smokes": True})
    assert median.basis == "model"


REFUSED = {
    "what must be one of 'count', 'share'": ("median", {}),
    "answer\\('mean'\\) needs of=": ("mean", {}),
    "answer\\('count'\\) takes no of=, got 'age'": ("count", {"of": "age"}),
    "takes no among=": ("mean", {"of": "age", "among": {"ward": "A"}}),
    "q must be above 0 and below 1": ("quantile", {"of": "age", "q": 50}),
    "q must be a positive number, got '0.5'": ("quantile", {"of": "age", "q": "0.5"}),
    "needs where=, as in": ("share", {}),
    "is of one column, got of=\\['age'\\]": ("mean", {"of": ["age"]}),
    "must name columns, each once": ("table", {"of": ["age", "age"]}),
    "of column 'job': choose from \\['ward'": ("count", {"where": {"job": 1}}),
    "'Z' is not in the domain of column 'ward', which": ("count", {"where": {"ward": "Z"}}),
    "40 is not in the domain of column 'age'": ("count", {"where": {"age": 40}}),
    "No row of the domain meets 'age is from 40 to 50'": (
        "count", {"where": {"age": Between(40, 50)}}
    ),
    "has no missing values, by its declaration": ("count", {"where": {"ward": None}}),
    "at least one and no ranges": ("count", {"where": {"age": [Between(1, 2)]}}),
    "its values have no order": ("count", {"where": {"ward": Between("A", "B")}}),
    "Conditions are a dictionary": ("count", {"where": "ward == 'B'"}),
    "'ward' is categorical, which has no mean": ("mean", {"of": "ward"}),
    "it has no quantiles": ("quantile", {"of": "ward", "q": 0.5}),
    "may name 3 columns, got \\['ward', 'smokes', 'age', 'grade'\\]": (
        "count", {"where": {"ward": "A", "smokes": True, "age": 1, "grade": 1}}
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_asked_is_refused_with_a_reason(exact, message):
    what, how = REFUSED[message]
    with pytest.raises(ValueError, match=message):
        exact[0].answer(what, **how)


def test_a_category_that_was_not_found_is_said_to_count_as_other():
    facts = {"sdtype": "categorical", "range_values": ["A", "B"], "other_value": "rest"}
    (column,) = Schema.from_sdv({"ward": facts}).columns
    with pytest.raises(ValueError, match="count as 'rest': ask for that"):
        condition_shares(column, "Z")
    assert condition_shares(column, "rest").weights[2] == 1


def test_an_interval_of_another_kind_or_level_is_refused(exact):
    answer = exact[0].answer("count", where={"ward": "A"})
    with pytest.raises(ValueError, match="of the 'table' or of the 'population', got 'real'"):
        answer.interval("real")
    with pytest.raises(ValueError, match=r"level must be above 0 and below 1.*got '0.9'"):
        answer.interval(level="0.9")
    with pytest.raises(ValueError, match=r"level must be above 0 and below 1.*got 95"):
        answer.interval(level=95)


COARSE = Schema.from_sdv(
    {
        "age": {"sdtype": "numerical", "range_min": 0, "range_max": 39, "decimal_places": 0},
        "dose": {"sdtype": "numerical", "range_min": 0.0, "range_max": 1.0},
        "seen": ranged("datetime", "2024-01-01", "2024-12-31", datetime_format="%Y-%m-%d"),
        "job": {"sdtype": "categorical", "range_values": ["a", "b", "other"]},
    },
    num_bins=4,
)


@pytest.fixture(scope="module")
def coarse():
    """Columns of four cells and missing, each with 100, 200, 300, 400 and 50 rows."""
    domain = COARSE.domain()
    codes = np.repeat(np.arange(5), [100, 200, 300, 400, 50])
    four = np.stack([codes, codes, codes, np.minimum(codes, 3)], axis=1)
    tables = dict(zip(domain.cliques(1), Dataset(domain, four).counts_of(domain.cliques(1))))  # noqa: B905
    measured = [number_of_rows(len(codes)), *noisy_answers(tables, stddev=1e-3)]
    release = Release(domain=domain, ledger=LEDGER, measurements=tuple(measured), model=None)
    return Questions(release, COARSE)


def test_missing_values_are_counted_and_are_in_no_mean(coarse):
    assert coarse.answer("count", where={"age": None}).estimate == pytest.approx(50, abs=0.1)
    some = coarse.answer("count", where={"age": [None, 3]})
    assert some.estimate == pytest.approx(60, abs=0.1)
    assert some.question == "Count where age is missing or 3"
    mean = coarse.answer("mean", of="age")
    assert mean.estimate == pytest.approx(4.5 + 10 * 2, abs=0.01)  # 0.1 x 0 + 0.2 + 0.6 + 1.2
    total = coarse.answer("sum", of="age")
    assert total.estimate == pytest.approx(1000 * mean.estimate, rel=1e-3)


def test_a_range_that_cuts_a_cell_takes_its_part_and_says_so(coarse):
    whole = coarse.answer("count", where={"age": Between(10, 19)})
    assert (whole.estimate, whole.notes) == (pytest.approx(200, abs=0.1), ())
    part = coarse.answer("count", where={"age": Between(10, 24)})
    assert part.estimate == pytest.approx(350, abs=0.1)
    assert part.notes[0].startswith("A condition cuts cells of 'age'")
    assert part.notes[0] in str(part)
    assert "spread in their cells" in coarse.answer("mean", of="dose").notes[0]
    with pytest.raises(ValueError, match=r"ask for Between\(low, high\) in place of 0.3"):
        coarse.answer("count", where={"dose": 0.3})


def test_intervals_hold_wherever_in_a_cut_cell_rows_are(coarse):
    part = coarse.answer("count", where={"age": Between(10, 24)})  # 10 to 19, and half of a cell
    low, high = part.interval("table")
    assert (round(low), round(high)) == (200, 500)
    table = coarse.answer("table", of="age", where={"age": Between(10, 24)})
    assert table.estimate.round().tolist() == [0, 200, 150, 0, 0]
    ends = table.interval("table").round()
    assert (ends["low"].tolist(), ends["high"].tolist()) == ([0, 200, 0, 0, 0], [0, 200, 300, 0, 0])
    assert any("the intervals hold for any spread" in each for each in table.notes)
    share = coarse.answer("share", where={"age": Between(10, 24)}, among={"age": Between(5, 39)})
    low, high = share.interval("table")
    assert low == pytest.approx(200 / 1000, abs=0.01)  # all below 10 and above 24 are in the base
    assert high == pytest.approx(500 / 900, abs=0.01)  # none below 10 is
    assert low < share.estimate < high
    few = coarse.answer("count", where={"dose": Between(0.3, 0.3)})
    assert few.interval("table").high == pytest.approx(200, abs=0.1)


def test_a_model_s_answer_is_not_between_ends_that_tables_tell():
    age = ranged("numerical", 0, 39, decimal_places=0, range_is_nullable=False)
    job = {"sdtype": "categorical", "range_values": ["a", "b"], "range_is_nullable": False}
    schema = Schema.from_sdv({"age": age, "job": job}, num_bins=4)
    counts, modelled = np.full((4, 2), [50, 100]), np.full((4, 2), [25, 125])
    questions = questions_of(
        schema, counts, [("age",), ("job",)], Joint(schema.domain(), modelled / 600)
    )
    asked = {"where": {"age": Between(5, 39), "job": "b"}}
    answer = questions.answer("count", **asked)  # all with the job were counted
    assert answer.origin.reach == pytest.approx((375, 500), abs=1)
    assert answer.estimate == pytest.approx(437.5, abs=1)
    assert answer.basis == "model"


def merged(cuts, frequencies, **facts):
    """A number whose cells share two codes."""
    words = {"sdtype": "numerical", "range_min": 0, "num_bins": 2, "range_is_nullable": False}
    facts = {"cut_points": cuts, "frequencies": frequencies, **words, **facts}
    return Schema.from_sdv({"x": facts})


def test_what_a_fit_saw_no_rows_of_may_still_be_there():
    frequencies = [30, 10, 20, 20, 10, 0, 0, 0, 0, 0]
    schema = merged(list(range(1, 10)), frequencies, range_max=9, decimal_places=0)
    questions = questions_of(schema, np.array([400, 600]), [("x",)])
    none = questions.answer("count", where={"x": Between(8, 9)})
    assert none.estimate == 0
    assert none.interval("table") == (0, pytest.approx(600, abs=0.1))
    assert "the intervals hold for any spread" in none.notes[0]
    with pytest.raises(ValueError, match="has put no rows where x is from 8 to 9, so there is no"):
        questions.answer("mean", of="x", where={"x": Between(8, 9)})
    with pytest.raises(ValueError, match="No row of the domain meets 'x is from 12 to 15'"):
        questions.answer("count", where={"x": Between(12, 15)})


def test_means_hold_where_a_few_rows_far_out_make_them():
    """The last code has the end of the rows, taken to be below 300, and all up to a million."""
    cuts = [50, 100, 200, 300]
    schema = merged(cuts, [40, 40, 15, 5, 1e-6], range_max=1_000_000)
    counts = np.array([400, 600])  # from 0 to 50, and above
    questions = questions_of(schema, counts, [("x",)])
    for what, truth in (("mean", 2_000), ("sum", 2_000_000)):  # with some at 50,000
        asked = questions.answer(what, of="x")
        low, high = asked.interval("table")
        assert low < asked.estimate < truth < high
        assert any("the intervals hold" in note for note in asked.notes)
    near = merged(cuts, [40, 40, 15, 5, 1], range_max=400)
    mean = questions_of(near, counts, [("x",)]).answer("mean", of="x")
    assert mean.interval("table").high < 300


def test_dates_are_answers_and_conditions(coarse):
    median = coarse.answer("quantile", of="seen", q=0.5)
    low, high = median.interval("table")
    assert isinstance(median.estimate, pd.Timestamp)
    assert (low, high) == (pd.Timestamp("2024-07-02"), pd.Timestamp("2024-10-01"))
    assert low < median.estimate < high
    assert "2024-07-02" in str(median)
    written = str(replace(median, datetime_format="%d.%m.%Y"))
    assert "02.07.2024 to 01.10.2024" in written
    assert "00:00" not in str(median) + str(replace(median, datetime_format=None))
    with pytest.raises(ValueError, match="is datetime, which has no mean"):
        coarse.answer("mean", of="seen")
    first = coarse.answer("count", where={"seen": Between(high="2024-03-31")})
    assert first.question == "Count where seen is at most '2024-03-31'"
    assert first.estimate == pytest.approx(100, abs=2)


def test_means_of_merged_cells_weigh_them_by_their_frequencies():
    frequencies = np.array([30, 10, 1, 1, 1, 1, 1, 1, 1, 1])
    schema = merged(list(range(1, 10)), frequencies.tolist(), range_max=9, decimal_places=0)
    (column,) = schema.columns
    values = code_values(column)
    assert values.lows[0] == 0
    assert values.highs[-1] == 9
    for code in range(2):
        cells = np.flatnonzero(np.asarray(column.merging.codes) == code)
        expected = np.average(cells, weights=frequencies[cells])
        assert values.means[code] == pytest.approx(expected)
        assert (values.lows[code], values.highs[code]) == (cells[0], cells[-1])
    one = condition_shares(column, 9)
    assert 0 < one.weights[-1] < 1
    assert one.is_cut


def test_sentences_have_units():
    _, codes = drawn(np.random.default_rng(4))
    questions = asked(codes)
    text = str(questions.answer("share", where={"smokes": True}, among={"ward": "B"}))
    assert text.startswith("Share where smokes is True among rows where ward is 'B': ")
    assert text.count(" %") == 4
    assert "rows in this table" in str(questions.answer("count", where={"smokes": True}))
    assert str(questions.answer("count")).startswith(
        "Count: 2,000 rows. With 95 % confidence 2,000"
    )
    for unit, zero in (("share", -0.0), ("rows", -0.2)):
        nothing = Answer(question="None", estimate=zero, stddev=1.0, unit=unit, statistic=None)
        assert str(nothing).startswith("None: 0 ")


def test_estimates_are_possible_and_in_their_intervals_where_noise_hides_the_rows():
    _, codes = drawn(np.random.default_rng(0), 120)
    smokers, hidden = {"smokes": True}, 0
    for seed in range(15):
        questions = asked(codes, epsilon=0.2, seed=seed)
        share, other = (
            questions.answer("share", where=smokers, among={"ward": ward}) for ward in "DA"
        )
        found = [share, other, share - other, share / other]
        found += [questions.answer("count", where={"ward": "D", **smokers})]
        in_d = {"of": "age", "where": {"ward": "D"}}
        found += [questions.answer(what, **in_d) for what in ("mean", "sum")]
        for answer in found:
            if math.isnan(answer.estimate):
                hidden += 1
                assert "not known, as noise hides the rows. With 95 %" in str(answer)
                continue
            for kind in ("table", "population"):
                low, high = answer.interval(kind)
                assert low <= answer.estimate <= high, answer.question
        table = questions.answer("table", of=["ward", "smokes"])
        assert ("they stay" in str(table)) == bool((table.estimate < 0).any())
    assert hidden


def test_few_rows_that_the_noise_hides_leave_everything_possible():
    codes = np.zeros((60, 4), dtype=int)
    questions = asked(codes, epsilon=0.2)
    found = [questions.answer("share", where={"smokes": True}, among={"ward": "D"})]
    found += [questions.answer("mean", of="age", where={"ward": "D"})]
    for answer, ends in zip(found, [(0, 1), (0, 11)], strict=True):
        low, high = answer.interval("population")
        assert ends[0] <= low <= high <= ends[1]
        assert str(answer)


@pytest.mark.parametrize(("what", "scale"), [("mean", 1 / 10_000), ("sum", 1.0)])
def test_an_interval_of_a_long_tail_holds_for_any_spread(what, scale):
    """A hundredth of the rows lies between 1,000 and 100,000, nine between 100 and 1,000."""
    cuts = [*range(10, 101, 10), 1_000]
    facts = {"sdtype": "numerical", "range_min": 0, "range_max": 100_000, "cut_points": cuts}
    schema = Schema.from_sdv({"income": {**facts, "range_is_nullable": False}})
    counts = np.array([900] * 11 + [100])
    questions = questions_of(schema, counts, [("income",)])
    answer = questions.answer(what, of="income")
    low, high = answer.interval("table")
    below = 900 * sum(range(5, 100, 10))
    assert low == pytest.approx(scale * (below + 900 * 100 + 100 * 1_000), rel=1e-3)
    assert high == pytest.approx(scale * (below + 900 * 1_000 + 100 * 100_000), rel=1e-3)
    assert any("long tail" in note for note in answer.notes)
    assert not any("long tail" in note for note in questions.answer("count").notes)


@pytest.mark.parametrize("high", [5_000, 20_000])
def test_means_hold_where_most_rows_share_one_value_of_an_even_cell(high):
    """Seven of ten have 0, in a cell of 156 or 625, and nobody has looked into where in it."""
    rng = np.random.default_rng(0)
    bonus = np.where(rng.random(4_000) < 0.7, 0.0, rng.gamma(2.0, 350.0, 4_000).round(2))
    table = pd.DataFrame({"bonus": np.minimum(bonus, high)})
    columns = {"bonus": Numerical(0, high, decimal_places=2)}
    for _ in range(8):
        fitted = fit_table(table, columns, epsilon=1.0, method="privpgd+pgm", discovery_share=0)
        answer = fitted.answer("mean", of="bonus")
        low, upper = answer.interval("table", 1 - 1e-6)
        assert low <= table["bonus"].mean() <= upper
        assert any("the intervals hold for any spread" in note for note in answer.notes)
        assert any("Wide cells hide how rows are spread" in each for each in fitted.warnings)


def test_means_of_even_cells_keep_narrow_intervals_where_rows_are_spread_over_many():
    ages = np.random.default_rng(0).normal(50, 15, 4_000).clip(0, 100)
    columns = {"age": Numerical(0, 100)}
    table = pd.DataFrame({"age": ages})
    fitted = fit_table(table, columns, epsilon=1.0, method="privpgd+pgm", discovery_share=0)
    answer = fitted.answer("mean", of="age")
    low, high = answer.interval("table", 1 - 1e-6)
    assert low <= ages.mean() <= high
    low, high = answer.interval("table")
    assert high - low < 2
