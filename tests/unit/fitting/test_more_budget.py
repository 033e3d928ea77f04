"""More budget for the same table, and releases of tables with the same people."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import sdv_tables
from made_up import made_up
from sdv.errors import InvalidDataError, NotFittedError

from sdv_privpgd import Boolean, Categorical, People, PrivPGDSynthesizer, fit_table
from sdv_privpgd.audit.subjects import file_checks, kept_table
from sdv_privpgd.estimate.noisy_tables import noisy_tables
from sdv_privpgd.fitting.mismatch import UNPARSED
from sdv_privpgd.methods import AllKWay, ParticleGradientDescent, PrivPGD, ProtectedThreshold
from sdv_privpgd.plugin.audit import kept_file
from sdv_privpgd.privacy.ledger import PrivacyLedger, raised
from sdv_privpgd.privacy.ledger_file import epsilon_in_all
from sdv_privpgd.privacy.queries import Adjacency, CountQuery

COLUMNS = {"ward": Categorical(["A", "B", "C"]), "ill": Boolean(), "old": Boolean()}


def table(num_rows=900):
    return made_up(num_rows, ward="ABC", ill=0.3, old=0.5)


def fitted(epsilon=0.5, **settings):
    return fit_table(table(), COLUMNS, epsilon, **{"method": "privpgd+pgm", **settings})


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("strategy", [AllKWay(degree=2), "independent"], ids=str)
def test_in_two_steps_the_noise_is_that_of_one(strategy, adjacency):
    """The law: the inverse variances of two answers add up to that of one for both budgets."""
    settings = {"method": strategy, "adjacency": adjacency, "delta": 1e-5}
    once = fitted(1.0, **settings).fitted.release
    twice = fitted(0.5, **settings).add_budget(table(), 0.5).fitted.release
    one, two = (noisy_tables(each.domain, each.measurements) for each in (once, twice))
    assert one.keys() == two.keys()
    # The first question is not asked again, so that two steps have more for the tables.
    paid = [
        sum(each.mu_squared for each in done.ledger.charges if each.what != UNPARSED)
        for done in (once, twice)
    ]
    for clique, measured in one.items():
        variance = measured.variance * float(paid[0] / paid[1])
        assert two[clique].variance == pytest.approx(variance, rel=1e-9)
    counts = [
        sum(1 / m.stddev**2 for m in each.measurements if isinstance(m.query, CountQuery))
        / float(own)
        for each, own in zip((once, twice), paid, strict=True)
        if adjacency == "add_remove"
    ]
    assert len(set(np.round(counts, 9))) <= 1


def test_one_ledger_promises_the_sum():
    first = fitted(0.5, delta=1e-6)
    second = first.add_budget(table(), 0.25)
    third = second.add_budget(table(), 0.25)
    for epsilon, done in ((0.5, first), (0.75, second), (1.0, third)):
        assert done.ledger.epsilon == done.settings.epsilon == epsilon
        assert done.ledger.spent() == pytest.approx(epsilon, rel=1e-6)
        assert done.ledger.remaining == 0
        assert done.ledger == done.fitted.release.ledger
    assert third.ledger.charges[: len(first.ledger.charges)] == first.ledger.charges
    assert "epsilon 1," in third.privacy_report()
    assert pickle.loads(pickle.dumps(third)).add_budget(table(), 0.5).ledger.epsilon == 1.5


def test_the_model_starts_from_the_last_one(monkeypatch):
    seen = []
    fit = ParticleGradientDescent.fit

    def spy(self, domain, measurements, **how):
        seen.append(how["warm_start"])
        return fit(self, domain, measurements, **how)

    monkeypatch.setattr(ParticleGradientDescent, "fit", spy)
    first = fitted(method=PrivPGD(engine=ParticleGradientDescent(num_particles=200, epochs=2)))
    first.add_budget(table(), 0.5)
    assert seen == [None, first.fitted.release.model]


def test_nothing_is_discovered_anew():
    undeclared = fit_table(
        table(), {"ward": Categorical(), "ill": Boolean()}, 2.0, method="privpgd+pgm"
    )
    refined = undeclared.add_budget(table(), 1.0)
    assert refined.discovered_domain() == undeclared.discovered_domain()
    charges = refined.ledger.charges[len(undeclared.ledger.charges) :]
    assert charges
    assert all("marginal" in charge.what for charge in charges)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"table": table(901)}, r"had 900 rows, and this one has 901.*after=earlier\.ledger"),
        ({"table": table()[["ward"]]}, "missing in the data"),
        ({"table": "table.csv"}, "There is no file"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": float("inf")}, "epsilon must be"),
    ],
)
def test_what_cannot_be_refined_is_told_and_costs_nothing(change, told):
    first = fitted()
    with pytest.raises(ValueError, match=told):
        first.add_budget(**{"table": table(), "epsilon": 0.5, **change})
    assert first.ledger.spent() == pytest.approx(0.5, rel=1e-6)


def test_a_length_is_private_under_add_remove_and_another_unit_cannot_follow():
    first = fitted(adjacency="add_remove", delta=1e-5)
    assert first.add_budget(table(800), 0.5).ledger.epsilon == 1.0
    penalty = ProtectedThreshold({"ill": 1.0}, b=0.2, weight=0.1)
    engine = ParticleGradientDescent(num_particles=100, epochs=1, penalties=(penalty,))
    with pytest.raises(ValueError, match="were not kept"):
        fitted(method=PrivPGD(engine=engine)).add_budget(table(), 0.5)
    first = fitted(1.0)
    with pytest.raises(ValueError, match="compose only under one adjacency"):
        fit_table(table(), COLUMNS, 1.0, adjacency="add_remove", delta=1e-5, after=first.ledger)


def test_a_second_release_of_a_grown_table_composes_and_says_so():
    first = fitted(1.0)
    second = fit_table(table(1200), COLUMNS, 1.0, method="privpgd+pgm", after=first.ledger)
    assert second.ledger == first.ledger.followed_by(second.fitted.release.ledger)
    together = second.ledger.spent()
    assert together == pytest.approx(epsilon_in_all([first.ledger] * 2), rel=1e-9)
    said = second.warnings[-1]
    assert f"by epsilon {together:.4g} at delta 1e-05 in all" in said
    assert "in this table alone, is protected by epsilon 1;" in said
    assert said in second.report().to_dict()["warnings"]
    refined = second.add_budget(table(1200), 0.5)
    assert refined.fitted.release.ledger.epsilon == 1.5
    assert refined.ledger.remaining == 0
    own = refined.fitted.release.ledger
    assert refined.ledger.mu_squared == first.ledger.mu_squared + own.mu_squared
    assert f"{refined.ledger.spent():.4g}" in refined.warnings[-1]


def test_a_budget_is_raised_to_the_sum_and_no_further():
    ledger = PrivacyLedger.open(0.5, 1e-5, Adjacency.REPLACE_ONE)
    assert raised(raised(ledger, 0.25), 0.25) == PrivacyLedger.open(
        1.0, 1e-5, Adjacency.REPLACE_ONE
    )
    assert raised(ledger, 0.5).budget > 2 * ledger.budget  # mu^2 grows faster than epsilon
    assert epsilon_in_all([]) == 0.0


# Through SDV's interface.


def synthesizer(**changes):
    settings = {"epsilon": 0.5, "public_domain": sdv_tables.PUBLIC_DOMAIN, "method": "privpgd+pgm"}
    return PrivPGDSynthesizer(sdv_tables.metadata(), **{**settings, **changes})


def test_a_synthesizer_is_refined_on_its_own_ledger():
    private = sdv_tables.table(300)
    own = synthesizer()
    own.fit(private)
    before = own.ledger
    own.add_budget(private, 0.5)
    assert own.ledger.epsilon == 1.0
    assert 0.999 < own.ledger.spent() <= 1.0
    assert own.ledger.charges[: len(before.charges)] == before.charges
    assert len(own.sample(20)) == 20
    assert own.epsilon == 0.5  # what a new fit would spend


def test_after_two_fits_the_last_is_refined_and_the_ledger_hold_all():
    private = sdv_tables.table(300)
    own = synthesizer()
    own.fit(private)
    first = own.ledger
    with pytest.warns(UserWarning, match="fitted before"):
        own.fit(private)
    own.add_budget(private, 0.5)
    last = own._release.ledger
    assert last.epsilon == 1.0
    assert own.ledger.mu_squared == first.mu_squared + last.mu_squared
    assert own.ledger.budget == first.budget + last.budget
    assert own.ledger.remaining == 0
    assert own.ledger.epsilon == pytest.approx(epsilon_in_all([first, last]), rel=1e-3)
    assert f"{own.ledger.spent():.4g} at delta" in own.privacy_report()


def test_a_refinement_that_fails_keeps_the_fit_and_the_answers(monkeypatch):
    private = sdv_tables.table(300)
    own = synthesizer()
    own.fit(private)
    rows = own.sample(10)
    own.reset_sampling()

    def fails(*args, **kwargs):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("sdv_privpgd.synthesize.pgm.PrivatePGM.fit", fails)
        with pytest.raises(MemoryError):
            own.add_budget(private, 0.5)
    assert own.ledger.epsilon == 1.0
    assert own.ledger.remaining == 0
    assert own.sample(10).equals(rows)  # the model before
    own.resume()
    assert 0.999 < own.ledger.spent() <= 1.0
    assert len(own._release.measurements) > 1
    assert own._release.ledger == own.ledger


def test_a_table_that_cannot_be_refined_is_told():
    own = synthesizer()
    with pytest.raises(NotFittedError):
        own.add_budget(sdv_tables.table(300), 0.5)
    own.fit(sdv_tables.table(300))
    before = own.ledger
    with pytest.raises(InvalidDataError, match="had 300 rows"):
        own.add_budget(sdv_tables.table(301), 0.5)
    own.public_domain = {**sdv_tables.PUBLIC_DOMAIN, "ward": {"range_values": ["A", "Z"]}}
    with pytest.raises(ValueError, match="have changed since"):
        own.add_budget(sdv_tables.table(300), 0.5)
    assert own.ledger == before


# Audited.


@pytest.mark.parametrize("engine", ["pgm", "particles"])
def test_an_audit_finds_a_refined_table_in_order(engine):
    if engine == "particles":
        engine = ParticleGradientDescent(num_particles=200, epochs=2)
    refined = (
        fitted(0.5, method=PrivPGD(engine=engine))
        .add_budget(table(), 0.25)
        .add_budget(table(), 0.25)
    )
    assert [check.passed for check in file_checks(kept_table(refined))] == [True] * 3
    grown = fit_table(
        table(1200), COLUMNS, 1.0, method=PrivPGD(engine=engine), after=refined.ledger
    )
    assert file_checks(kept_table(grown))[0].passed is True


def test_an_audit_finds_a_refined_synthesizer_in_order_and_what_it_has_kept():
    private = sdv_tables.table(300)
    own = synthesizer()
    own.fit(private)
    own.add_budget(private, 0.5)
    checks = file_checks(kept_file(own))
    assert [check.passed for check in checks[:2]] == [True, True]
    refined = fitted().add_budget(table(), 0.5)
    kept = replace(refined, warnings=(*refined.warnings, "the oldest is 97"))
    assert file_checks(kept_table(kept))[0].passed is False


def test_a_second_refinement_of_one_fit_is_warned_of():
    first = fitted()
    first.add_budget(table(), 0.5)
    with pytest.warns(UserWarning, match=r"got more budget before.*adds up"):
        first.add_budget(table(), 0.5)


def test_a_second_refinement_is_warned_of_at_each_door():
    private = sdv_tables.table(300)
    own = synthesizer(method="mst")
    own.fit(private)
    first = own.fitted_table
    own.fitted_table.add_budget(private, 0.5)
    for add_budget in (own.fitted_table.add_budget, own.add_budget, first.add_budget):
        with pytest.warns(UserWarning, match=r"got more budget before.*adds up"):
            add_budget(private, 0.5)


def test_an_audit_finds_a_fit_in_order_that_got_more_budget():
    first = fitted()
    first.add_budget(table(), 0.5)
    assert [check.passed for check in file_checks(kept_table(first))] == [True] * 3


def test_a_fit_and_its_answers_are_shown_in_a_line():
    shown = repr(fitted())
    assert shown.startswith("FittedTable(3 columns, 900 rows, by ")
    assert "epsilon 0.5 at delta 1e-05 for one row, not one person; " in shown
    people = fitted(people=People(rows_are_people=True))
    assert "for the row of one person; " in repr(people)
    synthesizer = PrivPGDSynthesizer(
        sdv_tables.metadata_of({"ill": {"sdtype": "boolean"}}), 1.0, method="mst"
    )
    assert repr(synthesizer) == (
        "PrivPGDSynthesizer(1 columns, epsilon 1, replace_one, not fitted)"
    )
    synthesizer.fit(table()[["ill"]])
    assert repr(synthesizer).startswith("PrivPGDSynthesizer(FittedTable(1 columns, 900 rows, ")
    done = fitted()
    share = repr(done.answer("share", where={"ward": "A"}))
    assert share.startswith('Answer("Share')
    assert ", 95 %: " in share
    counts, line = repr(done.answer("table", of="ward")), repr(done.regression("ill", "ward"))
    assert "standard deviation of the noise" in counts
    assert line.startswith("Regression('")
    assert not any(word in counts + line for word in ("\n", "dtype"))
