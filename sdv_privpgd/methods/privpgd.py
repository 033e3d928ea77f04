"""All pairs of attributes, some of them twice, and single attributes and coarse triples."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer, check_share
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.consistency import Possible, consistent_tables
from sdv_privpgd.estimate.denoising import signal_variances
from sdv_privpgd.methods.coarse_pairs import (
    EACH,
    counted_total,
    has_triples,
    measure_by_weight,
    measure_coarsely,
    measure_quadrants,
    measure_triples,
    most_helpful,
    pairs_paid_for,
    part_for,
    promising_pairs,
    triples_among,
)
from sdv_privpgd.methods.higher_order import HigherOrder
from sdv_privpgd.methods.method import (
    EngineMethod,
    Importance,
    checked_workload,
    clique_weights,
    is_for_important,
    measure_tables,
)
from sdv_privpgd.methods.pipeline import noise_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import (
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    QuadrantQuery,
)
from sdv_privpgd.synthesize.engine import Engine

if TYPE_CHECKING:
    from sdv_privpgd.columns.column import Column

_WORTH = 22.0
"""What the noise of a single attribute counts beside that of a pair, for the 3/4 power of its size
beside the counts. With 8 the L1 error of the columns of nine public tables is 17 % higher at
epsilon 0.2 and 20 % at 1, and that of the pairs the same; with 45 their errors over groups are
3 % and those of covariances 7 % higher at epsilon 1 (``tests/benchmarks budget``). With the root
in place of this power the pairs of two tables are 5 % worse at epsilon 1."""

MOST_PAIRS = 1_225
"""The pairs of 50 columns. At epsilon 1 and 100,000 simulated rows the errors of 50 columns are the
same either way; those of 100 are lower where pairs are chosen (``tests/benchmarks columns``)."""

_LEVELS = (0.0, *(2.0**power for power in range(12)))
"""A pair may get one of these multiples of its first budget again. None lies between 0 and 1, so
no answer of the second round is noisier than those of the first."""


@dataclass(frozen=True, kw_only=True)
class PrivPGD(EngineMethod):
    """Measures every pair of attributes, and coarsely every triple. This is the default method.

    Where the noise is loud, each attribute is also measured alone. The tables of pairs tell little
    about a single attribute for what they cost, and the less so the more codes there are. So a
    share of the budget goes to the attributes alone: the one for which a forecast of the noise in
    attributes and pairs is least. It is computed from public facts: the domain, the budget and the
    (public or noisy) number of records.

    One number of each pair tells of its correlation with less noise than the table over codes: how
    many more rows are on the same side of both attributes' middles than on opposite sides. These
    quadrants have the part of the pairs' budget that is best by a like forecast (``coarse_pairs``),
    if the engine can use them. The estimates join both.

    Pairs are measured in two rounds: first all of them with equal budgets, then those again for
    which the noisy answers promise most. A weak dependence stays hidden in the noise even with
    twice the budget; a strong one becomes clearer.

    Triples are measured last, each over a few groups of codes (``triples``), unless the engine has
    no use for groups. If an attribute is important, up to three cliques of it with two or three
    others are chosen before, and measured more finely: those that go together in some group of
    rows, or in their parity, as no pair tells (``higher_order``).

    More than ``most_pairs`` pairs are too many: the noise of each grows with their number, and so
    do seconds and memory. Then all are measured over four or eight groups of codes, and those over
    codes that depend most by these answers: as many as have cells with no more noise than rows, on
    average, from one to two for each attribute. Triples are those of such pairs. All of it is
    decided by public facts and noisy answers. On 100,000 simulated rows at epsilon 1 the L1 error
    of pairs is 0.167 instead of 0.195 with 100 attributes, and 0.199 instead of 0.253 with 200, in
    half the time and less than half the memory (``tests/benchmarks columns``).

    When to use it: unless you have a reason not to. On seven public tables of 21,688 to 274,391
    rows it has, with particles, the lowest L1 error of pairs of all strategies at epsilon 0.2, 1
    and 2.5. These fits take 1 to 9 seconds on one core and at most 52 MiB (``benchmark show``).
    The guide lists three tables where another has the lower downstream error at epsilon 0.2.

    Attributes:
        columns: Whether attributes may be measured alone. Leave it where pairs are too many. On
            nine public tables at epsilon 0.2 the forecast's share, in place of at most 15 %, lowers
            the L1 error of attributes by 29 % and that of pairs by 10 % (``tests/benchmarks
            budget``).
        first_share: The part of the pairs' mu^2 for the first round; 1 for no second round. On
            Adult and Bank 0.5 to 0.7 are equally good. There is one round only where the rest
            cannot measure at least one pair again with its first budget.
        triples: The part of mu^2 for triples; 0 for none. A tenth lowers the covariance errors on
            Adult by 3 to 19 %, and raises L1 by 0.5 to 4 % and sliced W1 by up to 10 %: choose 0 if
            these matter most.
        importance: How many times the budget of another pair a pair with an attribute gets. If an
            attribute has one above 1, only triples with such an attribute are measured.
        most_pairs: The largest number of pairs that are all measured over codes; of more, no more
            are. The default is the number of pairs of 50 attributes.
        pairs: Pairs that are measured over codes in any case, also where there are too many. A fit
            adds those that a constraint is about, and columns in order with their difference.
        known: Attributes of which tables are known from elsewhere: nothing is asked of them alone.
        public_groups: Whether public facts alone decide on sides and groups of pairs, as where
            answers of other tables are added to these (``measure``). Of two sites with 800 and
            3,000 rows of simulated tables with 6 to 14 columns, at epsilon 0.3 and 1, 30.8 % of the
            rows lay in the wrong cell of a pair, 33.4 % with each site's own sides, and 32.4 %
            without quadrants.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, fit_table
    >>> from sdv_privpgd.methods import PrivatePGM
    >>> table = pd.DataFrame({"smokes": [True, False] * 500, "coughs": [True, False] * 500})
    >>> columns = {"smokes": Boolean(), "coughs": Boolean()}
    >>> fitted = fit_table(table, columns, epsilon=1.0, method=PrivPGD(engine="pgm"))
    >>> [charge.what for charge in fitted.ledger.charges][2:]
    ['number of rows', 'all 2-way marginals']
    """

    engine: Engine | str = "particles"
    columns: bool = True
    first_share: Fraction = Fraction(2, 3)
    triples: Fraction = Fraction(1, 10)
    importance: Importance = field(default_factory=dict)
    most_pairs: int = MOST_PAIRS
    pairs: tuple[Clique, ...] = ()
    known: tuple[str, ...] = ()
    public_groups: bool = False

    is_quick = True
    chooses = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.first_share <= 1:
            raise ValueError(
                f"first_share must be above 0 and at most 1, got {self.first_share!r}."
            )
        check_fields(self, check_share, "triples")
        check_fields(self, check_integer, "most_pairs")
        wrong = [pair for pair in self.pairs if isinstance(pair, str) or len(set(pair)) != 2]
        if wrong:
            raise ValueError(f"pairs must be pairs of attributes, got {wrong[0]!r}.")

    def cliques(self, domain: Domain) -> Sequence[Clique]:
        pairs = self._unknown(domain.cliques(min(2, len(domain))))
        number = len(pairs)
        if self.coarse_cliques(domain):
            number = min(EACH * len(domain), self.most_pairs)
        return [pairs[place * len(pairs) // number] for place in range(number)]

    def coarse_cliques(self, domain: Domain) -> Sequence[Clique]:
        pairs = self._unknown(domain.cliques(min(2, len(domain))))
        return pairs if len(pairs) > self.most_pairs else ()

    def knowing(self, names: Collection[str]) -> "PrivPGD":
        return replace(self, known=tuple(names))

    def _unknown(self, cliques: Sequence[Clique]) -> Sequence[Clique]:
        """The cliques of which something is not known from elsewhere."""
        return [each for each in cliques if not set(each) <= set(self.known)]

    def require_settings(self, domain: Domain) -> None:
        if self.pairs:
            checked_workload(domain, self.pairs)

    def for_table(self, columns: "Sequence[Column]", possible: Possible) -> "PrivPGD":
        """Returns the method that knows which pairs public facts tie together.

        They are those that constraints are about, and columns in order with their difference.
        """
        tied = (pair for clique in possible for pair in combinations(clique, 2))
        pairs = tuple(dict.fromkeys([*self.pairs, *tied]))
        return replace(super().for_table(columns, possible), pairs=pairs)

    def plain(self, domain: Domain) -> "tuple[PrivPGD, Fraction]":
        """Returns all pairs with equal budgets: noisy answers will say which get more.

        What triples tell of pairs and columns (2 to 4 % of an error) is left out, and so is what is
        spent on those that stand out, if rows are many enough for it. Groups are public.
        """
        has_kept = has_triples(domain) and self.made.takes_groups
        kept = Fraction(self.triples) if has_kept else Fraction(0)
        if kept and is_for_important(self.importance):
            kept += HigherOrder.MOST
        own = replace(self, first_share=Fraction(1), triples=Fraction(0), public_groups=True)
        return own, 1 - kept

    def counted(self, measurements: Sequence[Measurement]) -> str:
        queries = [each.query for each in measurements]
        grouped = {each.clique for each in queries if isinstance(each, GroupedMarginalQuery)}
        codes = {each.clique for each in queries if isinstance(each, MarginalQuery)}
        coarse = {len(clique) for clique in grouped}
        said = "the contingency tables of all pairs of columns"
        if any(len(clique) == 2 for clique in grouped - codes):
            said = (
                "coarse tables of all pairs of columns, the contingency tables of the pairs that "
                "depend most by these noisy counts"
            )
        if any(isinstance(each, QuadrantQuery) for each in queries):
            said += ", how many rows are on the same side of the middles of each two columns"
        if 3 in coarse:
            said += ", and coarse tables of three columns" + (" or four" if 4 in coarse else "")
        if self.importance:
            said += f" (those with {', '.join(self.importance)} more precisely)"
        return said

    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """One measurement an attribute, if they have a share, one to three a pair, one a triple.

        Tables of pairs over groups come before those over codes.
        """
        # The least such share where pairs are too many: tables over groups say nothing of single
        # codes, and some attributes are in no other table.
        of_many = Fraction(1, 20)
        domain = curator.domain
        wanted = checked_workload(domain, self.pairs) if self.pairs else ()
        kept = curator.ledger.remaining * Fraction(self.triples)
        if not has_triples(domain) or not self.made.takes_groups:
            kept = Fraction(0)
        pairs = self._unknown(domain.cliques(min(2, len(domain))))
        are_many = len(pairs) > self.most_pairs
        share = self._one_way_share(curator) if self.columns else Fraction(0)
        if are_many and self.columns:
            share = max(share, of_many)
        measured = []
        if share:
            alone, part = (
                self._unknown(domain.cliques(1)),
                (curator.ledger.remaining - kept) * share,
            )
            measured = measure_tables(curator, alone, "all 1-way marginals", part)
        among, how = domain.cliques(2), (self.importance, progress)
        if len(domain) > 1 and self.made.takes_quadrants:
            left = curator.ledger.remaining - kept
            measured += measure_quadrants(curator, pairs, left, *how, is_public=self.public_groups)
        if are_many:
            left = curator.ledger.remaining - kept
            measured += measure_coarsely(curator, pairs, left, *how, is_public=self.public_groups)
            number = pairs_paid_for(curator, curator.ledger.remaining - kept, self.most_pairs)
            pairs = among = promising_pairs(curator, pairs, number, wanted, self.importance)
        triples = self._unknown(triples_among(domain, among, self.importance)) if kept else []
        if not triples:
            kept = Fraction(0)
        beyond = HigherOrder.of(curator, triples, self.importance)
        left = curator.ledger.remaining - kept - beyond.mu_squared
        measured += self._pairs(curator, pairs, left, progress, are_all=not are_many)
        measured += beyond.measure(curator, self.importance, progress)
        if triples:
            left = curator.ledger.remaining
            measured += measure_triples(curator, triples, left, self.importance, progress=progress)
        return measured

    def _pairs(
        self,
        curator: Curator,
        cliques: Sequence[Clique],
        mu_squared: Fraction,
        progress: Progress,
        *,
        are_all: bool = True,
    ) -> list[Measurement]:
        """Measures these pairs, and some of them again, for ``mu_squared`` in all."""
        weights = clique_weights(cliques, self.importance)
        units = sum(map(Fraction, weights.values())) * (1 / Fraction(self.first_share) - 1)
        is_even = len(set(weights.values())) == 1
        what = f"{len(cliques[0])}-way marginals"
        what = f"{what} that depend most" if not are_all else f"all {what}" if is_even else what
        has_second = units >= max(weights.values())
        first_part = mu_squared * Fraction(self.first_share) if has_second else mu_squared
        first = measure_by_weight(
            curator, weights, first_part, what, progress, are_chosen=not are_all
        )
        if not has_second:
            return first
        known = consistent_tables(curator.domain, curator.measurements)
        signals = signal_variances(known, progress)
        # A pair without a residual promises nothing.
        signals = {clique: signals.get(clique, np.zeros(0)) for clique in weights}
        variances = {each.query.clique: each.stddev**2 for each in first}  # pyright: ignore
        chosen = most_helpful(signals, variances, _LEVELS, float(units), weights)
        parts = {clique: level * weights[clique] for clique, level in chosen.items()}
        what, left = "2-way marginals that promise most", mu_squared - first_part
        again = measure_by_weight(curator, parts, left, what, progress, are_chosen=True)
        return [*first, *again]

    def _one_way_share(self, curator: Curator) -> Fraction:
        """The share of mu^2 for single attributes; 0 if no count was measured.

        They are worth ``_WORTH r^(3/4)``, where r is the noise of a column's counts beside them if
        pairs have all.
        """
        domain, total = curator.domain, counted_total(curator)
        if len(domain) < 3 or total is None:
            return Fraction(0)
        left = curator.ledger.remaining
        alone, stddev = (
            noise_of(
                curator.ledger, map(MarginalQuery, self._unknown(domain.cliques(degree))), left
            )
            for degree in (1, 2)
        )
        inverse_sizes = sum(1 / size for size in domain.sizes)
        # A pair's sums over the other attribute's k values have k times the variance of a cell.
        of_pairs = fmean(
            stddev / math.sqrt(inverse_sizes - 1 / size) * size / total for size in domain.sizes
        )
        gain = (of_pairs * total / (alone * fmean(domain.sizes))) ** 2 - 1
        return part_for(_WORTH * of_pairs**0.75, gain)


METHODS = {"privpgd": PrivPGD}
