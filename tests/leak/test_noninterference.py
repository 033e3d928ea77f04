"""With the noisy answers held fixed, nothing that leaves a fit depends on the table.

The curator still charges and counts; only what it gives out is replaced by numbers that depend on
the question alone. Two tables are fitted by copies of one synthesizer, with the clock stopped, and
everything observable is compared byte by byte.
"""

import copy
from dataclasses import replace

import cloudpickle
import numpy as np
import pytest
import sdv_tables
from answers import open_curator
from interference import (
    OTHER_TABLES,
    all_cells_are,
    nasty,
    observe,
    other_values,
    said_by,
    settings,
)
from made_up import heard

from sdv_privpgd import (
    Boolean,
    Categorical,
    DomainMismatchError,
    MSTSynthesizer,
    PrivPGDSynthesizer,
    fit_table,
)
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.values import LOOKS
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.methods import (
    AIM,
    DPCTGAN,
    DPMERF,
    Adaptive,
    AnnealedProjection,
    DPDiffusion,
    GenerativeNetwork,
    GeneratorNetwork,
    Independent,
    ParticleGradientDescent,
    PrivateGSD,
    PrivPGD,
    ProtectedThreshold,
    RAPPlusPlus,
    RelaxedProjection,
    pipeline,
)
from sdv_privpgd.privacy import curator
from sdv_privpgd.privacy.dataset import Dataset


def test_nothing_depends_on_the_values_where_a_target_is_named(unmoved):
    table = sdv_tables.table(120)
    synthesizer = PrivPGDSynthesizer(**settings(target={"ward": 6, "age": 3}))
    unmoved(synthesizer, table, [other_values])


def test_nothing_depends_on_the_values_under_replace_one(unmoved):
    table = sdv_tables.table(120)
    synthesizer = PrivPGDSynthesizer(**settings())
    first = unmoved(synthesizer, table, OTHER_TABLES)
    assert "3-way marginals in groups" in first["ledger"]  # the default asks all it can ask
    assert "of 120 in the counts" in "".join(first["worth a look"])
    assert "of 120 in the counts" in "".join(first["warnings"])


def test_nothing_depends_on_the_number_of_rows_under_add_remove(unmoved):
    synthesizer = PrivPGDSynthesizer(**settings(adjacency="add_remove", delta=1e-5))
    unmoved(synthesizer, sdv_tables.table(120), [sdv_tables.table(n, seed=8) for n in (0, 1, 500)])


def test_nothing_depends_on_the_table_behind_a_protected_statistic(unmoved, few_epochs):
    penalty = ProtectedThreshold({"age": 1.0, "income": -0.5}, b=0.2, weight=0.1)
    synthesizer = PrivPGDSynthesizer(
        **settings(method=PrivPGD(engine=ParticleGradientDescent(penalties=[penalty])))
    )
    unmoved(synthesizer, sdv_tables.table(120), [other_values])


@pytest.mark.long
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    "strategy",
    [
        "independent",
        "mst+particles",
        "mwem+particles",
        "privsyn+particles",
        "privmrf+particles",
        AIM(rounds_per_attribute=1, engine="particles"),
        Adaptive(rounds=2, engine="particles"),
        PrivPGD(most_pairs=3),
        PrivPGD(num_bins=20),  # asks pairs over groups as well
    ],
    ids=str,
)
def test_nothing_depends_on_the_table_whatever_is_selected(strategy, adjacency, unmoved):
    synthesizer = PrivPGDSynthesizer(**settings(method=strategy, adjacency=adjacency, delta=1e-5))
    unmoved(synthesizer, sdv_tables.table(120), [nasty])


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("target", [None, "ward"])
def test_nothing_depends_on_the_table_behind_a_mean_embedding(target, adjacency, unmoved):
    changed = settings(
        method=DPMERF(num_features=30, engine=GeneratorNetwork(steps=5)),
        target=target,
        adjacency=adjacency,
        delta=1e-5,
    )
    synthesizer = PrivPGDSynthesizer(**changed)
    first = unmoved(synthesizer, sdv_tables.table(120), [nasty])
    assert "mean embedding, 30 random features" in first["ledger"]


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("target", [None, "ward"])
def test_nothing_depends_on_the_table_behind_half_spaces(target, adjacency, unmoved):
    engine = AnnealedProjection(num_components=40, steps=20, slopes=2)
    method = RAPPlusPlus(rounds=2, queries=2, directions=4, engine=engine)
    changed = settings(method=method, target=target, adjacency=adjacency, delta=1e-5)
    synthesizer = MSTSynthesizer(**changed)
    first = unmoved(synthesizer, sdv_tables.table(120), [nasty])
    assert "worst fitted half-spaces and marginals" in first["ledger"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("adjacency", "changes"),
    [
        ("replace_one", [nasty, other_values]),
        ("add_remove", [nasty, lambda table: table[:0], lambda _: sdv_tables.table(400, seed=8)]),
    ],
)
@pytest.mark.parametrize("kind", [DPDiffusion, DPCTGAN])
def test_nothing_depends_on_the_table_behind_private_gradients(kind, adjacency, changes, unmoved):
    """Not even on which gradients failed: of cells of all kinds, or of none at all."""
    changed = settings(method=kind(steps=4, batch=30, width=8), adjacency=adjacency, delta=1e-5)
    synthesizer = PrivPGDSynthesizer(**changed)
    table = sdv_tables.table(120)
    first = unmoved(synthesizer, table, changes)
    assert f"{kind.network}, " in first["ledger"]
    assert "of 4 samples" in first["ledger"]


@pytest.fixture(scope="module")
def compiled():
    """Numba's log has what it compiles, once on a machine."""
    dataset = Dataset(Domain(("a",), (2,)), np.zeros((9, 1), dtype=np.uint8))
    pipeline.run(
        open_curator(dataset), replace(Independent(), engine=PrivateGSD(num_rows=10, generations=5))
    )


ENGINES = {
    "rap": RelaxedProjection(num_components=50, steps=10),
    "gem": GenerativeNetwork(num_components=50, latent=8, widths=(8,), steps=10),
    "private_gsd": PrivateGSD(num_rows=100, generations=200),
}


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_nothing_depends_on_the_table_behind_engines_that_draw(
    engine, adjacency, compiled, unmoved
):
    changed = settings(method=Adaptive(rounds=2, engine=engine), adjacency=adjacency, delta=1e-5)
    synthesizer = MSTSynthesizer(**changed)
    unmoved(synthesizer, sdv_tables.table(120), [nasty])


def test_nothing_depends_on_the_table_behind_a_graphical_model(unmoved):
    synthesizer = MSTSynthesizer(**settings(method=None))
    unmoved(synthesizer, sdv_tables.table(120), [nasty])


def test_nothing_depends_on_the_table_where_a_fit_fails_and_is_finished(fixed_answers, monkeypatch):
    changed = settings(verbose=False)
    changed["method"] = None
    synthesizer = MSTSynthesizer(**changed)

    def fails(*args, **kwargs):
        raise MemoryError

    def seen(table):
        fitted = copy.deepcopy(synthesizer)
        with monkeypatch.context() as patch:
            patch.setattr("sdv_privpgd.synthesize.pgm.PrivatePGM.fit", fails)
            with pytest.raises(MemoryError) as caught:
                fitted.fit(table)
        failed = cloudpickle.dumps(fitted)
        fitted.resume()
        return failed, said_by(caught.value), cloudpickle.dumps(fitted), fitted.sample(50).to_csv()

    table = sdv_tables.table(120)
    assert seen(table) == seen(other_values(table)) == seen(nasty(table))


UNREAD_CODE, ABOVE_CODE = 2, 4
"""Of ``Readable``."""


@pytest.mark.parametrize("code", [UNREAD_CODE, ABOVE_CODE])
def test_nothing_depends_on_the_table_where_numbers_stop_a_fit(code, fixed_answers, monkeypatch):
    monkeypatch.setattr(curator, "_noisy", all_cells_are(code, of=5))
    table = sdv_tables.table(120)[["age", "smoker"]]
    columns = {name: sdv_tables.COLUMNS[name] for name in table}
    domain = {"age": {"range_min": 0, "range_max": 99, "decimal_places": 0}}
    metadata = sdv_tables.metadata_of(columns)
    synthesizer = MSTSynthesizer(metadata, epsilon=20.0, public_domain=domain)
    declared = {"age": {**domain["age"], "sdtype": "numerical"}, "smoker": {"sdtype": "boolean"}}

    def seen(table):
        fitted = copy.deepcopy(synthesizer)
        with pytest.raises(DomainMismatchError) as caught:
            fitted.fit(table)
        told = said_by(caught.value)
        with pytest.raises(DomainMismatchError) as caught:
            fit_table(table, declared, 20.0, method="mst")
        error = caught.value
        told += [*said_by(error), error.ledger.to_json()]
        with heard() as said:
            done = error.resume(table)
        told += [str(each.message) for each in said]
        return told, cloudpickle.dumps(fitted), cloudpickle.dumps((error.args, done))

    first = seen(table)
    assert "'age'" in first[0][0]
    assert "Worth a look" in first[0][-1]
    assert first == seen(nasty(table))


def test_nothing_depends_on_the_table_where_text_that_is_no_category_stops_a_fit(
    fixed_answers, monkeypatch
):
    monkeypatch.setattr(curator, "_noisy", all_cells_are(5, of=5 + len(LOOKS)))
    table = sdv_tables.table(120)[["ward", "smoker"]]
    declared, told = {"ward": Categorical(), "smoker": Boolean()}, []
    for each in (table, nasty(table), table.assign(ward="31.01.2024")):
        with pytest.raises(DomainMismatchError, match=r"'ward'.* are dates or times") as caught:
            fit_table(each, declared, 20.0, method="mst")
        told.append([*said_by(caught.value), caught.value.ledger.to_json()])
    assert told[0] == told[1] == told[2]


def test_nothing_depends_on_the_table_in_sdv_s_dict_form(unmoved):
    synthesizer = PrivPGDSynthesizer(**settings())
    table = sdv_tables.table(120)
    unmoved(synthesizer, {"table": table}, [{"table": nasty(table)}])


def test_the_comparison_notices_a_leak(fixed_answers, caplog, capsys, monkeypatch):
    """The same comparison must fail when one private number is kept."""
    run = PrivPGDSynthesizer._run

    def leaking(self, running, names, **more):
        run(self, running, names, **more)
        self.oldest = int(running.private._source.columns["age"].max())

    monkeypatch.setattr(PrivPGDSynthesizer, "_run", leaking)
    synthesizer = PrivPGDSynthesizer(**settings())
    young = sdv_tables.table(120).assign(age=20)
    old = young.assign(age=80)
    first = observe(synthesizer, young, caplog, capsys)
    assert first["pickle"] != observe(synthesizer, old, caplog, capsys)["pickle"]


def test_the_comparison_notices_a_bar_that_knows_the_number_of_rows(
    fixed_answers, caplog, capsys, monkeypatch
):
    real = Fit.discover

    def leaking(self, table, progress, **more):
        for _ in progress(range(len(table._source.columns["age"])), "rows"):
            pass
        return real(self, table, progress, **more)

    monkeypatch.setattr(Fit, "discover", leaking)
    synthesizer = PrivPGDSynthesizer(**settings(adjacency="add_remove", delta=1e-5))
    first = observe(synthesizer, sdv_tables.table(120), caplog, capsys)
    other = observe(synthesizer, sdv_tables.table(30_000), caplog, capsys)
    assert first["stderr"] != other["stderr"]
