"""SDV's evaluation, plots and files work with our synthesizers as with SDV's own."""

import pandas as pd
import pytest
import sdv_tables
from made_up import heard
from sdv import version
from sdv.evaluation import evaluate_quality, get_column_pair_plot, get_column_plot, run_diagnostic
from sdv.single_table.base import BaseSingleTableSynthesizer
from sdv.utils import load_synthesizer

from sdv_privpgd import MSTSynthesizer, PrivPGDSynthesizer

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::RuntimeWarning")

REAL = sdv_tables.table(400)
METADATA = sdv_tables.metadata_of(
    {**sdv_tables.COLUMNS, "seen": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}},
    primary_key="id",
)


@pytest.fixture(scope="module")
def fitted():
    synthesizer = PrivPGDSynthesizer(
        METADATA, 5.0, public_domain=sdv_tables.PUBLIC_DOMAIN, **sdv_tables.SMALL
    )
    synthesizer.fit(REAL)
    return synthesizer


@pytest.fixture(scope="module", params=["frame", "dict"])
def tables(fitted, request):
    """Real and synthetic rows in both forms that SDV's functions take."""
    synthetic = fitted.sample(len(REAL))
    if request.param == "frame":
        return REAL, synthetic
    return {"table": REAL}, {"table": synthetic}


def test_diagnostic_and_quality_score_structure_values_and_columns(tables):
    report = run_diagnostic(*tables, METADATA, verbose=False)
    scores = report.get_properties().set_index("Property")["Score"]
    assert scores["Data Structure"] == 1.0
    # Valid against the real table's own extremes, which a private table cannot know exactly.
    assert scores["Data Validity"] > 0.9
    report = evaluate_quality(*tables, METADATA, verbose=False)
    assert 0.5 < report.get_score() <= 1.0
    scored = report.get_details("Column Shapes").dropna(subset="Score")["Column"]
    assert set(scored) == {"age", "income", "ward", "grade", "smoker", "seen"}


def test_each_column_and_pairs_are_plotted(fitted):
    shown = {"table": REAL}, {"table": fitted.sample(len(REAL))}, METADATA, "table"
    for column in sdv_tables.PUBLIC_DOMAIN:
        figure = get_column_plot(*shown, column)
        assert {trace.name for trace in figure.data} == {"Real", "Synthetic"}
    for pair in (["age", "income"], ["ward", "smoker"], ["age", "ward"]):
        assert len(get_column_pair_plot(*shown, pair).data) >= 2


# Files


@pytest.mark.parametrize("kind", [PrivPGDSynthesizer, MSTSynthesizer])
def test_files_of_earlier_versions_of_sdv_are_read(kind, tmp_path, monkeypatch):
    synthesizer = kind(METADATA, 1.0, public_domain=sdv_tables.PUBLIC_DOMAIN, seed=1)
    synthesizer.fit(sdv_tables.table(100))
    synthesizer.save(tmp_path / "model.pkl")
    expected = synthesizer.sample(20)
    major, minor, patch = version.community.split(".")[:3]
    monkeypatch.setattr(version, "community", f"{major}.{int(minor) + 1}.{patch}")
    monkeypatch.setattr(version, "public", version.community, raising=False)
    with heard() as caught:
        loaded = load_synthesizer(tmp_path / "model.pkl")
    assert all("SDV" in str(warning.message) for warning in caught)
    pd.testing.assert_frame_equal(loaded.sample(20), expected)
    assert loaded.privacy_report() == synthesizer.privacy_report()


KEPT = {
    "_ledgers", "_dtypes", "_gives_frames", "_fitted_table", "_state_version",
    "adjacency", "delta", "discovery_share", "epsilon", "method",
    "people", "public_domain",
    "public_metadata", "questions", "seed", "target", "verbose",
}  # fmt: skip


def test_what_a_file_holds_has_a_version(fitted):
    """Files of this state version lack a new attribute: give the state another version, too."""
    state = fitted.__getstate__()
    theirs = vars(BaseSingleTableSynthesizer(METADATA))
    assert {name for name in state if name not in theirs} - {"_model"} == KEPT
    assert state["_state_version"] == 14
