"""Questions in sentences: what each asks, and what is said of those that ask nothing."""

import pytest

from sdv_privpgd import Between
from sdv_privpgd.cli.fit_options import question
from sdv_privpgd.cli.messages import CommandError
from sdv_privpgd.inference import Question
from sdv_privpgd.sources.texts import Signs

FACTS = {
    "ward": {"sdtype": "categorical"},
    "ill": {"sdtype": "boolean"},
    "age": {"sdtype": "numerical"},
    "net pay": {"sdtype": "numerical"},
    "seen": {"sdtype": "datetime"},
    "a=b": {"sdtype": "numerical"},
    "a": {"sdtype": "categorical"},
}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("count", {"what": "count"}),
        (
            "share where age in 30..45 and ward = B",
            {"what": "share", "where": {"age": Between(30, 45), "ward": "B"}},
        ),
        (
            "share where ill=True among age=65.. and ward=A or B",
            {"what": "share", "where": {"ill": True},
             "among": {"age": Between(low=65), "ward": ["A", "B"]}},
        ),
        ("mean of net pay", {"what": "mean", "of": "net pay"}),
        (
            "mean of net pay where ward=A minus ward=B",
            {"what": "mean", "of": "net pay", "where": {"ward": "A"}, "minus": {"ward": "B"}},
        ),
        ("quantile 0.9 of net pay", {"what": "quantile", "of": "net pay", "q": 0.9}),
        (
            "share where a=b = 3 and a=x=y",
            {"what": "share", "where": {"a=b": 3, "a": "x=y"}},
        ),
        ("share where a=b in 3..4", {"what": "share", "where": {"a=b": Between(3, 4)}}),
        ("table of ward x ill", {"what": "table", "of": ["ward", "ill"]}),
        ("table of ward, ill", {"what": "table", "of": ["ward", "ill"]}),
        (
            "coefficient of net pay on age, ward",
            {"what": "coefficient", "of": "net pay", "on": ["age", "ward"]},
        ),
        (
            "count where seen=2020-01-01..2020-12-31 and net pay=",
            {"what": "count", "where": {"seen": Between("2020-01-01", "2020-12-31"),
                                        "net pay": None}},
        ),
    ],
)  # fmt: skip
def test_a_sentence_asks_what_it_says(text, asked):
    assert question(text, FACTS, Signs(".", None)) == Question(**asked)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("median of age", "what must be one of"),
        ("share where wards=B", "'wards' is no column: choose from"),
        ("share where ward", "'ward' is no condition: write COLUMN=VALUE"),
        ("share where age=thirty", "the column holds numbers"),
        ("quantile half of age", "'half' is no number"),
    ],
)
def test_what_asks_nothing_is_refused(text, said):
    with pytest.raises(CommandError, match=said):
        question(text, FACTS, Signs(".", None))
