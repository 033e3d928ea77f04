"""What three or four attributes have beyond their pairs: chosen by contrasts, measured finely.

A few rows can hold a dependence that no pair shows: in one ward a treatment works, or an outcome is
the parity of three causes. Tables of all triples share a budget, and the noise hides it. The
exponential mechanism pays for what it chooses, and not for what it chooses among. So it looks at
every triple with an important attribute, one contrast after another: by how much more than expected
do rows of one group of an attribute agree in the halves of the two others? Of four attributes it
looks at the parity of halves. What is expected is of largest entropy given the noisy pairs.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.base.progress import Progress
from sdv_privpgd.estimate.consistency import ConsistentTables, consistent_tables
from sdv_privpgd.estimate.denoising import denoised, equal_groups
from sdv_privpgd.estimate.interactions import entropic_tables
from sdv_privpgd.methods.coarse_pairs import counted_total, dependence, strongest
from sdv_privpgd.methods.method import Importance, is_for_important, measure_tables
from sdv_privpgd.privacy.accounting import range_epsilon_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import CutMarginalQuery, Measurement, ModelErrorQuery


class Candidate(NamedTuple):
    """A contrast of a clique, in a group of the attribute ``focus`` if there is one."""

    clique: Clique
    focus: str | None
    score: ModelErrorQuery


@dataclass(frozen=True)
class HigherOrder:
    """What is looked for, by public facts, and what it costs: a fifth of mu^2 at most.

    A choice of a parity costs a unit, those of two triples seven each, and each table five. Of ten
    simulated tables of 20,000 rows a subgroup of 2 % is found in eight or nine at epsilon 1
    (``tests/benchmarks structure``).
    """

    unit: Fraction  # the mu^2 of a unit
    parities: bool  # whether they are looked for: a quarter of the rows would stand out
    # Those among which is chosen, if a fiftieth of the rows would stand out.
    triples: Sequence[Clique]

    MOST = Fraction(1, 5)
    _UNITS, _TRIPLE, _TABLE, _CHOICES = 30, 7, 5, 2

    @classmethod
    def of(
        cls, curator: Curator, triples: Sequence[Clique], importance: Importance
    ) -> "HigherOrder":
        """Nothing is looked for unless an attribute is important and the rows are counted."""
        unit, total = curator.ledger.remaining * cls.MOST / cls._UNITS, counted_total(curator)
        if total is None or not triples or not is_for_important(importance):
            return cls(unit, False, ())
        # Among a thousand looks those of so many temperatures more than chance are chosen.
        clear = 8
        quarter = clear * _temperature(curator, unit) <= total / 4
        fiftieth = clear * _temperature(curator, cls._TRIPLE * unit) <= total / 50
        return cls(unit, quarter, triples if fiftieth else ())

    @property
    def mu_squared(self) -> Fraction:
        """What is spent at most."""
        units = (1 + self._TABLE) * self.parities
        of_triples = self._CHOICES * (self._TRIPLE + self._TABLE) * bool(self.triples)
        return self.unit * (units + of_triples)

    def measure(
        self, curator: Curator, importance: Importance, progress: Progress
    ) -> list[Measurement]:
        """Returns the measurements of up to three cliques that stand out.

        The attribute in one group of which a clique stands out is measured over its codes, others
        over four groups.
        """
        if not self.mu_squared:
            return []
        fewer, domain = 4, curator.domain
        most = 150  # triples that are looked at, in the seconds that the other questions take
        tables = denoised(consistent_tables(domain, curator.measurements), progress, "compare")
        varied = [name for name, counts in tables.one_way.items() if np.count_nonzero(counts) > 1]
        found: list[Candidate] = []
        candidates = []
        if self.parities:
            candidates = list(
                _candidates(curator, _of_four(domain, varied, importance), tables, self.unit)
            )
        if candidates:
            clear = _temperature(curator, self.unit) * (math.log(len(candidates)) + 3)
            fewest = domain.attributes[int(np.argmin(domain.sizes))]
            expected = np.zeros(domain.shape((fewest,)), dtype=np.int64)
            bias = round(tables.total - clear)  # of no contrast: what is wrong with the total
            none = ModelErrorQuery(clique=(fewest,), expected=expected, bias=bias)
            scores = [*(candidate.score for candidate in candidates), none]
            place = curator.select(scores, self.unit, what="parity that stands out")
            found += candidates[place : place + 1]
        within = [each for each in self.triples if set(each) <= set(varied)]
        within = strongest(within, dependence(tables), most)
        candidates = list(_candidates(curator, within, tables, self._TRIPLE * self.unit))
        for _ in range(min(self._CHOICES, len(within))):
            scores = [candidate.score for candidate in candidates]
            place = curator.select(scores, self._TRIPLE * self.unit, what="triple that stands out")
            found.append(candidates[place])
            candidates = [
                candidate for candidate in candidates if candidate.clique != found[-1].clique
            ]
        if not found:
            return []
        codes = {candidate.focus for candidate in found}
        cliques = [candidate.clique for candidate in found]
        grouping = Grouping.of(
            {
                name: np.maximum(np.cumsum(tables.one_way[name] > 0) - 1, 0)
                if name in codes
                else equal_groups(tables.one_way[name], fewer)
                for name in domain.attributes
                if any(name in clique for clique in cliques)
            }
        )
        what = "marginals in groups that stand out"
        share = self._TABLE * self.unit * len(found)
        return measure_tables(curator, cliques, what, share, progress, grouping, are_chosen=True)


def _of_four(domain: Domain, varied: Sequence[str], importance: Importance) -> list[Clique]:
    """The cliques of an important attribute and three others, those that have the fewest codes."""
    most = 10  # others: 120 triples of them
    important = [name for name in varied if importance.get(name, 1.0) > 1]
    by_size = sorted(varied, key=lambda name: (domain.size_of[name], name))
    others = [name for name in by_size if name not in important][:most]
    return [
        tuple(name for name in domain.attributes if name in {target, *three})
        for target in important
        for three in combinations(others, 3)
    ]


def _temperature(curator: Curator, mu_squared: Fraction) -> float:
    """That of a choice among counts of rows."""
    most = curator.ledger.rows_counted * curator.ledger.adjacency.cells
    return 2 * most / range_epsilon_of(mu_squared)


def _candidates(
    curator: Curator, cliques: Sequence[Clique], tables: ConsistentTables, mu_squared: Fraction
) -> Iterator[Candidate]:
    """The contrasts of cliques: those of all their rows, and of triples those in a group.

    A score is what the contrast has beyond the expected. In a large group chance alone makes it
    larger than in a small one: what makes both equally likely to be chosen is taken off.
    """
    groups, halves = 16, 2
    temperature = _temperature(curator, mu_squared)
    focuses: dict[Clique, list[str | None]] = {}
    for clique in cliques:
        wide = [name for name in clique if np.count_nonzero(tables.one_way[name]) > halves]
        focuses[clique] = [*wide] if wide and len(clique) == 3 else [None]
    for focus in (None, *tables.one_way):
        grouping = Grouping.of(
            {
                name: equal_groups(counts, groups if name == focus else halves)
                for name, counts in tables.one_way.items()
            }
        )
        held = [clique for clique, own in focuses.items() if focus in own]
        cuts = {}
        for name in (name for each in held for name in each):
            places = grouping[name].tolist()  # its groups as intervals
            cuts[name] = Cut((Line(name, tuple(places)),), (1,), tuple(range(max(places))))
        for clique, expected in entropic_tables(tables, held, grouping).items():
            query = CutMarginalQuery((), tuple(cuts[name] for name in clique))
            sides = [1 - 2 * equal_groups(np.ones(size), halves) for size in expected.shape]
            signs = np.asarray(math.prod(np.ix_(*sides)))
            looked = []
            if focus == focuses[clique][0]:
                looked.append((None, signs, np.ones(signs.shape, dtype=bool)))
            if focus is not None:
                axis = clique.index(focus)
                agree = signs * np.expand_dims(sides[axis], [at for at in range(3) if at != axis])
                places = np.indices(signs.shape)[axis]
                looked += [(focus, agree, places == at) for at in range(signs.shape[axis])]
            for within, agree, those in looked:
                chance = float(expected[those].sum())
                less = min(chance / (2 * temperature), 2 * math.sqrt(chance))
                for sign in (1, -1):
                    weights = np.where(those, sign * agree, 1)
                    score = _score(query, weights, expected, less, tables.total)
                    yield Candidate(clique, within, score)


def _score(
    query: CutMarginalQuery, weights: np.ndarray, expected: np.ndarray, less: float, total: float
) -> ModelErrorQuery:
    """The sum of the counts times weights of 1 and -1, less what is expected and some more.

    It is the L1 distance from counts of 0 and, where weights are -1, of more than a table has.
    """
    beyond = 2 * math.ceil(total) + 1_000
    return ModelErrorQuery(
        clique=(),
        cuts=query.cuts,
        expected=np.where(weights < 0, beyond, 0).astype(np.int64),
        bias=beyond * int((weights < 0).sum()) + round(float((weights * expected).sum()) + less),
    )
