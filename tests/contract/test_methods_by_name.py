"""Every method by its name or as an object, through all doors. A new one is one file."""

import inspect
import textwrap
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv.cag import Inequality
from small_engine import MaximumEntropy

from sdv_privpgd import (
    AIMSynthesizer,
    Boolean,
    Categorical,
    MatchError,
    MSTSynthesizer,
    Numerical,
    PrivPGDSynthesizer,
    fit_table,
    methods,
)
from sdv_privpgd.audit import audit_fit
from sdv_privpgd.cli.messages import in_options
from sdv_privpgd.cli.start import main
from sdv_privpgd.inference import Question
from sdv_privpgd.inference.answers import TABLES
from sdv_privpgd.methods import AIM, MST, MWEM, Independent, ParticleGradientDescent, PrivatePGM
from sdv_privpgd.methods.method import ENGINES, method_of, named_methods

KINDS = (PrivPGDSynthesizer, MSTSynthesizer, AIMSynthesizer)
METADATA = sdv_tables.metadata_of({"a": {"sdtype": "boolean"}, "b": {"sdtype": "categorical"}})
DOMAIN = {"b": {"range_values": ["x", "y"]}}
COLUMNS = {"a": Boolean(), "b": Categorical(["x", "y"])}
TABLE = pd.DataFrame({"a": [True, False] * 100, "b": ["x", "y", "y", "y"] * 50})


@pytest.mark.parametrize(("kind", "method"), [*zip(KINDS, ("privpgd", "mst", "aim"), strict=True)])
def test_synthesizers_are_one_with_other_defaults(kind, method):
    synthesizer = kind(METADATA, 1.0, public_domain=DOMAIN)
    assert synthesizer.method == method
    assert inspect.signature(kind) == inspect.signature(PrivPGDSynthesizer)
    told = set(synthesizer.get_parameters())
    assert told == set(inspect.signature(kind).parameters) - {"metadata"}


@pytest.mark.parametrize("name", named_methods())
def test_every_method_makes_rows_by_its_name(name, monkeypatch):
    """At the size of an audit, through SDV's door: ``fit_table`` is the same fit."""
    monkeypatch.setattr(
        "sdv_privpgd.plugin.base.method_of", lambda *named, **own: method_of(*named, **own).small()
    )
    synthesizer = PrivPGDSynthesizer(METADATA, 2.0, public_domain=DOMAIN, method=name)
    synthesizer.fit(TABLE)
    assert set(synthesizer.sample(40)["b"].dropna()) <= {"x", "y"}
    assert synthesizer.ledger.spent() <= 2.0
    said = synthesizer.report().to_dict()
    assert said["method"].startswith(type(named_methods()[name]()).__name__)


@pytest.mark.parametrize(
    ("asks", "engine"),
    [("mst", "particles"), ("rap++", "particles"), ("private_gsd", "pgm"), ("mst", "rap++")],
)
def test_a_name_may_have_another_engine(asks, engine):
    name = f"{asks}+{engine}"
    found = method_of(name, seed=7)
    assert type(found) is type(method_of(asks))
    assert type(found.engine).__name__ == ENGINES[engine].split(":")[1]
    assert getattr(found.engine, "seed", 7) == 7


def test_a_method_without_an_engine_takes_none():
    with pytest.raises(ValueError, match="'dp-ctgan' makes its rows without an engine") as told:
        method_of("dp-ctgan+particles")
    assert in_options(told.value).startswith("--method dp-ctgan makes its rows")


@pytest.mark.parametrize("method", [MST(), AIM(max_megabytes=2), MWEM(), Independent()], ids=repr)
def test_objects_are_taken_as_they_are(method):
    own = replace(method, engine=PrivatePGM(steps=100))
    synthesizer = PrivPGDSynthesizer(METADATA, 1.0, public_domain=DOMAIN, method=own)
    assert synthesizer._settings().method == own
    fitted = fit_table(TABLE, COLUMNS, 1.0, method=own)
    assert fitted.settings.method == own
    assert len(fitted.sample(7)) == 7


@pytest.mark.parametrize("method", [MST, AIM, MWEM])
def test_questions_are_answered_where_no_model_could_hold_their_tables(method):
    columns = {name: Categorical([0, 1, 2, 3], nullable=False) for name in "abcd"}
    table = pd.DataFrame(dict.fromkeys(columns, [0, 1, 2, 3] * 100))
    questions = [Question(what="table", of=names) for names in combinations(columns, 3)]
    own = {} if method is MST else {"max_megabytes": 0.001}
    engine = PrivatePGM(steps=10, largest_megabytes=0.001)  # the four columns take twice that
    fitted = fit_table(
        table, columns, 1.0, method=method(engine=engine, **own), questions=questions
    )
    assert all(fitted.answer("table", of=each.of).basis == TABLES for each in questions)
    assert len(fitted.sample(7)) == 7


@pytest.mark.parametrize("age", [Numerical(0, 99, decimal_places=0), Numerical()])
def test_rap_plus_plus_refuses_a_number_as_its_label_before_it_spends(age):
    table = TABLE.assign(age=range(200))
    with pytest.raises(MatchError, match="'age' has too many of them") as refused:
        fit_table(
            table, {"age": age, "b": Categorical(["x", "y"])}, 5.0, method="rap++", target="age"
        )
    assert not hasattr(refused.value, "__notes__")  # of what was spent


def test_an_engine_from_elsewhere_is_taken(capsys):
    engine = MaximumEntropy()
    synthesizer = PrivPGDSynthesizer(
        METADATA, 2.0, public_domain=DOMAIN, method=MST(engine=engine), verbose=True
    )
    synthesizer.fit(TABLE)
    assert len(synthesizer.sample(5)) == 5
    assert "done" in capsys.readouterr().err
    with pytest.raises(ValueError, match="the model is a Joint"):
        synthesizer.get_loss_values()


WRONG = ["mts", "privpgd+gpm", "+pgm", "", MST, 3, None]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_what_cannot_be_meant_is_refused_at_once_and_again_before_a_fit(wrong):
    if wrong is not None:  # the class's own
        with pytest.raises(ValueError, match="method must be one of"):
            PrivPGDSynthesizer(METADATA, 1.0, public_domain=DOMAIN, method=wrong)
    with pytest.raises(ValueError, match="method must be one of"):
        fit_table(TABLE, {"a": Boolean()}, 1.0, method=wrong)
    later = PrivPGDSynthesizer(METADATA, 1.0, public_domain=DOMAIN)
    later.method = wrong
    with pytest.raises(ValueError, match="method must be one of"):
        later.fit(TABLE)
    assert later._ledgers.ledger is None


@pytest.mark.parametrize("wrong", [PrivatePGM, MST, "gpm", None], ids=repr)
def test_a_wrong_engine_is_refused_at_once(wrong):
    with pytest.raises(ValueError, match="engine must be one of"):
        MST(engine=wrong)


LEAST = "must be an integer of at least"
NAN, INFINITE = float("nan"), float("inf")
MEANINGLESS = [
    *((methods.AllKWay, {"degree": wrong}, "degree") for wrong in (0, 4, "2", None)),
    *((methods.PrivPGD, {name: wrong}, f"{name} must be {said}")
      for name, wrong, said in (
          ("first_share", 0, "above 0 and at most 1"), ("first_share", 1.5, "above 0 and at most"),
          ("triples", 1, "a number of at least 0"), ("triples", -0.1, "a number of at least 0"),
          ("most_pairs", 2.5, "an integer of at least 1"), ("pairs", (("a", "b", "c"),), "pairs"))),
    *((method, {"importance": wrong}, "at least 1|map columns")
      for method in (methods.PrivPGD, AIM, MWEM, MST)
      for wrong in ({"e": 0.5}, {"e": INFINITE}, {"e": NAN}, {"e": True}, {"e": "much"}, ["e"])),
    *((methods.ProtectedThreshold, {"theta": {"a": 1.0}, "b": 0.1, name: wrong}, said)
      for name, wrong, said in (
          ("theta", {}, "theta is empty"), ("theta", {"a": NAN}, r"theta\['a'\] must be a finite"),
          ("b", INFINITE, "b must be a finite number, got inf"), ("slope", NAN, "slope must be a"),
          ("weight", -1.0, "weight must be a finite number of at least 0, got -1.0"))),
    *((methods.AIM, {"rounds_per_attribute": 0}, f"rounds_per_attribute {LEAST} 1, got 0"),
      (methods.MWEM, {"rounds": 0}, f"rounds {LEAST} 1, got 0"),
      (methods.Adaptive, {"rounds": 0}, f"rounds {LEAST} 1, got 0"),
      (methods.Adaptive, {"marginals": 0}, f"marginals {LEAST} 1, got 0"),
      (methods.DPMERF, {"importance": {"a": 6.0, "b": 6.0}}, "takes one target"),
      (methods.DPMERF, {"bandwidth": -1.0}, "bandwidth must be a positive number")),
    *((methods.DPMERF, {name: wrong}, f"{name} must be an integer")
      for name, wrong in (("num_features", 0), ("seed", -1))),
    *((methods.RAPPlusPlus, {name: wrong}, LEAST)
      for name, wrong in (("rounds", 0), ("num_bins", 1), ("directions", -1), ("seed", 0.5))),
    *((method, {name: wrong}, name) for method in (methods.DPDiffusion, methods.DPCTGAN)
      for name, wrong in (("steps", 0), ("batch", True), ("width", 1.5), ("clip", 0.0),
                          ("learning_rate", NAN))),
    *((methods.PrivMRF, {name: wrong}, name)
      for name, wrong in (("max_megabytes", 0), ("usefulness", -1), ("candidates", 0),
                          ("max_attributes", 0))),
    *((methods.PrivSyn, {name: wrong}, name)
      for name, wrong in (("max_cells", -1), ("importance", {"a": 0}))),
    *((methods.GUM, {name: wrong}, name) for name, wrong in (("num_rows", 0), ("sweeps", -1))),
    *((methods.AnnealedProjection, {name: wrong}, name)
      for name, wrong in (("num_components", 0), ("learning_rate", 0.0), ("first_slope", -1.0),
                          ("tolerance", 1.0))),
    *((methods.PrivateGSD, {name: wrong}, f"{name} {LEAST} {least}, got {wrong}")
      for name, wrong, least in (("num_rows", 0, 1), ("elite", 0, 1), ("crossovers", -1, 0))),
    *((methods.RelaxedProjection, {name: wrong}, f"{name} must be an integer")
      for name, wrong in (("num_components", 0), ("steps", True))),
    *((methods.GenerativeNetwork, {name: wrong}, f"{name} must be an integer")
      for name, wrong in (("latent", 0), ("widths", (8, 0)))),
    *((engine, {"tolerance": wrong}, "tolerance must be a number of at least 0")
      for engine, wrong in ((methods.PrivateGSD, 1.0), (methods.RelaxedProjection, 1.0),
                            (methods.GenerativeNetwork, -0.1))),
    *((methods.GeneratorNetwork, {name: wrong}, f"{name} {LEAST} 1")
      for name, wrong in (("steps", 0), ("num_inputs", 0), ("num_features", True),
                          ("num_particles", 0))),
    *((engine, {"learning_rate": wrong}, "learning_rate must be a positive number")
      for engine, wrong in ((methods.RelaxedProjection, 0.0), (methods.GenerativeNetwork, -1.0),
                            (methods.GeneratorNetwork, NAN), (methods.GeneratorNetwork, INFINITE))),
    *((ParticleGradientDescent, {name: wrong}, f"{name} {LEAST} {least}, got {wrong}")
      for name, wrong, least in (("num_particles", 0, 1), ("epochs", -1, 0), ("batch_size", 0, 1))),
    *((ParticleGradientDescent, {name: wrong}, f"{name} must be one of")
      for name, wrong in (("start", "random"), ("targets", "smooth"), ("kernel", "cuda"))),
    (ParticleGradientDescent, {"mask_probability": 1.0}, "of at least 0 and below 1, got 1.0"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "wrong", "said"), MEANINGLESS)
def test_settings_that_mean_nothing_are_refused(part, wrong, said):
    with pytest.raises(ValueError, match=said):
        part(**wrong)


def test_an_engine_that_is_an_object_is_told_of_constraints():
    metadata = sdv_tables.metadata_of({name: {"sdtype": "numerical"} for name in ("low", "high")})
    facts = {"range_min": 0, "range_max": 9, "decimal_places": 0, "num_bins": 10}
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"low": rng.integers(0, 5, 300), "high": rng.integers(5, 10, 300)})
    engine = ParticleGradientDescent(num_particles=300, epochs=5)
    synthesizer = PrivPGDSynthesizer(
        metadata,
        3.0,
        public_domain={"low": facts, "high": facts},
        method=methods.PrivPGD(engine=engine),
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


@pytest.mark.long
@pytest.mark.parametrize("name", named_methods())
def test_the_command_line_names_them_all(name, tmp_path, capsys):
    METADATA.save_to_json(tmp_path / "metadata.json")
    asked = ["--epsilon", "1", "--rows", "100", "--metadata", str(tmp_path / "metadata.json")]
    main(["plan", *asked, "--method", name])
    assert "Plan for 100 rows" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    assert name in capsys.readouterr().out.replace("\n", " ")


TOY = '''
    """All columns together, and the rows of the noisy table itself."""

    from dataclasses import dataclass

    import numpy as np

    from sdv_privpgd.estimate.support import simplex_projection
    from sdv_privpgd.methods.method import Method
    from sdv_privpgd.privacy.queries import MarginalQuery
    from sdv_privpgd.base.progress import silent
    from sdv_privpgd.synthesize.engine import Particles


    @dataclass(frozen=True)
    class WholeTable(Method):
        citation = "Toy, A. (2026). The whole table."
        title = "Rows were drawn from the noisy table"

        def cliques(self, domain):
            return [domain.attributes]

        def measure(self, curator, *, progress=silent):
            asked = [MarginalQuery(curator.domain.attributes)]
            return curator.measure(asked, curator.ledger.remaining, what="the whole table")

        def fit(self, domain, measurements, *, warm_start=None, progress=silent):
            counts = np.asarray(measurements[-1].answer, dtype=float)
            chances = simplex_projection(counts / max(counts.sum(), 1), 1.0).ravel()
            cells = np.random.default_rng(0).choice(counts.size, 500, p=chances)
            codes = np.stack(np.unravel_index(cells, counts.shape), axis=1)
            return Particles(domain=domain, codes=codes)

        def counted(self, measurements):
            return "all columns together"


    METHODS = {"toy": WholeTable}
'''


def test_a_method_is_one_file(tmp_path, monkeypatch, capsys):
    """The file is found by every door, reported with its citation, and audited."""
    (tmp_path / "whole_table_for_a_test.py").write_text(textwrap.dedent(TOY))
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    fitted = fit_table(TABLE, COLUMNS, 3.0, method="toy")
    assert [charge.what for charge in fitted.ledger.charges][-1] == "the whole table"
    assert abs((fitted.sample(500)["b"] == "y").mean() - 0.75) < 0.1
    assert "all columns together [1]" in fitted.report().html()
    assert "Toy, A. (2026)" in fitted.report().html()
    again = fitted.add_budget(TABLE, 0.5)
    assert again.ledger.spent() > fitted.ledger.spent()
    synthesizer = PrivPGDSynthesizer(METADATA, 3.0, public_domain=DOMAIN, method="toy")
    synthesizer.fit(TABLE)
    assert len(synthesizer.sample(5)) == 5
    audited = audit_fit(COLUMNS, epsilon=3.0, runs=200, false_alarms=1e-7, method="toy")
    assert audited.to_dict()["failed"] == []
    METADATA.save_to_json(tmp_path / "metadata.json")
    asked = ["--epsilon", "1", "--rows", "100", "--metadata", str(tmp_path / "metadata.json")]
    main(["plan", *asked, "--method", "toy"])
    assert "the whole table" in capsys.readouterr().out
