"""The genetic engine's generations for queries that are no tables: each child is asked anew."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Shares
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.synthesize.generations import PackedGoals, change, replace


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Measured queries that synthetic rows are to answer alike, whatever they are. Public."""

    domain: Domain
    total: float
    measurements: tuple[Measurement, ...]

    @classmethod
    def of(cls, domain: Domain, measurements: Sequence[Measurement]) -> "Asked":
        """Those of the measurements that are neither a table nor the number of rows."""
        known = MarginalQuery | GroupedMarginalQuery | CountQuery
        others = tuple(each for each in measurements if not isinstance(each.query, known))
        total = estimate_total(domain, measurements).value
        return cls(domain=domain, total=total, measurements=others)

    def loss(self, codes: np.ndarray) -> float:
        """The sum over queries of their mean squared error, in standard deviations of the noise.

        Answers of the rows are scaled to the estimated number of records.
        """
        rows = Dataset(self.domain, codes)
        scale, found = self.total / len(codes), 0.0
        for each in self.measurements:
            errors = scale * each.query.answer(rows) - each.answer
            found += float(np.square(errors / max(each.stddev, 1.0)).mean())
        return found


def evolve_by_recounts(
    codes: np.ndarray,
    goals: PackedGoals,
    asked: Asked,
    rng: np.random.Generator,
    *,
    generations: int,
    children: int,
    shares: Shares,
) -> list[float]:
    """Lets rows evolve, in place, and returns the loss after each generation, which never rises.

    The loss is that of the tables, whose change is counted, and that of the queries, which are
    asked of each child as a whole. Every second child is a crossover. The best child replaces its
    parent if it is better.
    """
    errors = goals.errors(codes)
    of_tables, of_queries = goals.loss(errors), asked.loss(codes)
    losses = []
    for generation in range(generations):
        rows = rng.integers(len(codes), size=children)
        axes = rng.integers(codes.shape[1], size=children)
        news = rng.integers(0, np.array(asked.domain.sizes)[axes])
        crossed = np.arange(children) % 2 == 1
        news[crossed] = codes[rng.integers(len(codes), size=children), axes][crossed]
        best = None
        for row, axis, new in zip(rows, axes, news, strict=True):
            old = codes[row, axis]
            if new == old:
                continue
            own = of_tables + change(codes[row], axis, new, errors, goals)
            codes[row, axis] = new
            answered = asked.loss(codes)
            codes[row, axis] = old
            if own + answered < (of_tables + of_queries if best is None else sum(best[:2])):
                best = own, answered, row, axis, new
        if best is not None:
            of_tables, of_queries, row, axis, new = best
            replace(codes[row], axis, new, errors, goals)
            codes[row, axis] = new
        losses.append(of_tables + of_queries)
        shares.reach((generation + 1) / generations)
    return losses
