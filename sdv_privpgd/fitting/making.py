"""What a fit makes models and rows with: the engine for a table, and samplers of models. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.rules import possible_of
from sdv_privpgd.estimate.support import surely_held
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.method import Method
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery, Measurement
from sdv_privpgd.sampling.sampler import Sampler
from sdv_privpgd.sampling.visits import RowMaker, VisitSampler
from sdv_privpgd.synthesize.engine import Model


def method_for(settings: Settings, description: Description) -> Method:
    """The method, told the public facts on the table that it needs."""
    schema, rules = description.attributes, description.limits.rules
    possible = possible_of([*rules, *schema.differences], schema.domain())
    method = settings.method.for_table(schema.attributes, possible)
    return method if description.public_rows is None else method.given(description.public_rows)


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
