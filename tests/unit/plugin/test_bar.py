"""The one bar of a fit: it only goes forward, ends at its end, and knows how long it will take."""

import re

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv.sampling import Condition

from sdv_privpgd import (
    AIM,
    MSTSynthesizer,
    PrivateGSD,
    PrivPGDSynthesizer,
    RelaxedProjection,
)
from sdv_privpgd.plugin.bar import Bar
from sdv_privpgd.progress import Stage, expect, silent

PLAN = [Stage("encode", 1.0), Stage("measure", 2.0), Stage("descend", 5.0), Stage("finish", 2.0)]


def played(plan, played_stages):
    """The places of a bar that expects the plan, before and after each stage that comes.

    In parts of its length but for the last hundredth, which is for the end.
    """
    places = []
    with Bar("Test") as bar:
        bar.expect(plan)
        for stage, steps in played_stages:
            places += [bar.position / 0.99 for _ in bar(range(steps), stage)]
            places.append(bar.position / 0.99)
    assert bar.position == 1
    return places


def test_a_stage_has_the_part_of_the_bar_that_is_foretold():
    places = played(PLAN, [(stage.name, 1) for stage in PLAN])
    assert places == pytest.approx([0, 0.1, 0.1, 0.3, 0.3, 0.8, 0.8, 1])


def test_a_stage_that_does_not_come_leaves_its_part_to_the_others():
    places = played(PLAN, [("encode", 1), ("descend", 1), ("finish", 1)])
    assert places == pytest.approx([0, 0.1, 0.1, 0.1 + 0.9 * 5 / 7, 0.1 + 0.9 * 5 / 7, 1])


def test_a_stage_that_nobody_expects_takes_no_part():
    places = played(PLAN[:1], [("encode", 2), ("other", 3), ("other", 1)])
    assert places == pytest.approx([0, 0.5, 1, 1, 1, 1, 1, 1, 1])


def test_new_plans_move_nothing_and_share_out_what_is_left():
    with Bar("Test") as bar:
        bar.expect(PLAN)
        list(bar(range(3), "encode"))
        bar.expect([Stage("fit", 100.0)])
        assert bar.position == pytest.approx(0.099)
        steps = iter(bar(range(2), "fit"))
        next(steps), next(steps)
        assert bar.position == pytest.approx(0.099 + 0.891 / 2)


def test_a_failure_leaves_the_bar_where_it_is_and_is_not_swallowed(capsys):
    bar = Bar("Test")
    bar.expect(PLAN)
    list(bar(range(1), "encode"))
    with pytest.raises(MemoryError), bar:
        raise MemoryError
    assert bar.position == pytest.approx(0.099)
    shown = capsys.readouterr().err
    assert "done" not in shown
    assert shown.endswith("\n")


def test_nobody_forecasts_for_what_shows_nothing():
    expect(silent, lambda: pytest.fail("asked"))


class Clock:
    """A clock that moves by what the steps are said to take."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("tqdm.std.time", lambda: self.now)

    def left(self, plan, speed, capsys, steps=20) -> list[tuple[float, float, float]]:
        """What is shown as the time left, what it is, and what is behind, after each step."""
        whole, found = speed * sum(stage.seconds for stage in plan), []
        with Bar("Test") as bar:
            bar.expect(plan)
            for stage in plan:
                for _ in bar(range(steps), stage.name):
                    (*_, shown) = re.findall(r"<([\d:]+)", capsys.readouterr().err) or ["0"]
                    found.append((in_seconds(shown), whole - self.now, self.now))
                    self.now += stage.seconds / steps * speed
        return found


def in_seconds(text: str) -> int:
    seconds = 0
    for part in text.split(":"):
        seconds = 60 * seconds + int(part)
    return seconds


MINUTES = [Stage(stage.name, 60 * stage.seconds) for stage in PLAN]


@pytest.mark.parametrize("speed", [0.3, 1.0, 4.0])
def test_the_time_left_is_right_on_any_machine_after_a_quarter(speed, monkeypatch, capsys):
    shown = Clock(monkeypatch).left(MINUTES, speed, capsys)
    total = 600 * speed
    late = [(said, true) for said, true, gone in shown if gone > total / 4 and true > 20]
    assert len(late) > 30
    for said, true in late:
        assert true / 2 < said < true * 2


def test_the_time_left_is_foretold_before_anything_is_done(monkeypatch, capsys):
    Clock(monkeypatch)
    with Bar("Test") as bar:
        bar.expect(MINUTES)
        next(iter(bar(range(5), "encode")))
        assert "<10:00" in capsys.readouterr().err


METHODS = {
    "particles": lambda **known: PrivPGDSynthesizer(**known, **sdv_tables.SMALL),
    "independent": lambda **known: PrivPGDSynthesizer(
        strategy="independent", **known, **sdv_tables.SMALL
    ),
    "mwem": lambda **known: PrivPGDSynthesizer(strategy="mwem", **known, **sdv_tables.SMALL),
    "aim": lambda **known: PrivPGDSynthesizer(
        strategy=AIM(rounds_per_attribute=1), **known, **sdv_tables.SMALL
    ),
    "mst": lambda **known: MSTSynthesizer(**known),
    "privsyn": lambda **known: PrivPGDSynthesizer(strategy="privsyn", engine="gum", **known),
    "privmrf": lambda **known: MSTSynthesizer(strategy="privmrf", **known),
    "rap": lambda **known: MSTSynthesizer(
        strategy="adaptive", engine=RelaxedProjection(num_components=20, steps=30), **known
    ),
    "private gsd": lambda **known: MSTSynthesizer(
        engine=PrivateGSD(num_rows=50, generations=500), **known
    ),
}


@pytest.mark.filterwarnings("ignore:The ranges or categories")
@pytest.mark.parametrize("domain", [None, sdv_tables.PUBLIC_DOMAIN], ids=["found", "declared"])
@pytest.mark.parametrize("method", METHODS)
def test_a_fit_has_one_bar_that_only_goes_forward_to_its_end(method, domain, monkeypatch, capsys):
    places, bars = [], []
    begin, move = Bar.__init__, Bar._move

    def counted(self, title):
        begin(self, title)
        bars.append(self)

    def watched(self, share):
        move(self, share)
        places.append(self.position)

    monkeypatch.setattr(Bar, "__init__", counted)
    monkeypatch.setattr(Bar, "_move", watched)
    synthesizer = METHODS[method](
        metadata=sdv_tables.metadata(), epsilon=1.0, public_domain=domain, verbose=True
    )
    synthesizer.fit(sdv_tables.table(200))
    (bar,) = bars
    assert bar.position == 1
    assert (np.diff(places) >= 0).all()
    assert len(set(places)) > 10
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert " 100%|" in shown
    assert "done" in shown


@pytest.mark.filterwarnings("ignore:The ranges or categories")
def test_a_fit_and_samples_are_silent_unless_asked(capsys):
    for verbose in (False, True):
        synthesizer = MSTSynthesizer(
            sdv_tables.metadata(), 1.0, public_domain=sdv_tables.PUBLIC_DOMAIN, verbose=verbose
        )
        shown = []
        for work in (
            lambda: synthesizer.fit(sdv_tables.table(50)),  # noqa: B023
            lambda: synthesizer.sample(20, batch_size=5),  # noqa: B023
            lambda: synthesizer.sample_from_conditions([Condition({"ward": "A"}, 3)]),  # noqa: B023
            lambda: synthesizer.sample_remaining_columns(pd.DataFrame({"ward": ["A"]})),  # noqa: B023
        ):
            work()
            shown.append("100%" in capsys.readouterr().err)
        assert shown == [verbose] * 4
