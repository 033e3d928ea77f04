"""Whose rows they are, how many each person has and how they count leave nothing but the noise."""

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from interference import settings

from sdv_privpgd import MSTSynthesizer, People

METADATA = sdv_tables.metadata_of(
    {**sdv_tables.COLUMNS, "patient": {"sdtype": "id"}}, primary_key="id"
)


def table(num_rows, people, seed=0):
    """Rows of some people, whose ids are whole numbers."""
    frame = sdv_tables.table(num_rows, seed=seed)
    frame["patient"] = np.random.default_rng(seed).integers(0, people, num_rows)
    return frame


def one_missing(frame):
    return frame.assign(patient=frame["patient"].mask(np.arange(len(frame)) == 3))


def one_text(frame):
    return frame.assign(patient=frame["patient"].astype(object).mask(frame.index == 3, "CANARY"))


def spelled(frame):
    return frame.assign(patient=frame["patient"].map(" 0{}.0".format))


def one_person(frame):
    return frame.assign(patient=7)


def all_missing(frame):
    return frame.assign(patient=pd.Series([None] * len(frame), dtype=object))


def other_people(frame):
    return table(500, people=3, seed=8)


def nobody(frame):
    return frame.iloc[:0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("weighed", "strategy", "changes"),
    [
        (False, "independent", [one_text, spelled, one_person]),
        (True, "independent", [one_missing, all_missing, nobody]),
        (True, "mwem", [other_people]),
    ],
)
def test_nothing_depends_on_the_people(weighed, strategy, changes, unmoved):
    told = settings(
        metadata=METADATA, adjacency="add_remove", delta=1e-5,
        people=People("patient", max_rows=3, weighed=weighed), method=strategy,
    )  # fmt: skip
    told["method"] = None
    synthesizer = MSTSynthesizer(**told)
    frame = table(120, people=40)
    first = unmoved(synthesizer, frame, changes)
    assert first["sample"].splitlines()[1].endswith("sdv-id-0")


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "changes"),
    [("independent", [one_text, spelled, all_missing, nobody]), ("mwem", [other_people])],
)
def test_nothing_depends_on_the_weights(strategy, changes, unmoved):
    told = settings(
        metadata=METADATA, adjacency="add_remove", delta=1e-5, method=strategy,
        people=People(weight_column="patient", weight_range=(1, 30)),
    )  # fmt: skip
    told["method"] = None
    synthesizer = MSTSynthesizer(**told)
    frame = table(120, people=40)
    unmoved(synthesizer, frame, changes)
