"""GUM keeps a table of rows and changes some of them until they have the measured tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.consistency import Possible, consistent_tables, emptied, possible_tables
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import PRIVSYN, Engine, Model, Particles, default_number


@dataclass(frozen=True, kw_only=True)
class GUM(Engine):
    """Overwrites rows of cells that have too many of them, by turns for all measured tables.

    Zhang et al. 2021 (PrivSyn), the gradually updating method. The tables are made to agree first
    (``estimate.consistency``), and rows start with independent attributes. A sweep visits every
    table, the one that fits worst first. Cells with too few rows gain at most ``alpha`` times the
    rows that they have, and empty ones ``alpha`` times what they lack; cells with too many lose as
    many rows altogether. A gained row is a copy of another row of its cell, or in every other sweep
    half of them, and for all empty cells, the old row with the table's attributes replaced.
    ``alpha`` falls from 1 by factors of 0.84. It sees noisy answers only, so all it does is
    post-processing.

    Ours differs in five ways. Values without support get no rows, and tables inside others no turn.
    Attributes of a single table take part like others, where the authors append them at the end.
    Numbers of rows are rounded at random, so that small differences are worked off as well.
    ``alpha`` falls after every third sweep of 50, where theirs falls after every 20: at rates near
    1 many overlapping tables undo each other. And theirs copies all gained rows in every other
    sweep: with half in each, pairs and triples of eight tables are 6 % nearer.

    It takes the tables over codes of any strategy, whatever their degree, and reads no tables over
    groups. Its time grows with rows, tables and sweeps alone. It reaches its tables, but copies
    make some rows frequent that are rare in the private table, and pairs dependent that nobody
    measured; ``ParticleGradientDescent`` moves single codes instead.

    Attributes:
        num_rows: The rows of the table that is kept. ``None`` takes between 5,000 and 100,000, a
            part of the estimated number of rows. Rows can be sampled in any number.
        sweeps: How often each table is visited; 50 is the authors' number.
        possible: For some cliques, the cells that can hold rows at all. The targets have nothing in
            the others; a few rows may lie there.
        seed: The seed of all random choices here. No private noise depends on it.
    """

    num_rows: int | None = None
    sweeps: int = 50
    possible: Possible = field(default_factory=dict, compare=False)
    seed: int = 0

    title = "Rows were changed step by step until they had the noisy counts"
    citation = PRIVSYN
    quick = {"num_rows": 300, "sweeps": 2}  # noqa: RUF012
    takes_groups = False

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "num_rows")
        check_fields(self, check_integer, "sweeps", least=0)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Particles:
        """Rows that have the measured tables, as a cloud of equally likely points.

        ``warm_start`` is drawn from in place of the independent start.
        """
        rng = np.random.default_rng(self.seed)
        agreed = consistent_tables(domain, measurements)
        if self.possible:
            agreed = emptied(agreed, self.possible)
        targets = possible_tables(agreed, self.possible)
        number = self.num_rows or default_number(agreed.total, len(targets))
        if warm_start is not None:
            codes = warm_start.sample(number, self.seed).T.copy()
        else:
            codes = independent_codes(domain, agreed.one_way, number, rng)
        tables = [
            _CliqueTarget(
                domain.axes(clique), counts.shape, counts.ravel() * (number / counts.sum())
            )
            for clique, counts in targets.items()
            if counts.any() and not any(set(clique) < set(other) for other in targets)
        ]
        for sweep in progress(range(self.sweeps), "fit"):
            alpha = 0.84 ** (sweep * 16 // self.sweeps)
            codes = codes[:, rng.permutation(number)]  # so that the first rows are any rows
            errors = [table.error(codes) for table in tables]
            for place in np.argsort(-np.array(errors), kind="stable"):
                tables[place].update(codes, alpha, rng)
        return Particles(domain=domain, codes=codes.T)


def independent_codes(
    domain: Domain, one_way: Mapping[str, np.ndarray], number: int, rng: np.random.Generator
) -> np.ndarray:
    """Codes of shape (attribute, row) with these 1-way marginals, each shuffled on its own."""
    found = np.empty((len(domain), number), dtype=np.int64)
    for own, name in zip(found, domain.attributes, strict=True):
        shares = one_way[name] / one_way[name].sum()
        counts = rounded_at_random(shares * number, number, rng)
        own[:] = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return found


def rounded_at_random(numbers: np.ndarray, total: int, rng: np.random.Generator) -> np.ndarray:
    """Whole numbers that sum to ``total``; each is a scaled number, rounded up or down at random.

    ``numbers`` are at least 0, and one is positive where ``total`` is.
    """
    ends = np.cumsum(numbers)
    if not total:
        return np.zeros(len(numbers), dtype=np.int64)
    ends = np.floor(ends * (total / ends[-1]) + rng.random()).astype(np.int64)
    # The end of the last positive number may have been rounded in its last bit.
    ends[np.flatnonzero(numbers)[-1] :] = total
    return np.diff(np.minimum(ends, total), prepend=0)


@dataclass(frozen=True)
class _CliqueTarget:
    """A clique's target in rows, flat."""

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    target: np.ndarray

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """The cell of each row."""
        places = tuple(codes[axis] for axis in self.axes)
        return np.asarray(np.ravel_multi_index(places, self.shape))

    def error(self, codes: np.ndarray) -> float:
        """The L1 distance of the rows' table from the target."""
        held = np.bincount(self.cells(codes), minlength=self.target.size)
        return float(np.abs(held - self.target).sum())

    def update(self, codes: np.ndarray, alpha: float, rng: np.random.Generator) -> None:
        """Overwrites rows of cells that have too many."""
        cells = self.cells(codes)
        held = np.bincount(cells, minlength=self.target.size)
        gains, losses = changes(held, self.target, alpha)
        number = int(gains.sum())
        if not number:
            return
        gained = rounded_at_random(gains, number, rng)
        lost = rounded_at_random(losses, number, rng)
        copies = rng.binomial(gained, 0.5) * (held > 0)
        # A stable sort of 16 bits takes linear time.
        small = np.uint16 if self.target.size <= 2**16 else np.int64
        order = np.argsort(cells.astype(small), kind="stable")
        turns = rng.random(held.size)
        rows = rng.permutation(_taken(order, held, lost, turns))
        sources = _taken(order, held, copies, turns)
        codes[:, rows[: len(sources)]] = codes[:, sources]
        rest = np.repeat(np.arange(held.size), gained - copies)
        for axis, own in zip(self.axes, np.unravel_index(rest, self.shape), strict=True):
            codes[axis, rows[len(sources) :]] = own


def changes(held: np.ndarray, target: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """How many rows each cell gains and how many it loses, which sum to the same.

    Args:
        held: The rows of each cell.
        target: The rows that it should have, with the same sum.
        alpha: The largest rate of gain, from 0 to 1.
    """
    lacking = np.maximum(target - held, 0.0)
    gains = np.where(held > 0, np.minimum(lacking, alpha * held), alpha * lacking)
    beyond = np.maximum(held - target, 0.0)
    total = min(float(gains.sum()), float(beyond.sum()))
    # The rate beta at which cells lose min(beyond, beta * held) rows: as many as others gain.
    shares = beyond / np.maximum(held, 1)
    order = np.argsort(shares, kind="stable")
    settled = np.concatenate([[0.0], np.cumsum(beyond[order])[:-1]])
    others = np.cumsum(held[order][::-1])[::-1]
    reached = settled + shares[order] * others  # of losses, where beta is a cell's share
    first = min(int(np.searchsorted(reached, total)), len(order) - 1)
    beta = (total - settled[first]) / max(float(others[first]), 1.0)
    return gains, np.minimum(beyond, beta * held)


def _taken(
    order: np.ndarray, held: np.ndarray, wanted: np.ndarray, turns: np.ndarray
) -> np.ndarray:
    """So many different rows of each cell, in turn from a random one of its rows on.

    ``order`` has the rows sorted by cell, those of a cell in random order.
    """
    cells = np.repeat(np.arange(held.size), wanted)
    nth = np.arange(len(cells)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    begins = np.cumsum(held) - held
    own = held[cells]
    return order[begins[cells] + ((turns[cells] * own).astype(np.int64) + nth) % own]
