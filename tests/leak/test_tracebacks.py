"""What tools that log the variables of frames would write of an exception: no cell and no count.

The frames of whoever called hold what he has, and so does the argument of the door that was handed
it. No other frame, ours or another library's, holds a cell or an exact count.
"""

import gc
import re
import traceback
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from canaries import TEXT

from sdv_privpgd import Boolean, Categorical, MSTSynthesizer, Numerical, fit_table, measure
from sdv_privpgd.columns.bins import SIGNED_POWERS
from sdv_privpgd.columns.readings import Reading
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods.dp_sgd import TrainingQuery
from sdv_privpgd.privacy import curator as curators
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery, ModelErrorQuery
from sdv_privpgd.sources.csv import CsvFiles
from sdv_privpgd.sources.source import Batch, SourceError

COUNT = 7_919
"""Rows of a ward: a number that nothing else has."""

HELD = rf"{TEXT}|(?<![\w.]){COUNT}(?!\w)"
"""A cell, or the count as a number: an address such as 0x7f7919e0 is none."""

COLUMNS = {"ward": Categorical(["A", "B"]), "age": Numerical(0, 9, decimal_places=0)}
SDTYPES = {"ward": {"sdtype": "categorical"}, "age": {"sdtype": "numerical"}}
SCHEMA = Schema.from_sdv({name: {**SDTYPES[name], **facts} for name, facts in COLUMNS.items()})
GRID = {"cells": SIGNED_POWERS}
MU = Fraction(1, 100)
DOORS = "sdv_privpgd.fitting", "sdv_privpgd.plugin", "sdv_privpgd.releases"


def table():
    ward = np.array(["A"] * COUNT + [TEXT] * 3, dtype=object)
    return pd.DataFrame({"ward": ward, "age": 5})


class Lent:
    """A user's own source, of which he keeps no frame; it may fail in the middle, and quote."""

    names = ("ward", "age")

    def __init__(self, error=None):
        self.dtypes, self._error = table().dtypes.to_dict(), error

    def num_rows(self):
        return COUNT + 3

    def batches(self, names):
        part = table()
        yield Batch(0.5, {name: part[name][:COUNT] for name in names})
        if self._error is not None:
            cell = part["ward"].iloc[-1]
            try:
                int(cell)
            except ValueError:
                raise self._error from None
        yield Batch(1.0, {name: part[name][COUNT:] for name in names})


def shown(value, depth=4):
    """What a tool writes of a variable: its words, and all that containers and arrays hold."""
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        return repr(value.ravel().tolist())
    inside = [*value, *value.values()] if isinstance(value, dict) else value
    if depth and isinstance(value, dict | list | tuple | set | frozenset):
        return " ".join(shown(each, depth - 1) for each in inside)
    return repr(value)


def chain_of(error):
    found = []
    while error is not None:
        found.append(error)
        if error.__cause__ is not None and error.__cause__ is not error.__context__:
            found += chain_of(error.__cause__)
        error = error.__context__
    return found


def held_in(error):
    """Variables of frames, but those of these tests, that hold a cell or a count."""
    found, modules = [], set()
    for each in chain_of(error):
        found += [repr(each)] if TEXT in repr(each) else []
        for frame, _ in traceback.walk_tb(each.__traceback__):
            module = frame.f_globals["__name__"]
            modules.add(module)
            for name, value in frame.f_locals.items() if module != __name__ else ():
                written = shown(value)
                is_lent = module.startswith(DOORS) and isinstance(value, pd.DataFrame)
                if not is_lent and re.search(HELD, written):
                    found.append(f"{name} of {frame.f_code.co_name} in {module}")
    assert any(module.startswith("sdv_privpgd.") for module in modules)
    return found


def failing(does, kind):
    with pytest.raises(kind) as caught:
        does()
    gc.collect()
    return caught.value


def shared(epsilon=50.0):
    reserved = Fraction(1, 10**6)  # for a threshold
    return FitLedger(PrivacyLedger.open(epsilon, 1e-5, Adjacency.REPLACE_ONE, reserved=reserved))


def of_codes(epsilon=50.0):
    return PrivateTable(Lent()).curator(SCHEMA, shared(epsilon))


def of_frames():
    return PrivateTable(dict(table().items())).curator(SCHEMA, shared())


def of_scores():
    cliques = (("ward",), ("age",))
    shapes = [(SCHEMA.domain().size(clique),) for clique in cliques]
    return [
        ModelErrorQuery(clique=clique, expected=np.zeros(shape, np.int64), bias=3)
        for clique, shape in zip(cliques, shapes, strict=True)
    ]


ACTS = {
    "measure": lambda: of_codes().measure([MarginalQuery(("ward",))], MU, what="x"),
    "of a frame": lambda: of_frames().measure([MarginalQuery(("ward", "age"))], MU, what="x"),
    "select": lambda: of_codes().select(of_scores(), MU, what="x"),
    "discover": lambda: (
        PrivateTable(Lent())
        .first_queries([Reading(name="ward", asks=frozenset(["categories"]), **GRID)], shared())
        .discover(MU, Fraction(1, 10**7), what="x")
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("act", ACTS)
def test_an_act_that_stops_between_count_and_noise(monkeypatch, act, kind):
    def stop(*given):
        assert str(COUNT) in shown(given)
        raise kind

    for name in ("_noisy", "exponential_choice"):
        monkeypatch.setattr(curators, name, stop)
    error = failing(ACTS[act], kind)
    assert held_in(error) == []
    # Where it was is not hidden.
    assert "stop" in [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]


class Quotes:
    """A trainer that fails, or is stopped, with all codes at hand."""

    query, steps = TrainingQuery(network="x", num_weights=1, clip=1.0, rate=1, steps=2), 2

    def __init__(self, kind):
        self.kind = kind

    def prepare(self, mu, delta):
        pass

    def train(self, codes, words):
        number = np.array([len(codes) - 3])
        assert str(COUNT) in shown(number)
        raise self.kind(f"{number} rows")
        yield

    def weights(self):
        return np.zeros(1)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError, MemoryError])
def test_a_training_that_stops(kind):
    held = of_codes()
    does = lambda: held.train(Quotes(kind), MU, held.ledger.reserved)
    error = failing(does, kind if kind is KeyboardInterrupt else RuntimeError)
    assert held_in(error) == []
    if kind is not KeyboardInterrupt:
        assert all(str(COUNT) not in repr(each) for each in chain_of(error))


@pytest.mark.long
@pytest.mark.parametrize("name", ["answers", "rounded_gaussian"])
def test_an_interrupt_in_the_middle_of_a_fit(monkeypatch, name):
    real = getattr(curators, name)

    def stop(*given):
        counted = list(real(*given))
        raise KeyboardInterrupt(len(counted) and "")

    monkeypatch.setattr(curators, name, stop)
    metadata = sdv_tables.metadata_of(SDTYPES)
    for door in (
        lambda given: fit_table(given, COLUMNS, epsilon=1.0),
        lambda given: measure(given, COLUMNS, epsilon=1.0, site="North"),
        lambda given: MSTSynthesizer(metadata, 1.0, public_domain=COLUMNS).fit(given),
    ):
        for given in (Lent(), table()):
            assert held_in(failing(lambda: door(given), KeyboardInterrupt)) == []  # noqa: B023


@pytest.mark.long
@pytest.mark.parametrize("kind", [SourceError, KeyboardInterrupt, ZeroDivisionError])
def test_a_source_that_breaks_while_it_is_read(kind):
    for does in (
        lambda: fit_table(Lent(kind("it broke")), COLUMNS, epsilon=1.0),
        lambda: fit_table(Lent(kind("it broke")), {"ward": Categorical()}, epsilon=1.0),
        lambda: PrivateTable(Lent(kind("it broke"))).curator(SCHEMA, shared()),
    ):
        assert held_in(failing(does, kind)) == []


@pytest.mark.parametrize("text", [f"{TEXT},1\n", f"ward,age\nA,1\n{TEXT},2,3\n", f'ward\n"{TEXT}'])
def test_a_file_that_cannot_be_read(tmp_path, text):
    (tmp_path / "table.csv").write_text(text)
    for given in (tmp_path / "table.csv", CsvFiles(tmp_path)):
        does = lambda given=given: fit_table(given, COLUMNS, epsilon=1.0)
        assert held_in(failing(does, ValueError)) == []


def test_a_short_budget():
    curator = of_codes(epsilon=0.01)
    does = lambda: curator.measure([MarginalQuery(("ward",))], Fraction(9), what="x")
    assert held_in(failing(does, PrivacyBudgetError)) == []


class Quoting(MarginalQuery):
    """A query of somebody else's that fails on what it has counted."""

    def answer(self, dataset):
        exact = dataset.counts(("ward",))
        try:
            raise KeyError(exact.tolist())
        except KeyError:
            raise ArithmeticError("it cannot be answered") from None


def test_a_query_that_fails(monkeypatch):
    monkeypatch.setattr(curators, "answers", lambda asked, data: [q.answer(data) for q in asked])
    does = lambda: of_codes().measure([Quoting(("ward",))], MU, what="x")
    error = failing(does, ArithmeticError)
    assert held_in(error) == []
    assert all(str(COUNT) not in repr(each) for each in chain_of(error))


def test_codes_that_are_handed_back(monkeypatch):
    codes = pd.DataFrame({"ward": [0] * COUNT, "age": 5})
    curator = EncodedTable(codes).curator(SCHEMA, shared())
    monkeypatch.setattr(curators, "_noisy", lambda *given: 1 / 0)
    does = lambda: curator.measure([MarginalQuery(("ward",))], MU, what="x")
    assert held_in(failing(does, ZeroDivisionError)) == []
    assert held_in(failing(lambda: EncodedTable(codes).curator(None, shared()), Exception)) == []


def test_what_the_caller_was_handling_stays_his():
    def handles():
        mine = "my own"
        try:
            raise LookupError(mine)
        except LookupError:
            fit_table(Lent(SourceError("it broke")), {"ward": Boolean()}, epsilon=1.0)

    error = failing(handles, SourceError)
    *_, last = chain_of(error)
    assert isinstance(last, LookupError)
    assert last.__traceback__.tb_frame.f_code is handles.__code__
    assert held_in(error) == []
