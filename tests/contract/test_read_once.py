"""Declarations are read once for a fit, and the noisy tables of a model are made once."""

import warnings
from collections import Counter

import pytest
import sdv_tables

from sdv_privpgd import MSTSynthesizer, Numerical, PrivPGDSynthesizer, fit_table, plan_table
from sdv_privpgd.columns import parsing
from sdv_privpgd.estimate import noisy_tables
from sdv_privpgd.inference import linear
from sdv_privpgd.synthesize.pgm import PrivatePGM

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

TABLE = sdv_tables.table(300)
COLUMNS = {
    name: {**sdv_tables.COLUMNS[name], **facts} for name, facts in sdv_tables.PUBLIC_DOMAIN.items()
}
ONCE = dict.fromkeys(COLUMNS, 1)
SMALL = {"epsilon": 2.0, **sdv_tables.SMALL}


@pytest.fixture
def read(monkeypatch):
    """How often the words on each column were read."""
    found, read_words = Counter(), parsing.read_words

    def counted(name, words):
        found[name] += 1
        return read_words(name, words)

    monkeypatch.setattr(parsing, "read_words", counted)
    return found


@pytest.fixture
def made(monkeypatch):
    """Of which answers noisy tables were made, and of how many the linear estimate's were."""
    found = Counter()
    for module, key in ((noisy_tables, lambda answers: tuple(answers)), (linear, len)):

        def counted(domain, answers, fresh=module.fresh_tables, key=key):
            found[key(answers)] += 1
            return fresh(domain, answers)

        monkeypatch.setattr(module, "fresh_tables", counted)
    return found


def shown(fitted):
    fitted.report()
    fitted.report().html()
    fitted.privacy_report()
    fitted.answer("mean", of="age")
    fitted.noisy_tables()


def test_a_fit_a_plan_and_a_refinement_without_sdv_read_each_column_once(read):
    fitted = fit_table(TABLE, COLUMNS, **SMALL)
    assert read == ONCE
    shown(fitted)
    fitted.discovered_domain()
    fitted.refine(TABLE, 0.5)
    assert read == ONCE
    read.clear()
    plan_table(COLUMNS, 2.0, num_rows=300)
    assert read == ONCE


def test_sdv_s_methods_read_each_column_once(read):
    synthesizer = PrivPGDSynthesizer(
        sdv_tables.metadata(), public_domain=sdv_tables.PUBLIC_DOMAIN, **SMALL
    )
    steps = (
        lambda: synthesizer.plan(300),
        lambda: synthesizer.fit(TABLE),
        lambda: synthesizer.refine(TABLE, 0.5),
    )
    for step in steps:
        read.clear()
        step()
        assert read == ONCE


def test_what_finishes_a_fit_reads_each_column_once(read, monkeypatch):
    synthesizer = MSTSynthesizer(sdv_tables.metadata(), 2.0, public_domain=sdv_tables.PUBLIC_DOMAIN)
    with monkeypatch.context() as patch:
        patch.setattr(PrivatePGM, "fit", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            synthesizer.fit(TABLE)
    read.clear()
    synthesizer.finish()
    assert read == ONCE


@pytest.mark.parametrize("with_sdv", [False, True])
def test_the_noisy_tables_of_a_model_are_made_once(with_sdv, made):
    if with_sdv:
        fitted = PrivPGDSynthesizer(
            sdv_tables.metadata(), public_domain=sdv_tables.PUBLIC_DOMAIN, **SMALL
        )
        fitted.fit(TABLE)
        answers = fitted.fitted_table.fitted.release.measurements
    else:
        fitted = fit_table(TABLE, COLUMNS, **SMALL)
        answers = fitted.fitted.release.measurements
    shown(fitted)
    assert made[answers] == 1
    assert made[len(answers)] == 1  # with the rounding of the noise, for intervals
    assert set(made.values()) == {1}


def test_other_answers_about_the_same_domain_make_other_tables():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = (
            fit_table(TABLE, {"age": Numerical(0, 110)}, epsilon=1.0, method="mst").fitted.release
            for _ in range(2)
        )
    first, second = (
        noisy_tables.noisy_tables(one.domain, each.measurements)[("age",)] for each in (one, two)
    )
    assert (first.counts != second.counts).any()
    assert not first.counts.flags.writeable
