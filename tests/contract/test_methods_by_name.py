"""Every strategy and engine by its name or as an object, through all synthesizers and the door."""

import inspect

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv.cag import Inequality
from small_engine import MaximumEntropy

import sdv_privpgd
from sdv_privpgd import (
    AIM,
    MST,
    MWEM,
    AIMSynthesizer,
    PrivPGD,
    Boolean,
    Categorical,
    Independent,
    MSTSynthesizer,
    ParticleGradientDescent,
    PrivatePGM,
    PrivMRF,
    PrivPGDSynthesizer,
    ProtectedThreshold,
    fit_table,
)
from sdv_privpgd.audit.subjects import small
from sdv_privpgd.cli.program import main
from sdv_privpgd.fitting.methods import ENGINES, STRATEGIES, engine_of

KINDS = (PrivPGDSynthesizer, MSTSynthesizer, AIMSynthesizer)
METADATA = sdv_tables.metadata_of({"a": {"sdtype": "boolean"}, "b": {"sdtype": "categorical"}})
DOMAIN = {"b": {"range_values": ["x", "y"]}}
TABLE = pd.DataFrame({"a": [True, False] * 100, "b": ["x", "y", "y", "y"] * 50})
USUAL = {
    PrivPGDSynthesizer: ("all_pairs", "particles"),
    MSTSynthesizer: ("mst", "pgm"),
    AIMSynthesizer: ("aim", "pgm"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_synthesizers_are_one_with_other_defaults(kind):
    synthesizer = kind(METADATA, 1.0, public_domain=DOMAIN)
    assert (synthesizer.strategy, synthesizer.engine) == USUAL[kind]
    assert inspect.signature(kind) == inspect.signature(PrivPGDSynthesizer)
    told = set(synthesizer.get_parameters())
    assert told == set(inspect.signature(kind).parameters) - {"metadata"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_goes_with_every_engine_but_that_of_embeddings(
    strategy, engine, monkeypatch
):
    monkeypatch.setattr(
        "sdv_privpgd.plugin.base.engine_of", lambda *named, **own: small(engine_of(*named, **own))
    )
    settings = {"public_domain": DOMAIN, "strategy": strategy, "engine": engine}
    unread = strategy == "half_spaces" and engine != "rap++"
    untrained = (strategy == "private_gradients") != (engine in ("diffusion", "gan"))
    if (strategy == "mean_embedding") != (engine == "generator") or unread or untrained:
        with pytest.raises(ValueError, match=r"Choose (engine|strategy)='[\w+]+'"):
            MSTSynthesizer(METADATA, 2.0, **settings)
        return
    synthesizer = MSTSynthesizer(METADATA, 2.0, **settings)
    synthesizer.fit(TABLE)
    assert set(synthesizer.sample(40)["b"].dropna()) <= {"x", "y"}
    settings = synthesizer._settings()
    assert type(settings.strategy) is STRATEGIES[strategy]
    assert synthesizer.ledger.spent() <= 2.0
    said = synthesizer.report().to_dict()
    assert type(settings.engine).__name__ in said["engine"]


@pytest.mark.parametrize("strategy", [MST(), AIM(max_megabytes=2), MWEM(), Independent()], ids=repr)
def test_objects_are_taken_as_they_are(strategy):
    engine = PrivatePGM(steps=100)
    synthesizer = PrivPGDSynthesizer(
        METADATA, 1.0, public_domain=DOMAIN, strategy=strategy, engine=engine
    )
    synthesizer.fit(TABLE)
    settings = synthesizer._settings()
    assert settings.strategy is strategy
    assert settings.engine is engine
    fitted = fit_table(
        TABLE, {"a": Boolean(), "b": Categorical(["x", "y"])}, 1.0, strategy=strategy, engine=engine
    )
    assert fitted.settings.engine is engine
    assert len(fitted.sample(7)) == 7


def test_the_door_takes_names():
    described = {"a": Boolean(), "b": Categorical(["x", "y"])}
    fitted = fit_table(TABLE, described, 1.0, strategy="independent", engine="pgm")
    assert fitted.settings.strategy == Independent()
    assert fitted.settings.engine == PrivatePGM()


def test_an_engine_from_elsewhere_is_taken(capsys):
    engine = MaximumEntropy()
    synthesizer = PrivPGDSynthesizer(
        METADATA, 2.0, public_domain=DOMAIN, strategy="mst", engine=engine, verbose=True
    )
    synthesizer.fit(TABLE)
    assert engine.fits
    assert len(synthesizer.sample(5)) == 5
    assert "done" in capsys.readouterr().err
    with pytest.raises(ValueError, match="the model is a Joint"):
        synthesizer.get_loss_values()


WRONG = [
    {"strategy": "mts"},
    {"strategy": MST},
    {"strategy": 3},
    {"engine": "gpm"},
    {"engine": PrivatePGM},
    {"engine": PrivPGD()},
    {"engine": "pgm", "num_particles": 50},
    {"engine": "generator", "penalties": [ProtectedThreshold(theta={"a": 1.0}, b=0.5)]},
    {"engine": "pgm", "enable_gpu": True},
    {"engine": "rap", "num_particles": 50},
    {"engine": "private_gsd", "enable_gpu": True},
    {"engine": "gum", "num_particles": 50},
    {"engine": ParticleGradientDescent(), "num_particles": 50},
    {"engine": "pgm", "penalties": [ProtectedThreshold(theta={"a": 1.0}, b=0.5)]},
    {"strategy": "mst", "max_megabytes": 4.0},
    {"strategy": "privsyn", "max_megabytes": 4.0},
    {"strategy": AIM(), "max_megabytes": 4.0},
]


@pytest.mark.parametrize("wrong", WRONG, ids=[", ".join(wrong) for wrong in WRONG])
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_meant_is_refused_at_once_and_again_before_a_fit(kind, wrong):
    with pytest.raises(ValueError, match=r"must be one of|says nothing|can only be set"):
        kind(METADATA, 1.0, public_domain=DOMAIN, **wrong)
    later = kind(METADATA, 1.0, public_domain=DOMAIN)
    for name, value in wrong.items():
        setattr(later, name, value)
    with pytest.raises(ValueError, match=r"must be one of|says nothing|can only be set"):
        later.fit(TABLE)
    assert later._account.ledger is None


@pytest.mark.parametrize("wrong", [{"strategy": "mts"}, {"strategy": MST}, {"engine": "gpm"}])
def test_the_door_refuses_the_same(wrong):
    with pytest.raises(ValueError, match="must be one of"):
        fit_table(TABLE, {"a": Boolean()}, 1.0, **wrong)


def test_max_megabytes_reaches_the_strategy():
    for strategy, kind in (("aim", AIM), ("mwem", MWEM), ("privmrf", PrivMRF)):
        told = AIMSynthesizer(METADATA, 1.0, strategy=strategy, max_megabytes=3)
        assert told._settings().strategy == kind(max_megabytes=3.0)


def test_an_engine_that_is_an_object_is_told_of_constraints():
    metadata = sdv_tables.metadata_of({name: {"sdtype": "numerical"} for name in ("low", "high")})
    facts = {"range_min": 0, "range_max": 9, "decimal_places": 0, "num_bins": 10}
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"low": rng.integers(0, 5, 300), "high": rng.integers(5, 10, 300)})
    engine = ParticleGradientDescent(num_particles=300, epochs=5)
    synthesizer = PrivPGDSynthesizer(
        metadata, 3.0, public_domain={"low": facts, "high": facts}, engine=engine
    )
    synthesizer.add_constraints([Inequality("low", "high")])
    told = []
    fit = ParticleGradientDescent.fit

    def told_of(self, *args, **settings):
        told.append(self.possible)
        return fit(self, *args, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParticleGradientDescent, "fit", told_of)
        synthesizer.fit(table)
    assert ("low", "high") in told[-1]
    rows = synthesizer.sample(300)
    assert (rows["low"] <= rows["high"]).all()
    assert engine.possible == {}


def test_all_of_them_are_public_names():
    classes = {each.__name__ for each in STRATEGIES.values()}
    assert classes | {"ParticleGradientDescent", "PrivatePGM", "GUM", "Strategy", "Engine"} <= set(
        sdv_privpgd.__all__
    )


@pytest.mark.parametrize(
    "method",
    [
        "privpgd",
        "mst",
        "aim",
        "mwem",
        "privsyn",
        "privmrf",
        "private_gsd",
        "independent",
        "dp-merf",
        "rap++",
        "dp-diffusion",
        "dp-ctgan",
    ],
)
def test_the_command_line_names_them_all(method, tmp_path, capsys):
    METADATA.save_to_json(tmp_path / "metadata.json")
    asked = ["--epsilon", "1", "--rows", "100", "--metadata", str(tmp_path / "metadata.json")]
    main(["plan", *asked, "--method", method])
    assert "Plan for 100 rows" in capsys.readouterr().out
