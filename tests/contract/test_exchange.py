"""Every method with every engine: they make rows together, or are refused before anything is
spent, with the reason.

Both come from the registries, so that a new one is tested once it has a name.
"""

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from answers import open_curator
from small_engine import MaximumEntropy

from sdv_privpgd import MatchError, MSTSynthesizer, Numerical, combine, fit_table, measure
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.benchmark.methods import SELECTS
from sdv_privpgd.cli.start import main
from sdv_privpgd.methods import AIM, MST, AllKWay, PrivatePGM, PrivPGD, pipeline
from sdv_privpgd.methods.method import ENGINES, engine_of, method_of
from sdv_privpgd.privacy import curator as curating
from sdv_privpgd.privacy.dataset import Dataset

FEW = {
    "num_particles": 200, "epochs": 3, "steps": 15, "iterations": 20, "rounds": 2, "updates": 20,
    "generations": 20, "num_rows": 200, "rounds_per_attribute": 1, "enable_gpu": False, "sweeps": 5,
    "directions": 10, "slopes": 2,
    "candidates": 40, "num_components": 50, "widths": (8, 8), "latent": 4, "elite": 4,
}  # fmt: skip
"""Small numbers for settings of these names, of whatever part has them."""


def few(part):
    """The same strategy or engine at a size of a fraction of a second."""
    asked = inspect.signature(type(part)).parameters
    return replace(part, **{name: value for name, value in FEW.items() if name in asked})


def toy(num_rows=300):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, num_rows)
    b = np.where(rng.random(num_rows) < 0.8, a, rng.integers(0, 3, num_rows))
    codes = np.stack([a, b, rng.integers(0, 2, num_rows)], axis=1)
    return Dataset(Domain(tuple("abc"), (3, 3, 2)), codes)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", [name for name in SELECTS if name != "gem"])
def test_each_pair_makes_rows_and_spends_all_or_is_refused_at_no_cost(method, engine):
    asks, makes = few(method_of(method)), few(engine_of(engine))
    curator = open_curator(toy(), epsilon=3.0)
    try:
        release = pipeline.run(curator, replace(asks, engine=makes))
    except MatchError:
        assert not curator.ledger.charges
        return
    assert release.ledger.remaining == 0
    rows = release.model.sample(50, seed=1)
    assert rows.shape == (50, 3)
    assert (rows >= 0).all()
    assert (rows < release.domain.sizes).all()


def never(*args):
    raise AssertionError("the table was looked at")


WIDE = pd.DataFrame({f"x{number}": [0.5, 9.5] * 100 for number in range(12)})
DECLARED = {name: Numerical(0, 10, decimal_places=2) for name in WIDE}
METADATA = sdv_tables.metadata_of({name: {"sdtype": "numerical"} for name in WIDE})
DOMAIN = {name: {"range_min": 0, "range_max": 10, "decimal_places": 2} for name in WIDE}


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_all_doors_refuse_before_the_table_is_looked_at(share, monkeypatch):
    monkeypatch.setattr(curating, "_noisy", never)
    with pytest.raises(MatchError, match="66 tables overlap so much"):
        fit_table(WIDE, DECLARED, 1.0, method="privpgd+pgm", discovery_share=share)
    synthesizer = MSTSynthesizer(
        METADATA, 1.0, public_domain=DOMAIN, method="privpgd+pgm", discovery_share=share
    )
    with pytest.raises(MatchError, match="junction tree of the graphical model"):
        synthesizer.fit(WIDE)
    assert synthesizer._ledgers.ledger is None
    with pytest.raises(MatchError):
        synthesizer.plan(500)


NUMBERS = pd.DataFrame(np.random.default_rng(0).random((4_000, 9)) * 100).rename(
    columns="x{}".format
)
UNKNOWN = {name: {"sdtype": "numerical"} for name in NUMBERS}


@pytest.mark.parametrize("num_bins", [None, 32])
def test_numbers_that_nobody_declared_are_refused_before_the_table_is_looked_at(
    num_bins, monkeypatch
):
    monkeypatch.setattr(curating, "_noisy", never)
    with pytest.raises(MatchError, match="36 tables overlap so much"):
        fit_table(NUMBERS, UNKNOWN, 4.0, method=PrivPGD(engine="pgm", num_bins=num_bins))


@pytest.mark.parametrize("declared", [Numerical(), Numerical(0, 100, decimal_places=2)])
@pytest.mark.filterwarnings("ignore:Worth a look")
def test_numbers_have_no_more_codes_than_the_engine_can_model(declared):
    engine = PrivatePGM(steps=1, largest_megabytes=1.0)  # of 19 codes in each of four columns
    columns = dict.fromkeys([*NUMBERS][:4], declared)
    sizes = []
    for method in (PrivPGD(), PrivPGD(engine=engine)):
        fitted = fit_table(NUMBERS, columns, 20.0, method=method)
        sizes.append(max(column.size for column in fitted.fitted.schema.columns))
    assert sizes[0] > 19
    assert 16 <= sizes[1] <= 19


def test_that_many_categories_may_end_a_fit_is_said_before_and_nothing_more_is_spent():
    table = pd.DataFrame({f"x{number}": [*"abcdefghijklmnop"] * 250 for number in range(8)})
    unknown = {name: {"sdtype": "categorical"} for name in table}
    with (
        pytest.warns(UserWarning, match="If many categories of 'x0', .* 'x5' and 2 others are f"),
        pytest.raises(MatchError) as refused,
    ):
        fit_table(table, unknown, 8.0, method="privpgd+pgm")
    assert any("spent" in note for note in refused.value.__notes__)
    assert not any("2-way" in note for note in refused.value.__notes__)


def test_tables_of_holders_that_an_engine_cannot_model_are_refused_with_the_remedy(
    tmp_path, capsys
):
    release = measure(WIDE, DECLARED, 1.0, site="North", method=PrivPGD(num_bins=16))
    reason = r"What was measured does not go with PrivatePGM here: .*'particles'"
    with pytest.raises(MatchError, match=reason):
        combine([release], engine="pgm")
    release.save(tmp_path / "north.zip")
    asked = ["--engine", "pgm", "--out", str(tmp_path / "rows.csv")]
    assert main(["combine", str(tmp_path / "north.zip"), *asked]) == 1
    assert "What was measured does not go with PrivatePGM" in capsys.readouterr().err
    assert not (tmp_path / "rows.csv").exists()


CODES = Domain(tuple(f"x{number}" for number in range(60)), (2,) * 60)


@pytest.mark.parametrize(
    ("strategy", "engine", "reason"),
    [
        (PrivPGD(), PrivatePGM(), "groups of values"),
        (AllKWay(degree=3), PrivatePGM(), "overlap so much"),
        (AIM(max_megabytes=4_000), PrivatePGM(), "choose a smaller max_megabytes"),
        (MST(), PrivatePGM(largest_megabytes=1e-5), "above 1e-05"),
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_reasons_are_in_words_and_name_both(strategy, engine, reason):
    domain = CODES if isinstance(strategy, PrivPGD) else CODES.project(CODES.attributes[:40])
    method = replace(strategy, engine=engine)
    with pytest.raises(MatchError, match=f"(?i){reason}") as refused:
        method.require(domain)
    said = f"{method.called} does not go with {type(engine).__name__} here: "
    assert str(refused.value).startswith(said)


def test_an_engine_of_ones_own_may_refuse_or_say_nothing():
    class Narrow(MaximumEntropy):
        def refusal(self, domain, cliques):
            return "it is narrow." if len(domain) > 2 else None

    MST(engine=Narrow()).require(CODES.project(("x0", "x1")))
    with pytest.raises(MatchError, match="MST does not go with Narrow here: it is narrow"):
        MST(engine=Narrow()).require(CODES)
    PrivPGD(engine=MaximumEntropy()).require(CODES)
