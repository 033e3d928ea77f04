"""SDGym runs our synthesizers by name and scores them."""

import json
import zipfile

import pytest
import sdv_tables

from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD

# Some releases of SDGym import what SDV 2 no longer has.
sdgym = pytest.importorskip("sdgym", exc_type=ImportError)

from sdv_privpgd.plugin.synthesizers import variant  # noqa: E402

PARTICLES = PrivPGD(engine=ParticleGradientDescent(num_particles=200))


@pytest.fixture
def folder(tmp_path):
    """A folder of one data set, as SDGym wants it."""
    place = tmp_path / "single_table" / "patients"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "data.zip", "w") as archive:
        archive.writestr("table.csv", sdv_tables.table(600).to_csv(index=False))
    (place / "metadata.json").write_text(json.dumps(sdv_tables.metadata().to_dict()))
    return tmp_path


@pytest.mark.filterwarnings("ignore")  # SDGym's own
def test_a_benchmark_names_the_budget_and_has_no_error(folder):
    domain = {"public_domain": sdv_tables.PUBLIC_DOMAIN}
    scores = sdgym.benchmark_single_table(
        synthesizers=[],
        custom_synthesizers=[
            variant(2.0, method=PARTICLES),
            variant(5.0, method=PARTICLES, **domain),
            variant(1.5, 1e-6, synthesizer="MSTSynthesizer", **domain),
        ],
        sdv_datasets=None,
        additional_datasets_folder=str(folder),
        compute_privacy_score=False,
    ).set_index("Synthesizer")
    assert set(scores.index) >= {
        "Variant:PrivPGD(epsilon=2.0, delta=1e-05)",
        "Variant:PrivPGD(epsilon=5.0, delta=1e-05)",
        "Variant:MST(epsilon=1.5, delta=1e-06)",
    }
    ours = scores[scores.index.str.contains("epsilon")]
    assert ours.filter(regex="(?i)^error$").isna().all(axis=None)
    assert ours["Quality_Score"].between(0, 1).all()
    assert ours["Diagnostic_Score"].between(0, 1).all()


def test_a_synthesizer_has_as_many_variants_as_one_likes_and_an_unknown_one_is_named():
    epsilons = (1.0, 5.0, 1.0)
    names = [f"Variant:PrivPGD(epsilon={epsilon}, delta=1e-05)" for epsilon in epsilons]
    assert [variant(epsilon).__name__ for epsilon in epsilons] == names
    with pytest.raises(ValueError, match="got 'Nobody'"):
        variant(1.0, synthesizer="Nobody")
    for wrong in ({"epsilon": 0}, {"epsilon": 1, "delta": 1}):
        with pytest.raises(ValueError, match=r"epsilon|delta"):
            variant(**wrong)
