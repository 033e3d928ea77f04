"""The one bar of a fit: a line that shows the steps of each stage and ends at its end."""

import pandas as pd
import pytest
import sdv_tables
from sdv.sampling import Condition

from sdv_privpgd import MSTSynthesizer, PrivPGDSynthesizer
from sdv_privpgd.base.progress import Bar
from sdv_privpgd.methods import AIM, MST, Adaptive, PrivateGSD, RelaxedProjection


def test_a_stage_moves_the_bar_step_by_step_and_the_next_begins_anew():
    with Bar("Test") as bar:
        for stage, steps in (("encode", 3), ("other", 1), ("nothing", 0)):
            places = [bar._shown.n for _ in bar(range(steps), stage)]
            assert places == list(range(steps))
            assert bar._shown.total == steps
    assert bar._shown.n == bar._shown.total == 1


def test_a_failure_leaves_the_bar_where_it_is_and_is_not_swallowed(capsys):
    bar = Bar("Test")
    steps = bar(range(2), "encode")
    next(steps)
    with pytest.raises(MemoryError), bar:
        raise MemoryError
    assert bar._shown.n == 0
    shown = capsys.readouterr().err
    assert "done" not in shown
    assert shown.endswith("\n")


METHODS = {
    "particles": lambda **known: PrivPGDSynthesizer(**known, **sdv_tables.SMALL),
    "aim": lambda **known: PrivPGDSynthesizer(
        method=AIM(rounds_per_attribute=1, engine="particles"), **known
    ),
    "rap": lambda **known: MSTSynthesizer(
        method=Adaptive(engine=RelaxedProjection(num_components=20, steps=30)), **known
    ),
    "private gsd": lambda **known: MSTSynthesizer(
        method=MST(engine=PrivateGSD(num_rows=50, generations=500)), **known
    ),
}


@pytest.mark.filterwarnings("ignore:The ranges or categories")
@pytest.mark.parametrize("domain", [None, sdv_tables.PUBLIC_DOMAIN], ids=["found", "declared"])
@pytest.mark.parametrize("method", METHODS)
def test_a_fit_has_one_bar_with_a_line_of_its_own(method, domain, monkeypatch, capsys):
    bars, stages = [], []
    begin, show = Bar.__init__, Bar._show

    def counted(self, title):
        begin(self, title)
        bars.append(self)

    def watched(self, what, steps):
        show(self, what, steps)
        stages.append((what, steps))

    monkeypatch.setattr(Bar, "__init__", counted)
    monkeypatch.setattr(Bar, "_show", watched)
    synthesizer = METHODS[method](
        metadata=sdv_tables.metadata(), epsilon=10.0, public_domain=domain, verbose=True
    )
    synthesizer.fit(sdv_tables.table(200))
    assert len(bars) == 1
    assert stages[-1] == ("done", 1)
    assert len(stages) > 3
    assert any(steps > 1 for _, steps in stages)
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
