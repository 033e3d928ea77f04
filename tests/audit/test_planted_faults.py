"""The audit finds each fault that is planted, and nothing where there is none.

A fault is a core function that is replaced, or a strategy or an engine of a user who means ill. An
audit fails by chance with a probability of 1e-7. What must be found is named; what follows from it
may be found as well, and nothing else.
"""

import logging
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from answers import discovering, scaled

from sdv_privpgd import Boolean, Categorical, Numerical, People
from sdv_privpgd.audit import audit_fit
from sdv_privpgd.audit.recorder import AuditedTable, Tape, watched
from sdv_privpgd.audit.tables import made_up
from sdv_privpgd.base.domain import Grouping
from sdv_privpgd.fitting import door as fitting_door
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.methods import (
    AIM,
    MST,
    MWEM,
    EngineMethod,
    Independent,
    ParticleGradientDescent,
    PrivatePGM,
    PrivPGD,
)
from sdv_privpgd.privacy import boundary
from sdv_privpgd.privacy import curator as curating
from sdv_privpgd.privacy.accounting import range_epsilon_of, stddev_for
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import FitLedger
from sdv_privpgd.privacy.noise import rounded_gaussian
from sdv_privpgd.privacy.queries import (
    Adjacency,
    DependenceQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    ModelErrorQuery,
    QuadrantQuery,
)
from sdv_privpgd.sampling.sampler import Sampler

pytestmark = pytest.mark.long

COLUMNS = {
    "ward": Categorical(list("ABCDEFG")),
    "age": Numerical(0, 110, decimal_places=0, num_bins=12),
    "ill": Boolean(),
}
SLOW = pytest.mark.slow
SMALL = ParticleGradientDescent(num_particles=200, epochs=2)
UNDECLARED = {**COLUMNS, "town": Categorical()}
ATTACK = {"attack", "attack, counted"}
LAW = {"noise sd", "noise of each answer"}
MADE = {"file", "samples", "pages", "plans", "dtypes", "messages", "discovered domain"}
"""What a leak into a fit's own facts can show in."""


def failed(columns=COLUMNS, *, runs=400, **settings):
    """The checks that find something, of a quick audit."""
    asked = {"epsilon": 6.0, "method": Independent(engine="pgm"), **settings}
    if columns is COLUMNS:
        asked = {"discovery_share": 0, **asked}  # quicker
    report = audit_fit(columns, runs=runs, false_alarms=1e-7, **asked)
    return set(report.to_dict()["failed"])


ADDED = {"adjacency": "add_remove", "delta": 1e-5}
RIGHT = {
    "independent": (COLUMNS, {"method": "independent", **ADDED, "people": People(max_rows=2)}),
    "mst": (UNDECLARED, {"method": MST(engine="particles"), "people": People(max_rows=2)}),
    "aim": (COLUMNS, {"method": AIM(rounds_per_attribute=1, engine="particles")}),
    "mwem": (UNDECLARED, {"method": MWEM(rounds=2, engine="particles"), **ADDED}),
    "privsyn": (COLUMNS, {"method": "privsyn"}),
    "privmrf": (COLUMNS, {"method": "privmrf+particles", **ADDED}),
    "all pairs": (COLUMNS, {"method": PrivPGD(), "epsilon": 0.2}),
    "coarse pairs": (
        COLUMNS, {"method": PrivPGD(most_pairs=1, engine=SMALL), "people": People(max_rows=2)}
    ),
    "one column": ({"ill": Boolean()}, {"method": "privpgd"}),
    "undeclared": ({"town": Categorical(), "weight": Numerical()}, {"method": "privpgd"}),
}  # fmt: skip
QUICK = {"independent", "mst", "one column"}


@pytest.mark.parametrize(
    ("columns", "settings"),
    [
        pytest.param(*own, id=name, marks=[] if name in QUICK else pytest.mark.slow)
        for name, own in RIGHT.items()
    ],
)
def test_nothing_is_found_where_all_is_right(columns, settings, plant):
    assert failed(columns, runs=200, **settings) == set()


def laplace(stddev, size, words):
    noise = np.random.default_rng().laplace(0, stddev / 2**0.5, size)
    return np.rint(noise).astype(np.int64)


def moved(stddev, size, words):
    return rounded_gaussian(stddev, size, words) + round(stddev / 5)


def on_every_other_number(stddev, size, words):
    return 2 * rounded_gaussian(stddev / 2, size, words)


def of_floats(stddev, size, words):
    return np.random.default_rng().normal(0, stddev, size)


def of_the_same_seed(stddev, size, words):
    """With known noise the worlds differ without any overlap."""
    return rounded_gaussian(stddev, size, np.random.default_rng(0).bytes)


def of_users_seeds(stddev, size, words):
    return rounded_gaussian(stddev, size, np.random.bytes)


def of_a_generator(stddev, size, words, own=np.random.default_rng(0)):  # noqa: B008
    return rounded_gaussian(stddev, size, own.bytes)


ONE = {"epsilon": 1.0}
FRESH = {"noise fresh"}
ANY = LAW | ATTACK | FRESH | {"noise once", "noise shape", "noise mean", "noise lattice"}
NOISE = [  # the noise, settings, what must be found, and what else may be; most with the slow tests
    (scaled(0.5), {}, {"noise sd"} | ATTACK, LAW),
    (of_floats, {}, {"noise lattice"}, ANY),
    (laplace, ONE, {"noise shape"}, LAW | ATTACK),
    (moved, ONE, {"noise mean"}, LAW),
    (of_a_generator, {}, FRESH, set()),
    (scaled(0.5), ADDED, {"noise sd"} | ATTACK, LAW),
    (scaled(0.5), {"columns": UNDECLARED}, {"noise sd"} | ATTACK,
     LAW | {"values released", "counts released"}),
    (scaled(0.9), {}, {"noise sd"}, LAW | ATTACK),
    (on_every_other_number, ONE, {"noise lattice"}, LAW),
    (of_users_seeds, {}, FRESH, set()),
    (of_the_same_seed, {}, FRESH | {"noise sd", "attack"}, ANY),
]  # fmt: skip


class TestNoise:
    @pytest.mark.parametrize(
        ("noise", "settings", "must", "may"),
        [
            pytest.param(*each, marks=pytest.mark.slow if i > 4 else [])
            for i, each in enumerate(NOISE)
        ],
    )
    def test_noise_that_was_not_charged_for(self, noise, settings, must, may, plant):
        plant(curating, "rounded_gaussian", noise)
        assert must <= failed(**settings) <= must | may

    def test_noise_used_twice(self, plant):
        before = []

        def again(stddev, size, words):
            if before and before[-1].size >= size:
                return before.pop()[:size]
            before[:] = [rounded_gaussian(stddev, size, words)]
            return before[-1]

        plant(curating, "rounded_gaussian", again)
        found = failed(adjacency="add_remove", delta=1e-5, method=PrivPGD())
        assert {"noise once"} <= found <= {"noise once", "noise fresh"} | LAW | ATTACK

    def test_an_exact_table_that_a_choice_has_kept(self, plant):
        real = Curator.measure

        def measure(self, queries, mu_squared, **more):
            kept = {table.clique: counts for table, counts in self._tables.items()}
            return [
                replace(each, answer=kept.get(getattr(each.query, "clique", ()), each.answer))
                for each in real(self, queries, mu_squared, **more)
            ]

        plant(Curator, "measure", measure)
        found = failed(method=MST(engine="particles"))
        assert {"noise of each answer"} <= found <= {"noise of each answer", "noise once"}


SAYS_LESS = "l2_sensitivity_squared", lambda self, adjacency: 1
MST_OF_PARTICLES = {"method": MST(engine="particles")}
choose = curating.exponential_choice
BOOKS = [  # what is wrong, where and how; settings, what must be found, and what else may be
    ("too small", (), MarginalQuery, *SAYS_LESS, {}, {"changes", "attack"}, ATTACK),
    ("one of several", SLOW, curating, "stddev_for",
     lambda _, mu_squared: stddev_for(2, mu_squared), {}, {"charges", "attack", "epsilon"}, ATTACK),
    ("a person's rows as one", SLOW, curating, "stddev_for",
     lambda squared, mu_squared: stddev_for(squared // 4, mu_squared),
     {"people": People(max_rows=2)}, {"charges", "attack", "epsilon"}, ATTACK),
    ("twice the cost", (), curating, "exponential_choice",
     lambda scores, temperature, words: choose(scores, temperature / 2, words),
     MST_OF_PARTICLES, {"choices"}, set()),
    ("half the charge", SLOW, curating, "range_epsilon_of",
     lambda mu_squared: 2 * range_epsilon_of(mu_squared),
     MST_OF_PARTICLES, {"charges"}, {"choices", "epsilon"}),
    ("too small", (), ModelErrorQuery, *SAYS_LESS, MST_OF_PARTICLES, {"changes"}, {"choices"}),
    ("too small", SLOW, QuadrantQuery, *SAYS_LESS,
     {"method": PrivPGD(), "epsilon": 0.2}, {"changes"}, LAW | ATTACK),
    ("too small", SLOW, DependenceQuery, *SAYS_LESS, {"method": "privsyn+particles"}, {"changes"},
     LAW | ATTACK),
]  # fmt: skip


class TestBooks:
    @pytest.mark.parametrize(
        ("where", "what", "planted", "settings", "must", "may"),
        [pytest.param(*each, id=f"{name}: {each[1]}", marks=marks) for name, marks, *each in BOOKS],
    )
    def test_what_the_ledger_say_that_is_not_so(
        self, where, what, planted, settings, must, may, plant
    ):
        plant(where, what, planted)
        assert must <= failed(**settings) <= must | may

    @pytest.mark.slow
    def test_a_query_of_ones_own_that_says_too_little(self, plant):
        found = failed(method=Tripled(engine="particles"))
        assert {"changes", "attack"} <= found <= {"changes"} | ATTACK

    def test_a_question_that_is_not_charged(self, plant):
        charge = FitLedger.charge
        plant(
            FitLedger,
            "charge",
            lambda self, each: None if "2-way" in each.what else charge(self, each),
        )
        found = failed(method=PairsFirst(engine="particles"))
        assert {"charges"} <= found <= {"charges"} | ATTACK

    def test_one_charge_for_several_questions(self, plant):
        real = Curator.measure

        def measure(self, queries, mu_squared, **more):
            queries = tuple(queries)
            _, *rest = queries or (None,)
            answers = real(self, queries[:1], mu_squared, **more)
            return [*answers, *(replace(answers[0], query=each) for each in rest)]

        plant(Curator, "measure", measure)
        with pytest.raises(ValueError, match="cannot be fitted"):
            failed()  # such answers have the shape of another question


def before_it_asks(plant, change):
    """Plants a fit that does this with its table before it asks it."""
    ask = Fit.ask

    def asked(self, table, *rest, **more):
        change(self, table)
        ask(self, table, *rest, **more)

    plant(Fit, "ask", asked)


def ages(table):
    """How many rows of a made-up table have an age."""
    return table._source.columns["age"].count()


class TestLeaks:
    def test_groups_from_true_counts(self, plant):
        assert failed(method=GroupsByCounts(engine="particles")) == {"questions"}

    def test_an_error_that_depends_on_a_cell(self, plant):
        codes = boundary.encode_table

        def encoded(columns, *rest):
            for cell in columns["age"]:
                if isinstance(cell, str):
                    raise ValueError(f"Cannot read {cell!r}.")
            return codes(columns, *rest)

        plant(boundary, "encode_table", encoded)
        assert failed() == {"messages", "cells"}

    @pytest.mark.slow
    def test_a_log_that_depends_on_the_table(self, plant, caplog):
        said = logging.getLogger("audit").debug
        before_it_asks(plant, lambda fit, table: said("rows with an age: %s", ages(table)))
        assert failed() == {"messages"}

    def test_a_dtype_that_depends_on_a_cell(self, plant):
        real = Sampler.take

        def dtypes(self):
            Sampler.seen = {name: each.dtype for name, each in self._source.columns.items()}
            return self._source.dtypes

        def take(self, num_rows):
            rows = real(self, num_rows)
            whole = Sampler.seen["ill"] == np.dtype(bool)
            return {**rows, "ill": rows["ill"].astype("boolean" if whole else object)}

        plant(Sampler, "seen", {}, raising=False)
        plant(PrivateTable, "dtypes", property(dtypes))
        plant(Sampler, "take", take)
        nullable = {**COLUMNS, "ill": Boolean(nullable=False)}
        assert {"dtypes"} <= failed(nullable) <= {"dtypes", "samples"}

    def test_a_bar_that_knows_the_number_of_rows(self, plant):
        real = Fit.discover

        def leaking(self, table, progress, **more):
            list(progress(range(len(table._source.columns["age"])), "rows"))
            return real(self, table, progress, **more)

        plant(Fit, "discover", leaking)
        assert (
            {"progress"} <= failed(adjacency="add_remove", delta=1e-5) <= {"messages", "progress"}
        )

    @pytest.mark.slow
    def test_a_step_for_each_row(self, plant):
        assert failed(method=StepForEachRow(engine="particles")) == {"progress"}

    def test_a_category_that_was_learned(self, plant):
        learned = discovering(lambda true, found: [*found[:-1], *true[:20], found[-1]])
        plant(Curator, "discover", learned)
        assert (
            {"rare values"}
            <= failed(UNDECLARED)
            <= {"rare values", "thresholds", "values released", "counts released"}
        )

    def test_a_threshold_too_low(self, plant):
        """By half, of which the ledger know nothing."""
        threshold, delta = curating.threshold_for, curating.thresholded_delta
        plant(curating, "threshold_for", lambda *asked: threshold(*asked) // 2)
        plant(
            curating,
            "thresholded_delta",
            lambda stddev, low, *rest: delta(stddev, 2 * low + 1, *rest),
        )
        found = failed(UNDECLARED)
        assert {"thresholds"} <= found
        assert found <= {"thresholds", "rare values", "values released", "epsilon"}

    @pytest.mark.slow
    def test_a_range_that_was_clipped_to_the_data(self, plant):
        def clipped(fit, table):
            ages = [cell for cell in table._source.columns["age"] if isinstance(cell, int)]
            last = min(max(ages, default=110), 110) % 1_000
            facts = {**fit.description.facts}
            facts["age"] = replace(facts["age"], high=max(last, 50))
            fit.description = replace(fit.description, facts=facts)

        before_it_asks(plant, clipped)
        found = failed()
        assert {"file", "samples"} <= found
        assert found <= MADE

    def test_a_true_number_in_the_file(self, plant):
        before_it_asks(plant, lambda fit, table: fit.diagnostics.update(age=f"{ages(table)} rows"))
        assert {"file"} <= failed() <= MADE

    @pytest.mark.slow
    def test_a_seed_from_the_table(self, plant):
        def seeded(fit, table):
            fit.settings = replace(fit.settings, seed=int(ages(table)) % 1_000)

        before_it_asks(plant, seeded)
        found = failed()
        assert {"samples"} <= found <= MADE

    def test_an_engine_that_looks_into_the_table(self, plant):
        found = failed(method=Telling(engine=Spying()))
        assert {"samples", "file"} <= found <= MADE

    def test_an_engine_without_a_seed_is_told(self, plant):
        found = failed(method=PrivPGD(engine=Unseeded()))
        assert {"repeatable"} <= found <= {"repeatable"} | MADE


@dataclass(frozen=True)
class TripledQuery:
    """Counts times three, with the sensitivity of plain counts."""

    clique: tuple

    def describe(self):
        return "three times " + " x ".join(self.clique)

    def l2_sensitivity_squared(self, adjacency):
        return 2 if adjacency is Adjacency.REPLACE_ONE else 1

    def shape(self, domain):
        return domain.shape(self.clique)

    def answer(self, dataset):
        return 3 * dataset.counts(self.clique)


class Tripled(EngineMethod):
    def measure(self, curator, *, progress=None):
        names = curator.domain.attributes
        left = curator.ledger.remaining
        plain = [MarginalQuery((name,)) for name in names]
        curator.measure([TripledQuery(names[:1])], left * Fraction(9, 10), what="tripled")
        return curator.measure(plain, curator.ledger.remaining, what="columns")


class PairsFirst(EngineMethod):
    """Pairs for half of the budget, and columns for the other half."""

    def measure(self, curator, *, progress=None):
        half = curator.ledger.remaining / 2
        pairs = [MarginalQuery(clique) for clique in curator.domain.cliques(2)]
        curator.measure(pairs[:1], half, what="a 2-way marginal")
        columns = [MarginalQuery(clique) for clique in curator.domain.cliques(1)]
        return curator.measure(columns, half, what="columns")


class GroupsByCounts(EngineMethod):
    """Puts codes into groups by how many rows truly have them."""

    def measure(self, curator, *, progress=None):
        domain = curator.domain
        counts = curator._dataset.counts_of([(name,) for name in domain.attributes])
        groups = {
            name: (own > np.median(own)).astype(int) if len(set(own > np.median(own))) > 1
            else np.zeros(len(own), int)
            for name, own in zip(domain.attributes, counts, strict=True)
        }  # fmt: skip
        half = curator.ledger.remaining / 2
        grouped = GroupedMarginalQuery(domain.attributes[:2], Grouping.of(groups))
        curator.measure([grouped], half, what="a pair in groups")
        return curator.measure(
            [MarginalQuery(clique) for clique in domain.cliques(1)], half, what="columns"
        )


class StepForEachRow(Independent):
    def measure(self, curator, *, progress=None):
        if progress is not None:
            odd = int(curator._dataset.counts(curator.domain.attributes[:1])[0])
            list(progress(range(odd), "reading"))
        return super().measure(curator)


class Telling(Independent):
    """Tells the engine what it is not to know."""

    def measure(self, curator, *, progress=None):
        Spying.learnt = int(curator._dataset.counts(curator.domain.attributes[:1])[0])
        return super().measure(curator)


@dataclass(frozen=True)
class Spying(PrivatePGM):
    """Makes rows that depend on a true count."""

    learnt = 0

    def fit(self, domain, measurements, *, warm_start=None, progress=None):
        model = PrivatePGM(steps=50).fit(domain, measurements)
        code = self.learnt % domain.sizes[0]
        return Told(model, code)


@dataclass(frozen=True)
class Told:
    model: object
    code: int

    @property
    def domain(self):
        return self.model.domain

    @property
    def block(self):
        return self.model.block

    def marginal(self, clique):
        return self.model.marginal(clique)

    def sample(self, num_rows, seed):
        rows = self.model.sample(num_rows, seed)
        rows[:, 0] = self.code
        return rows


@dataclass(frozen=True)
class Unseeded(Spying):
    """Draws rows from a generator that nobody has seeded."""

    def fit(self, domain, measurements, *, warm_start=None, progress=None):
        return Drawn(PrivatePGM(steps=50).fit(domain, measurements), 0)


class Drawn(Told):
    def sample(self, num_rows, seed):
        rows = self.model.sample(num_rows, seed)
        rows[:, 0] = np.random.default_rng().integers(0, self.domain.sizes[0], num_rows)
        return rows


def test_frozen_answers_are_for_made_up_tables_alone():
    """No door leads from a user's table to a curator that gives answers of another run.

    A made-up table without rows vouches for none.
    """
    facts = {"ill": {"sdtype": "boolean"}}
    made, none = (made_up(facts, num_rows=num_rows) for num_rows in (10, 0))
    own = PrivateTable({"ill": pd.Series([True] * 10, dtype=object)})
    one = PrivateTable({"ill": pd.Series([True], dtype=object)})
    for refused in ((own, made, Tape(answers=Tape())), (own, own, Tape()), (one, none, Tape())):
        with pytest.raises(TypeError, match="made up"):
            AuditedTable(*refused)
    with pytest.raises(TypeError, match="made-up tables alone"):
        watched(None, None, Tape(answers=Tape()))  # type: ignore[arg-type]
    assert fitting_door.PrivateTable is PrivateTable
    AuditedTable(PrivateTable({"ill": none.frame["ill"]}), none, Tape())
