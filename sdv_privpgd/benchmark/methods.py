"""The methods of the comparison: what makes codes, what is asked, and what makes rows of answers.

"published" means the paper's configuration of the particles (Donhauser et al. 2024, section 4.1).
"PrivPGD-AIM" and its like are another strategy with our particles. A strategy's name alone is that
strategy with its authors' engine. "RAP-AllPairs", "GEM-AllPairs" and "Private-GSD" measure all
pairs with equal noise. In this comparison "RAP++" has the cells of all others. "RAP++" and
"DP-MERF" are told the column that classifiers are to predict, as published; no other method is.
"PrivPGD-without-x" is the default without one of its parts (``ABLATIONS``).

An arm of the exchange is named by its parts, a preprocessing, a method that asks and an engine:
``equal_width+rare / mst / pgm``. Methods and engines are those of ``method="mst+pgm"`` elsewhere,
with their own settings. Of the preprocessings ``equal_width`` cuts ranges equally, and lets
neighbors in the declared order share a code where there are more than ``--cells`` categories: it
costs nothing. ``equal_mass`` is this package's own discovery: codes of about equally many rows, as
many as the noise can pay for. With ``+rare`` categories are
not put together by their order: those of columns with at least 100 keep a code each, but for the
rare ones (benchmark paper, Algorithm 1); ``equal_width+rare`` is what that paper does unless it
says otherwise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
import pandas as pd

from sdv_privpgd.benchmark.tables import RealTable, columns_of, with_neighbors
from sdv_privpgd.columns.bins import Categories, Merging
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cuts import column_of
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.first_queries import reserved_delta
from sdv_privpgd.discovery.plan import discover, worth_a_look
from sdv_privpgd.discovery.transcript import Inquiry
from sdv_privpgd.fitting.fit import codes_paid_for, with_codes
from sdv_privpgd.methods.method import (
    ENGINES,
    EngineMethod,
    Method,
    engine_of,
    importance_of,
    method_of,
    named_methods,
)
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import FitLedger
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.synthesize.engine import Engine

NUMBERS = ("equal_width", "equal_mass")
"""What can be done with numbers and dates."""

PREPROCESSINGS = (*NUMBERS, *(f"{name}+rare" for name in NUMBERS))

SHARE = Fraction(1, 10)
"""Part of the budget for a preprocessing that asks (benchmark paper, appendix A.4.1)."""

MANY = 100
"""Attributes with fewer categories keep them all (benchmark paper, appendix A.4.1)."""

REAL = "Real"
"""Stands for the fitted rows themselves in place of a method."""

RARE = Fraction(2, 1000)
"""The part of all rows below which a category is rare, there called theta."""


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """One of ``PREPROCESSINGS``, with a share of the budget for all columns that it looks into."""

    name: str
    share: Fraction = SHARE

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"The share must be above 0 and below 1, got {self.share!r}.")

    def reserved(self, table: RealTable, delta: float) -> Fraction:
        """The part of delta that its questions with a threshold need."""
        return reserved_delta(self._shapeless(table), delta)

    def schema(
        self, table: RealTable, rows: pd.DataFrame, shared: FitLedger, method: Method
    ) -> Schema:
        """The columns with the codes that it gives them.

        Privacy: ``share`` of the budget at most, charged by the curator. What ``method`` will ask
        of the codes decides how many of them can be paid for.
        """
        columns = {column.name: column for column in table.schema.columns}
        rare = self._rare(columns) if self.name.endswith("+rare") else {}
        shapeless = self._shapeless(table)
        parts = shared.ledger.budget * self.share / max(len(rare) + len(shapeless), 1)
        found = {name: with_neighbors(column, table.cells) for name, column in columns.items()}
        if rare:
            curator = PrivateTable(columns_of(rows)).curator(Schema(tuple(rare.values())), shared)
            sizes = {name: column.num_values for name, column in rare.items()}
            for name, merging in merge_rare(curator, sizes, parts * len(sizes)).items():
                found[name] = replace(rare[name], merging=merging)
        if shapeless:
            share = self.share * len(shapeless) / (len(rare) + len(shapeless))
            inquiry = Inquiry(table=PrivateTable(columns_of(rows)), shared=shared)
            facts = discover(inquiry, shapeless, share).facts
            number = codes_paid_for(columns, len(rows), shared.ledger, method)
            coded = with_codes(facts, table.facts, min(number, table.cells))
            for name, known in coded.items():
                found[name] = column_of(name, table.facts[name].and_found(known), table.cells)
        return Schema(tuple(found.values()))

    def _shapeless(self, table: RealTable) -> dict[str, ColumnFacts]:
        """The numbers and dates that this package's own discovery looks into."""
        if not self.name.startswith("equal_mass"):
            return {}
        looked = worth_a_look(table.facts, table.cells)
        return {name: each for name, each in looked.items() if not isinstance(each, CategoryFacts)}

    def _rare(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """The columns of many categories, with a code for each."""
        return {
            name: replace(column, merging=None)
            for name, column in columns.items()
            if isinstance(column.cells, Categories) and len(column.cells) >= MANY
        }


def merge_rare(
    curator: Curator, num_categories: Mapping[str, int], mu_squared: Fraction
) -> dict[str, Merging]:
    """For each attribute with many categories those that share a code, and have the last one.

    Chen et al. 2025 (the benchmark paper), Algorithm 1: the categories of which fewer rows are
    counted than 0.2 % of all, or than three standard deviations of the noise. The attributes are
    counted together, which is an equal share of the budget for each. All declared categories are
    counted, where that paper's code counts those that occur, which tells which ones do not.
    Values are drawn evenly from the merged code.

    Privacy: ``mu_squared`` in all, charged by the curator, of a table whose attributes have a code
    for each category; nothing if no attribute has many. ``num_categories`` says how many of an
    attribute's first codes are categories.
    """
    names = [name for name, number in num_categories.items() if number >= MANY]
    queries = [MarginalQuery((name,)) for name in names]
    answers = curator.measure(queries, mu_squared, what="categories of columns that have many")
    found = {}
    for name, answer in zip(names, answers, strict=True):
        counts = answer.answer[: num_categories[name]]
        least = max(float(RARE) * float(counts.sum()), 3 * answer.stddev)
        is_kept = counts >= least
        codes = np.where(is_kept, np.cumsum(is_kept) - 1, is_kept.sum())
        found[name] = Merging(tuple(codes.tolist()), (1.0,) * len(codes))
    return found


ABLATIONS: Mapping[str, tuple[dict, dict]] = {
    "PrivPGD-without-denoising": ({}, {"targets": "consistent"}),
    "PrivPGD-without-consistency": ({}, {"targets": "raw"}),
    "PrivPGD-without-descent": ({}, {"epochs": 0}),
    "PrivPGD-with-100-epochs": ({}, {"epochs": 100}),
    "PrivPGD-without-finish": ({}, {"local_search": None}),  # as results/ call it
    "PrivPGD-without-columns": ({"columns": False}, {}),
    "PrivPGD-without-second-round": ({"first_share": Fraction(1)}, {}),
    "PrivPGD-without-triples": ({"triples": Fraction(0)}, {}),
}
"""What is changed in the default's strategy, and in its engine."""

_PAIRS = "private_gsd"  # whose pairs all have equal noise

METHODS: Mapping[str, tuple[str, str]] = {
    "PrivPGD": ("privpgd", "particles"),
    "PrivPGD-published": (_PAIRS, "particles"),
    "PrivPGD-published-noise": (_PAIRS, "particles"),
    "Independent": ("independent", "pgm"),
    "MST": ("mst", "pgm"),
    "AIM": ("aim", "pgm"),
    "MWEM": ("mwem", "pgm"),
    "PrivSyn": ("privsyn", "gum"),
    "PrivMRF": ("privmrf", "pgm"),
    "DP-MERF": ("dp-merf", "generator"),
    "RAP++": ("rap++", "rap++"),
    "DP-Diffusion": ("dp-diffusion", ""),
    "DP-CTGAN": ("dp-ctgan", ""),
    "RAP": ("rap", "rap"),
    "GEM": ("gem", "gem"),
    "Private-GSD": (_PAIRS, "private_gsd"),
    "RAP-AllPairs": (_PAIRS, "rap"),
    "GEM-AllPairs": (_PAIRS, "gem"),
    **{
        f"PrivPGD-{name}": (name.lower(), "particles")
        for name in ("Independent", "MST", "AIM", "MWEM", "PrivSyn", "PrivMRF")
    },
    **dict.fromkeys(ABLATIONS, ("privpgd", "particles")),
}
"""The method that asks, and the engine that makes rows of the answers, if it has one."""

SELECTS = tuple(name for name, make in named_methods().items() if isinstance(make(), EngineMethod))
"""The methods that go with several engines."""


KINDS = {"preprocess": PREPROCESSINGS, "select": SELECTS, "synthesize": tuple(ENGINES)}
"""The parts of an arm by their kinds, in the order in which they work."""

_BETWEEN = " / "

USUAL = ("equal_width+rare", "aim", "pgm")
"""The parts of an arm that are not named: the benchmark paper's preprocessing, and the engine that
it holds fast while it exchanges strategies, with the best of them."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One of ``METHODS``, or an arm of the exchange, with its settings."""

    name: str
    share: Fraction = SHARE  # of the budget, for an arm's preprocessing, if that asks
    num_particles: int | None = None  # in place of the configuration's own number
    published_epochs: int | None = None  # in place of 1,000
    max_megabytes: float = 80.0  # of AIM's model, and of any in an arm; the paper has 80

    def __post_init__(self) -> None:
        if is_arm(self.name):
            for named, choice in zip(parts_of(self.name), KINDS.values(), strict=True):
                if named not in choice:
                    raise ValueError(f"There is no {named!r}: choose from {choice!r}.")
        elif self.name not in METHODS:
            raise ValueError(f"There is no method {self.name!r}: choose from {tuple(METHODS)!r}.")

    @property
    def _parts(self) -> tuple[str, str]:
        """The names of the method that asks, and of the engine."""
        if not is_arm(self.name):
            return METHODS[self.name]
        _, select, synthesize = parts_of(self.name)
        return select, synthesize

    @property
    def _is_published(self) -> bool:
        return self.name.startswith("PrivPGD-published")

    @property
    def has_particles(self) -> bool:
        """Whether its engine is the particles."""
        return self._parts[1] == "particles"

    @property
    def preprocessing(self) -> Preprocessing | None:
        """What makes an arm's codes of the table. Others have those of the table itself."""
        if not is_arm(self.name):
            return None
        return Preprocessing(name=parts_of(self.name)[0], share=self.share)

    def settings(self) -> dict[str, float]:
        """The settings that this method reads and that differ from its default."""
        asks = self.preprocessing is not None and self.preprocessing.name != "equal_width"
        read = {
            "share": float(self.share) if asks else None,
            "num_particles": self.num_particles if self.has_particles else None,
            "published_epochs": self.published_epochs if self._is_published else None,
            "max_megabytes": self.max_megabytes if self._is_capped else None,
        }
        return {key: value for key, value in read.items() if value is not None}

    @property
    def _is_capped(self) -> bool:
        """Whether ``max_megabytes`` is told to its strategy. Other methods keep their own limit."""
        name = self._parts[0]
        has_limit = is_arm(self.name) and hasattr(named_methods()[name](), "max_megabytes")
        return has_limit or name == "aim"

    def spends(self, epsilon: float, delta: float) -> float:
        """The epsilon that its noise spends where its authors would claim ``epsilon``."""
        is_noisier = self.name == "PrivPGD-published-noise"
        return published_epsilon(epsilon, delta) if is_noisier else epsilon

    def made(self, seed: int, nominal: tuple[str, ...] = (), label: str | None = None) -> Method:
        """The method. One that was published for tables with a class is told it, as ``label``."""
        name, engine = self._parts
        if not engine:
            return method_of(name, seed=seed)
        method: Any = replace(cast(Any, method_of(name)), engine=self._engine(engine).seeded(seed))
        if self._is_capped:
            method = replace(method, max_megabytes=self.max_megabytes)
        if name in ("rap++", "dp-merf"):
            return replace(method, nominal=nominal, importance=importance_of(label))
        changes, _ = ABLATIONS.get(self.name, ({}, {}))
        return replace(method, **changes)

    def _engine(self, name: str) -> Engine:
        """Returns the engine that makes rows of the measurements."""
        if not self.has_particles:
            return engine_of(name)
        from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

        _, changes = ABLATIONS.get(self.name, ({}, {}))
        if self.num_particles is not None:
            changes = {**changes, "num_particles": self.num_particles}
        if not self._is_published:
            return ParticleGradientDescent(**changes)
        if self.published_epochs is not None:
            changes = {**changes, "epochs": self.published_epochs}
        return ParticleGradientDescent.as_published(**changes)


def is_arm(method: str) -> bool:
    """Whether the name of a method is that of an arm."""
    return len(parts_of(method)) == 3


def parts_of(method: str) -> list[str]:
    """The names of an arm's parts, in the order in which they work."""
    return method.split(_BETWEEN)


def names_of(
    preprocess: Sequence[str] | None, select: Sequence[str] | None, synthesize: Sequence[str] | None
) -> list[str]:
    """The names of all arms of these parts; none if no part is named."""
    named = (preprocess, select, synthesize)
    if not any(named):
        return []
    parts = [each or [usual] for each, usual in zip(named, USUAL, strict=True)]
    return [_BETWEEN.join(each) for each in product(*parts)]


def published_epsilon(epsilon: float, delta: float) -> float:
    """The epsilon that the paper's noise for ``epsilon`` spends, exactly.

    Its code calibrates through epsilon = rho + 2 sqrt(rho log(1/delta)) (Bun & Steinke 2016,
    Proposition 1.3), which asks for 1.24 to 1.48 times the noise that suffices at the paper's
    budgets. A Gaussian of rho-zCDP has mu^2 = 2 rho, whose epsilon is known exactly.
    """
    log = math.log(1 / delta)
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))  # of rho, without cancelling
    return epsilon_of(2 * Fraction(root) ** 2, delta)
