"""Declarations are read once for a fit, and the noisy tables of a model are made once."""

from collections import Counter

import pytest
import sdv_tables

from sdv_privpgd import MSTSynthesizer, PrivPGDSynthesizer, fit_table, plan_table
from sdv_privpgd.columns import parser
from sdv_privpgd.estimate import noisy_tables
from sdv_privpgd.inference import linear
from sdv_privpgd.synthesize.pgm import PrivatePGM

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

TABLE, DOMAIN = sdv_tables.table(300), sdv_tables.PUBLIC_DOMAIN
COLUMNS = {name: {**sdv_tables.COLUMNS[name], **facts} for name, facts in DOMAIN.items()}
ONCE = dict.fromkeys(COLUMNS, 1)
SMALL = {"epsilon": 2.0, **sdv_tables.SMALL}


@pytest.fixture
def read(monkeypatch):
    """How often the words on each column were read."""
    found, read_words = Counter(), parser.read_words
    counted = lambda name, words: found.update([name]) or read_words(name, words)
    monkeypatch.setattr(parser, "read_words", counted)
    return found


@pytest.fixture
def made(monkeypatch):
    """Of which answers noisy tables were made, and of how many the linear estimate's were."""
    found = Counter()
    for module, key in ((noisy_tables, tuple), (linear, len)):
        counted = lambda domain, answers, fresh=module.fresh_tables, key=key: (
            found.update([key(answers)]) or fresh(domain, answers)
        )
        monkeypatch.setattr(module, "fresh_tables", counted)
    return found


def test_each_step_without_sdv_reads_each_column_once_at_most(read):
    fitted = fit_table(TABLE, COLUMNS, **SMALL)
    fitted.report().html()
    fitted.discovered_domain()
    fitted.add_budget(TABLE, 0.5)
    assert read == ONCE
    read.clear()
    plan_table(COLUMNS, 2.0, num_rows=300)
    assert read == ONCE


def test_sdv_s_methods_and_what_finishes_a_fit_read_each_column_once(read, monkeypatch):
    own = PrivPGDSynthesizer(sdv_tables.metadata(), public_domain=DOMAIN, **SMALL)
    for step in (lambda: own.plan(300), lambda: own.fit(TABLE), lambda: own.add_budget(TABLE, 0.5)):
        read.clear()
        step()
        assert read == ONCE
    own = MSTSynthesizer(sdv_tables.metadata(), 2.0, public_domain=DOMAIN)
    with monkeypatch.context() as patch:
        patch.setattr(PrivatePGM, "fit", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            own.fit(TABLE)
    read.clear()
    own.resume()
    assert read == ONCE


def test_the_noisy_tables_of_a_model_are_made_once(made):
    fitted = fit_table(TABLE, COLUMNS, **SMALL)
    fitted.report().html()
    fitted.privacy_report()
    fitted.answer("mean", of="age")
    fitted.noisy_tables()
    answers = fitted.fitted.release.measurements
    assert made[answers] == made[len(answers)] == 1  # the latter with the rounding of the noise
    assert set(made.values()) == {1}
