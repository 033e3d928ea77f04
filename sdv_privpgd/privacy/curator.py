"""The trusted holder of the private table: charging, counting and noise or choice are one act."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.values import Value
from sdv_privpgd.privacy.accounting import delta_of_one, delta_of_rows, range_epsilon_of, stddev_for
from sdv_privpgd.privacy.dataset import Records
from sdv_privpgd.privacy.ledger import TRAINED, Charge, FitLedger, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.noise import MAX_STDDEV, SAMPLING_DELTA, WordSource, rounded_gaussian
from sdv_privpgd.privacy.queries import Adjacency, Measurement, ModelErrorQuery, Query, answers
from sdv_privpgd.privacy.selection import exponential_choice
from sdv_privpgd.privacy.thresholding import threshold_for, thresholded_delta
from sdv_privpgd.privacy.value_counts import ValueCounts
from sdv_privpgd.sources.redaction import sealed
from sdv_privpgd.sources.source import Opaque

_BLOCK, _CELLS, _MOST = 32, 1 << 15, 1 << 10
"""One pass over the records answers as many queries, or more as long as they have so many cells,
and are no more than the last. Fewer would read the records more often."""


class Trainer(Protocol):
    """Trains weights outside the core, and promises to keep to what is charged."""

    steps: int

    @property
    def query(self) -> Query:
        """What is trained, and what it depends on."""
        ...

    def prepare(self, mu: float, delta: float) -> None:
        """Raises where it cannot be mu-GDP but for ``delta`` for one row more or less."""
        ...

    def train(self, codes: np.ndarray, words: WordSource) -> Iterator[None]:
        """Takes the steps on codes (record, attribute), one each time that it is asked."""
        ...

    def weights(self) -> np.ndarray:
        """All weights, float64 (weight,)."""
        ...


def _noisy(answer: np.ndarray, stddev: float, words: WordSource) -> np.ndarray:
    """The answer plus rounded Gaussian noise, integers: the one place where noise meets counts."""
    if stddev == 0:
        return answer
    return np.asarray(answer + rounded_gaussian(stddev, answer.size, words).reshape(answer.shape))


def _squared(query: Query, adjacency: Adjacency, ledger: PrivacyLedger) -> int:
    """The squared sensitivity of a query to one row, in ones.

    What a row adds is s v, for its weight s from 0 to 1 and the v of its values: a point between
    the origin and some v. Two such points are as far apart as two v, or a v and the origin, can be.
    So are a person's rows and those of one with fewer, each, where the number of rows is private.
    """
    square, rows = query.l2_sensitivity_squared(adjacency), ledger.rows_counted
    if ledger.weights is None and (rows == 1 or ledger.adjacency is Adjacency.REPLACE_ONE):
        return square
    return max(square, query.l2_sensitivity_squared(Adjacency.ADD_REMOVE))


def _in_ones(noisy: np.ndarray, units: int) -> np.ndarray:
    """The same numbers, each so many units a count of one: post-processing."""
    return noisy if units == 1 else (noisy / units).astype(np.float64)


def _blocks(queries: Sequence[Query], domain: Domain) -> list[list[Query]]:
    """The queries, in order, in blocks that one pass answers each."""
    blocks: list[list[Query]] = []
    cells = _CELLS
    for query in queries:
        if not blocks or len(blocks[-1]) >= (_MOST if cells < _CELLS else _BLOCK):
            blocks.append([])
            cells = 0
        blocks[-1].append(query)
        cells += math.prod(query.shape(domain))
    return blocks


def _usable_stddev(square: int, mu_squared: Fraction, what: str, parts: int = 1) -> float:
    """The noise that ``mu_squared`` buys. Raises ``PrivacyBudgetError`` where it is useless."""
    stddev = stddev_for(square, mu_squared)
    if stddev * parts > MAX_STDDEV:
        raise PrivacyBudgetError(
            f"Measuring {what} with mu²={float(mu_squared):.3g} needs noise of standard deviation "
            f"{stddev:.3g}, above {MAX_STDDEV / parts:.3g}: allow a larger epsilon."
        )
    return stddev


class Curator(Opaque):
    """Answers queries about one private table of codes within one budget.

    It holds the table and the ledger, and is never returned or kept. Threads may share it: no
    charge is lost.

    Args:
        dataset: The records that it answers for.
        shared: What it charges, and where its noise comes from. Other curators of the fit share
            them.
        values: The values of columns whose categories nobody declared, for ``discover``.
        known: Answers about these codes that were paid for earlier.
    """

    def __init__(
        self,
        dataset: Records,
        shared: FitLedger,
        *,
        values: ValueCounts | None = None,
        known: Sequence[Measurement] = (),
    ) -> None:
        if dataset.units != shared.ledger.units:
            raise ValueError(
                f"The table is counted in units of 1 / {dataset.units} and the ledger in units of "
                f"1 / {shared.ledger.units}: the noise would be another one than was charged for."
            )
        self._dataset = dataset
        self._values = ValueCounts({}) if values is None else values
        self._shared = shared
        self._measurements = list(known)
        self._tables: dict[Query, np.ndarray] = {}  # of earlier choices: private, never noisy

    @property
    def domain(self) -> Domain:
        """The public domain of the table."""
        return self._dataset.domain

    @property
    def ledger(self) -> PrivacyLedger:
        """What was charged so far. Public."""
        return self._shared.ledger

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All that was measured so far, in order. Public."""
        return tuple(self._measurements)

    def _charge(self, squares: Mapping[Adjacency, int], deltas: Any = (), **said: Any) -> None:
        """Charges first: if the budget is short this raises, and no row has been read.

        ``deltas`` are those under each adjacency, by it, if they differ.
        """
        if deltas:
            said |= {"delta": deltas[self.ledger.adjacency], "deltas": tuple(deltas.items())}
        self._shared.charge(Charge(sensitivity_squared=tuple(squares.items()), **said))

    def _released(self, measurement: Measurement) -> Measurement:
        """The same measurement, among those that were made: at once, whatever happens next."""
        self._measurements.append(measurement)
        return measurement

    @sealed
    def measure(
        self,
        queries: Sequence[Query],
        mu_squared: Fraction,
        *,
        what: str,
        progress: Progress = silent,
    ) -> list[Measurement]:
        """Noisy answers to the queries, in one joint Gaussian release: one measurement each.

        Privacy: sqrt(mu_squared)-GDP. The answers together have squared L2 sensitivity at most
        D^2 = sum_q D_q^2, times the square of what all the rows of one person count as; a Gaussian
        of standard deviation D / mu on them is mu-GDP (Dong, Roth & Su 2022, Theorem 2), and so is
        its rounding to integers. Where rows are weighed, counts and noise are integers
        in units of 1 / units, and are divided by their number afterwards. Queries with D = 0 under
        the fit's adjacency ask for what that adjacency calls public: they are answered exactly and
        cost nothing, on their own.

        Raises ``PrivacyBudgetError`` before the table is read if the budget is short.
        """
        queries = tuple(queries)
        if not queries:
            return []
        mu_squared, ledger, units = Fraction(mu_squared), self.ledger, self.ledger.units
        squares = ledger.squares(
            lambda each: sum(_squared(query, each, ledger) for query in queries)
        )
        mechanism, stddev, own, spent = "exact (public)", 0.0, Fraction(0), Fraction(0)
        if square := squares[ledger.adjacency]:
            mechanism, own, spent = "Gaussian, rounded", SAMPLING_DELTA, mu_squared
            stddev = _usable_stddev(square, mu_squared, what)
        number = sum(math.prod(query.shape(self.domain)) for query in queries)
        self._charge(
            squares, mechanism=mechanism, what=what, num_queries=len(queries), num_values=number,
            mu_squared=spent, delta=own, stddev=stddev,
        )  # fmt: skip
        blocks = [queries] if self._dataset.in_one_pass else _blocks(queries, self.domain)
        return [
            self._released(
                Measurement(
                    query=query,
                    answer=_in_ones(_noisy(answer, stddev, self._shared.words), units),
                    stddev=stddev / units,
                    units=units,
                )
            )
            # The queries that were charged decide what is answered; the bar only looks on.
            for block, _ in zip(blocks, progress(range(len(blocks)), "measure"), strict=True)
            for query, answer in zip(block, answers(block, self._dataset), strict=True)
        ]

    @sealed
    def discover(
        self,
        mu_squared: Fraction,
        delta: Fraction,
        *,
        what: str,
        names: Sequence[str] | None = None,
    ) -> dict[str, list[tuple[Value | None, int]]]:
        """The values of columns that many rows have, sorted, and their noisy counts.

        Missing, ``None``, is the last one, whether many rows have it or not. ``names`` are the
        columns to ask for: by default all of them. A row may count as much as in fewer of these.
        Where counts are in parts of a unit, noise is drawn in parts, too.

        Privacy: sqrt(mu_squared)-GDP but for ``delta``, at most: ``privacy/thresholding.py`` has
        the proof. Values below the threshold, which the ledger names, leave no trace.

        Raises ``PrivacyBudgetError`` before the table is read if the budget is short.
        """
        names, ledger = self._values.names if names is None else tuple(names), self.ledger
        if not names:
            return {}
        mu_squared, parts = Fraction(mu_squared), self._values.parts
        most = len(names[: self._values.most])
        # A row that comes or goes changes the count of one value of a column, one that moves two.
        squares = ledger.squares(lambda each: most * each.cells)
        stddev = _usable_stddev(squares[ledger.adjacency], mu_squared, what, parts)
        threshold = threshold_for(stddev, delta, len(names), ledger)
        mechanism = "Gaussian, rounded, over a threshold"
        deltas = {
            each: SAMPLING_DELTA + thresholded_delta(stddev, threshold, len(names), own)
            for each, own in ((each, replace(ledger, adjacency=each)) for each in Adjacency)
        }
        self._charge(
            squares, deltas, mechanism=mechanism, what=what, num_queries=len(names), num_values=0,
            mu_squared=mu_squared, stddev=stddev, threshold=threshold,
        )  # fmt: skip
        found: dict[str, list[tuple[Value | None, int]]] = {}
        whole = ledger.units * parts
        for name in names:
            counted = self._values.counts(name)
            noisy = _noisy(counted.numbers, stddev * parts, self._shared.words)
            many = np.flatnonzero(noisy[:-1] >= threshold * parts).tolist()
            noisy = np.rint(noisy / whole).astype(np.int64) if whole > 1 else noisy
            found[name] = [
                *zip(counted.values[many].tolist(), noisy[many].tolist(), strict=True),
                (None, int(noisy[-1])),
            ]
        return found

    @sealed
    def select(self, scores: Sequence[ModelErrorQuery], mu_squared: Fraction, *, what: str) -> int:
        """The index of one score, the larger ones being likelier: the exponential mechanism.

        Index r has a probability proportional to exp(score_r / T), to within ``SAMPLING_DELTA``.

        Privacy: sqrt(mu_squared)-GDP. No score changes by more than D between neighbors, D being
        the largest sensitivity times what a person's rows count as, so the choice has range epsilon
        2 D / T;
        T is the smallest temperature at which ``mu_squared`` pays for that
        (``privacy/selection.py`` has the proof). A single score leaves nothing to choose: no
        record is read, nothing is charged.

        Raises ``PrivacyBudgetError`` before the table is read if the budget is short.
        """
        scores = tuple(scores)
        if not scores:
            raise ValueError("Nothing to select from: scores is empty.")
        for score in scores:
            score.shape(self.domain)  # a mismatch is public, and raised before anything is spent
        if len(scores) == 1:
            return 0
        # What is too large is refused before anything is spent.
        scores = [score.in_units(self.ledger.units) for score in scores]
        mu_squared, ledger = Fraction(mu_squared), self.ledger
        squares = ledger.squares(
            lambda each: max(score.l2_sensitivity_squared(each) for score in scores)
        )
        sensitivity = math.isqrt(squares[ledger.adjacency])
        temperature = 2 * sensitivity / Fraction(range_epsilon_of(mu_squared))
        self._charge(
            squares, mechanism="exponential", what=what, num_queries=len(scores), num_values=1,
            mu_squared=mu_squared, delta=SAMPLING_DELTA, temperature=temperature,
        )  # fmt: skip
        new = [table for table in {s.table: None for s in scores} if table not in self._tables]
        self._tables.update(zip(new, answers(new, self._dataset), strict=True))
        values = [score.of_counts(self._tables[score.table]) for score in scores]
        return exponential_choice(values, temperature, self._shared.words)

    @sealed
    def train(
        self,
        trainer: Trainer,
        mu_squared: Fraction,
        delta: Fraction,
        *,
        progress: Progress = silent,
    ) -> Measurement:
        """Weights that a trainer outside the core makes of the records: weaker than counts.

        It is handed a copy of all codes, which is wiped afterwards, and the randomness of the
        noise. Whoever stops it has the weights so far. What it fails of is not told.

        Privacy: sqrt(mu_squared)-GDP but for ``delta``, *if the trainer keeps its promise*, which
        the core cannot look into: mu-GDP but for a delta for one row more or less. m rows of a
        person are added or removed, or 2 m where they are replaced; each has mu / m or mu / (2 m),
        and its part of delta (``privacy/accounting.py``). The ledger has the one release that is no
        more private, of a sum to which a row adds 1.

        Raises ``PrivacyBudgetError`` before the table is read if the budget is short, and
        ``ValueError`` for records that are weighed, or whose codes are not at hand.
        """
        query, ledger = trainer.query, self.ledger
        what = query.describe()
        if ledger.units > 1 or self._dataset.in_one_pass:
            raise ValueError(
                "Gradients are not summed over rows that are weighed, nor on a cluster: leave out "
                "weighed=True and weight_column, or choose a method that counts, such as 'privpgd'."
            )
        squares = ledger.squares(query.l2_sensitivity_squared)
        most = {adjacency: math.isqrt(square) for adjacency, square in squares.items()}
        stddev = _usable_stddev(squares[ledger.adjacency], Fraction(mu_squared), what)
        mu = 1 / stddev
        of_one = delta_of_one(mu, float(delta) * (1 - 2**-40), most[ledger.adjacency])
        trainer.prepare(mu, of_one)
        deltas = {each: Fraction(delta_of_rows(mu, of_one, rows)) for each, rows in most.items()}
        number, mu_squared = math.prod(query.shape(self.domain)), Fraction(mu_squared)
        self._charge(
            squares, deltas, mechanism=TRAINED, what=what, num_queries=trainer.steps,
            num_values=number, mu_squared=mu_squared, stddev=stddev,
        )  # fmt: skip
        none = np.empty((0, len(self.domain)), dtype=np.uint8)
        codes = np.concatenate([none, *(block.T for block in self._dataset.blocks())])
        try:
            # The steps that were charged are taken; the bar only looks on.
            steps = _untold(trainer.train(codes, self._shared.words), what)
            for _ in zip(steps, progress(range(trainer.steps), "train"), strict=True):
                pass
        finally:
            codes[:] = 0
            weights = np.array(trainer.weights(), dtype=np.float64)
            trained = self._released(Measurement(query=query, answer=weights, stddev=stddev))
        return trained


def _untold(steps: Iterable[None], what: str) -> Iterator[None]:
    """The same steps; one that fails says so, and nothing of why."""
    try:
        yield from steps
    except Exception:  # noqa: BLE001 - its words could quote a record
        said = f"Training {what} failed. Its budget is spent: report this, please."
        raise RuntimeError(said) from None
