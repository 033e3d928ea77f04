"""What a fit makes models and rows with: the engine for a table, and samplers of models. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.rules import possible_of
from sdv_privpgd.estimate.evidence import surely_held
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.methods import confined
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.half_spaces import Line
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.sampling.sampler import Sampler
from sdv_privpgd.sampling.visits import RowMaker, VisitSampler
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.half_space_questions import line_of
from sdv_privpgd.select.half_spaces import FEWEST, HalfSpaces
from sdv_privpgd.select.mean_embedding import MeanEmbedding
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine, Model


def engine_for(settings: Settings, description: Description) -> Engine:
    """The engine, told which cells of the attributes' tables rows can be in."""
    schema, rules = description.attributes, description.limits.rules
    possible = possible_of([*rules, *schema.differences], schema.domain())
    return confined(settings.engine, possible)


def strategy_for(settings: Settings, description: Description) -> Strategy:
    """The strategy, told the public facts on columns that it needs.

    ``AllPairs``, if it may have to leave out pairs, is told which ones public facts tie together:
    those that constraints are about, and columns in order with their difference. ``MeanEmbedding``
    is told which codes have no order, and ``HalfSpaces`` where those of numbers lie.
    """
    strategy, schema = settings.strategy, description.attributes
    if isinstance(strategy, HalfSpaces):
        return replace(strategy, lines=_lines(schema), nominal=tuple(schema.domain().attributes))
    if isinstance(strategy, MeanEmbedding):
        in_order = [column for column in schema.attributes if column.is_ordered]
        return replace(
            strategy,
            nominal=tuple(each.name for each in schema.attributes if not each.is_ordered),
            nullable=tuple(each.name for each in in_order if each.nullable),
        )
    if not isinstance(strategy, AllPairs):
        return strategy
    possible = possible_of([*description.limits.rules, *schema.differences], schema.domain())
    tied = (pair for clique in possible for pair in combinations(clique, 2))
    return replace(strategy, pairs=tuple(dict.fromkeys([*strategy.pairs, *tied])))


def _lines(schema: Schema) -> tuple[Line, ...]:
    """The line of each number: its codes lie at the middles of their cells.

    Categories have none, even those in order: no distance between them is known.
    """
    numbers = [
        each
        for each in schema.attributes
        if each.is_ordered and each.sdtype != "ordinal" and each.num_values >= FEWEST
    ]
    found = []
    for each in numbers:
        codes = np.arange(each.num_values)
        middles = np.asarray(each.at(codes, np.full(len(codes), 0.5)), dtype=np.float64)
        found.append(line_of(each.name, middles, nullable=each.nullable))
    return tuple(found)


_LIKELY = 2.0
"""Where values are declared to be missing at times, so many standard deviations of rows without one
are enough to have some. Elsewhere a single one would decide what dtype comes back."""


@dataclass(frozen=True, kw_only=True)
class SamplerMaker:
    """Makes samplers of models of one table.

    Attributes:
        description: Of the table, with what was found.
        schema: All that has codes.
        held: The codes of each attribute that surely hold rows.
        differences: Those that something was asked of: no model knows the others.
    """

    description: Description
    schema: Schema
    held: Mapping[str, np.ndarray]
    differences: tuple[Difference, ...]

    @classmethod
    def of(
        cls,
        description: Description,
        schema: Schema,
        held: Mapping[str, np.ndarray],
        measured: Sequence[Measurement],
    ) -> "SamplerMaker":
        """Given all that was measured."""
        kinds = MarginalQuery | GroupedMarginalQuery
        queries = [each.query for each in measured if isinstance(each.query, kinds)]
        asked = {name for query in queries for name in query.clique}  # pyright: ignore
        own = tuple(each for each in schema.differences if each.name in asked)
        likely = surely_held(schema.domain(), measured, _LIKELY)
        may_miss = [name for name, facts in description.stated.items() if facts.nullable]
        missing = {
            name: np.append(held[name][:-1], held[name][-1] | likely[name][-1])
            for name in held.keys() & may_miss
        }
        return cls(
            description=description, schema=schema, held={**held, **missing}, differences=own
        )

    def __call__(self, model: Model, seed: int) -> RowMaker:
        """The sampler of a model, from its first row on."""
        limits, visits = self.description.limits, self.description.visits
        added = () if visits is None else visits.added
        rows = Sampler(
            self.schema,
            model,
            seed,
            # That a row has none before it is no value that only noise may have produced.
            held={**self.held, **{name: np.ones_like(self.held[name]) for name in added}},
            rules=limits.rules,
            predicates=limits.checks,
            differences=self.differences,
        )
        return rows if visits is None else VisitSampler(rows, visits)
