"""What is told of the work that goes on: its steps are public."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from answers import open_curator

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Shares, heard, one_step, silent
from sdv_privpgd.methods import ParticleGradientDescent, pipeline
from sdv_privpgd.methods.k_way import AllKWay
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.sources import frames
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.source import Batch, in_batches, total_of

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def stages_of_a_fit(codes: np.ndarray, seed: int) -> list[tuple[str, int]]:
    """The stages that a fit shows, and of how many steps each is."""
    seen = []

    def record(items, stage):
        seen.append((stage, len(items)))
        return items

    engine = ParticleGradientDescent(num_particles=50, epochs=2)
    curator = open_curator(Dataset(DOMAIN, codes), adjacency=Adjacency.ADD_REMOVE, seed=seed)
    pipeline.run(curator, replace(AllKWay(), engine=engine), progress=record)
    return seen


def test_steps_are_those_that_the_domain_and_the_settings_fix():
    rng = np.random.default_rng(0)
    tables = [
        np.zeros((0, 3), dtype=np.int64),
        np.ones((7, 3), dtype=np.int64),
        rng.integers(0, DOMAIN.sizes, (70_000, 3)),  # more than a block of the counting
    ]
    first, *others = [stages_of_a_fit(codes, seed) for seed, codes in enumerate(tables)]
    assert {"measure", "project", "descend"} <= set(dict(first))
    assert all(stages == first for stages in others)


def recorded():
    """A progress, and what it is told: its steps."""
    seen = []

    def record(items, stage):
        for item in items:
            seen.append((stage, item))
            yield item
        seen.append((stage, "end"))

    return record, seen


def told(share):
    """What a stage is told of shares, as steps."""
    record, seen = recorded()
    shares = Shares(record, "work")
    for each in share:
        shares.reach(each)
    return seen


def test_shares_become_steps_and_work_without_a_loop_is_one():
    every = [("work", step) for step in range(100)]
    assert told([]) == every[:1]
    assert told([0.5]) == told([0.2, 0.5]) == told([0.5, 0.5, 0.1]) == every[:51]
    assert told([1.0]) == told([0.3, 1.0]) == [*every, ("work", "end")]
    seen = []

    def record(items, stage):
        for _ in items:
            seen.append(f"{stage} begins")
            yield
            seen.append(f"{stage} ends")

    with one_step(record, "work"):
        seen.append("work")
    assert seen == ["work begins", "work", "work ends"]


class Parts:
    """A source of parts of two rows, each of which says which share is read after it."""

    def __init__(self, *shares):
        self._shares = shares

    def batches(self, names):
        for share in self._shares:
            yield Batch(share, {name: [1, 2] for name in names})


class Far:
    """A cluster of six rows."""

    def total(self, names, tally):
        total = tally.zero()
        tally.add(total, {name: [1, 2] * 3 for name in names})
        return total

    def of_people(self, person, most, *, numbered=False):
        raise NotImplementedError


class Lengths:
    def zero(self):
        return {}

    def add(self, total, item):
        for name, cells in item.items():
            total[name] = total.get(name, 0) + len(cells)

    merge = add


def test_a_reading_is_a_stage_of_steps_and_a_part_is_read_once_it_is_asked_for():
    every = [*[("look", step) for step in range(100)], ("look", "end")]
    for source, number in ((Parts(), None), (Parts(0.2, 0.5), 4), (Far(), 6)):
        record, seen = recorded()
        total = total_of(source, ["x"], Lengths(), record)
        assert total == total_of(source, ["x"], Lengths())
        assert total.get("x") == number
        assert seen == every
    record, seen = recorded()
    steps = [len(seen) for _ in in_batches(Parts(0.2, 0.5), ["x"], "look", record)]
    assert steps == [1, 21]
    assert [*in_batches(Parts(0.2), ["x"], "look")] == [{"x": [1, 2]}]


def test_a_frame_is_read_in_parts_of_which_each_says_how_much_is_read(monkeypatch):
    source = FrameSource.of(pd.DataFrame({1: range(5), "b": list("vwxyz")}))
    assert [part.done for part in source.batches(["b"])] == [1.0]
    monkeypatch.setattr(frames, "BLOCK", 2)
    assert (source.names, source.num_rows()) == (["1", "b"], 5)
    assert source.dtypes == {"1": np.int64, "b": object}
    parts = [*source.batches(["b"])]
    assert [part.done for part in parts] == [0.4, 0.8, 1.0]
    assert ["".join(part.columns["b"]) for part in parts] == ["vw", "xy", "z"]
    upper = source.recoded({"b": lambda cells: cells.str.upper()})
    assert ([*upper.columns["b"]], [*source.columns["b"]]) == ([*"VWXYZ"], [*"vwxyz"])
    nothing = FrameSource({})
    assert (nothing.names, nothing.num_rows(), [*nothing.batches([])]) == ([], 0, [])


def test_a_frame_names_all_of_its_columns():
    source = FrameSource.of(pd.DataFrame([[1, 2]], columns=["b", "b"]))
    assert source.names == source.recoded({}).names == ["b", "b"]


@pytest.mark.parametrize("tell", [print, lambda items, stage: None, silent])
def test_a_progress_may_return_anything(tell):
    assert list(heard(tell)((1, 2), "look")) == [1, 2]


@pytest.mark.parametrize("tell", [None, lambda items: items, "bar"])
def test_what_cannot_be_told_of_items_and_a_stage_is_no_progress(tell):
    with pytest.raises(ValueError, match="must be a function of items and a stage"):
        heard(tell)
