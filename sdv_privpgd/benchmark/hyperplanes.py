"""Random linear thresholds as one question: rows on both sides of hyperplanes, for each label."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset, Records
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.synthesize.engine import Engine


@dataclass(frozen=True, kw_only=True)
class HyperplaneQuery:
    """How many rows with each value of a label lie on either side of random hyperplanes.

    Codes of ordered attributes lie in the middle of equal cells of [0, 1], and missing, the last
    code of an attribute in ``nullable``, at 1/2. A hyperplane has a normal vector over all of them
    and goes through a point of the cube that is drawn uniformly, so it cuts the cube. Scores are
    sums of whole numbers that depend on the domain and the seed alone: public.

    Attributes:
        features: The ordered attributes.
        nullable: Those whose last code is missing.
        label: The attribute by whose codes rows are counted apart, if any. It is no feature.
        number: The number of hyperplanes.
        seed: Of the hyperplanes. No noise depends on it.

    >>> query = HyperplaneQuery(features=("age", "pay"), label="ill", number=3, seed=0)
    >>> domain = Domain(("age", "pay", "ill"), (4, 5, 2))
    >>> query.shape(domain), query.l2_sensitivity_squared(Adjacency.REPLACE_ONE)
    ((3, 2, 2), 6)
    """

    features: tuple[str, ...]
    nullable: tuple[str, ...] = ()
    label: str | None = None
    number: int
    seed: int

    UNITS = 1 << 12
    """Units of the range of a hyperplane's scores."""

    def __post_init__(self) -> None:
        names = [*self.features, *([] if self.label is None else [self.label])]
        if not self.features or len(set(names)) < len(names):
            raise ValueError(f"There must be features, each name once, got {names!r}.")
        if self.number < 1:
            raise ValueError(f"number must be at least 1, got {self.number!r}.")

    def describe(self) -> str:
        """What is asked, in words for the ledger. Public."""
        by = "" if self.label is None else f" by {self.label}"
        return f"{self.number} linear thresholds over {len(self.features)} columns{by}"

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """Of each hyperplane 1 when a record is added or removed, 2 when it changes its cell."""
        return self.number * (2 if adjacency is Adjacency.REPLACE_ONE else 1)

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """(hyperplane, code of the label, side); one code where there is no label."""
        return self.number, 1 if self.label is None else domain.size((self.label,)), 2

    def scores(self, domain: Domain) -> tuple[list[np.ndarray], np.ndarray]:
        """Each feature's parts of the scores, (hyperplane, code), and the cuts. Public.

        A row's score is the sum of its parts, all of which are at least 0. It is on the second side
        where its score is above the cut.
        """
        generator = np.random.default_rng(self.seed)
        shape = self.number, len(self.features)
        normals, points = generator.standard_normal(shape), generator.random(shape)
        exact = []
        for axis, (name, size) in enumerate(
            zip(self.features, domain.shape(self.features), strict=True)
        ):
            cells = max(size - (name in self.nullable), 1)
            places = (np.arange(size) + 0.5) / cells
            places[cells:] = 0.5
            exact.append(normals[:, axis, None] * (places - points[:, axis, None]))
        lows = [part.min(axis=1, keepdims=True) for part in exact]
        spans = np.sum([np.ptp(part, axis=1, keepdims=True) for part in exact], axis=0)
        units = np.maximum(spans, 1e-12) / self.UNITS
        parts = [
            np.rint((part - low) / units).astype(np.int64)
            for part, low in zip(exact, lows, strict=True)
        ]
        # A cut may lie far beyond the scores of a feature of one code.
        cuts = np.floor(-np.sum(lows, axis=0) / units)[:, 0]
        return parts, np.clip(cuts, -1, 2 * self.UNITS).astype(np.int64)

    def answer(self, dataset: Records) -> np.ndarray:
        """The exact answer, int64. Private."""
        found = np.zeros(self.shape(dataset.domain), dtype=np.int64)
        parts, cuts = self.scores(dataset.domain)
        if self.label is None:
            names, whole = self.features, np.array([dataset.num_records()])
        else:
            names, whole = (*self.features, self.label), dataset.counts((self.label,))
        for number, cut in enumerate(cuts.tolist()):
            own = [part[number] for part in parts]
            width = sum(int(part.max()) for part in own) + 1
            if self.label is not None:
                own.append(width * np.arange(len(whole)))
            for code in range(len(whole)):
                values = np.zeros(width * len(whole), dtype=np.int64)
                values[code * width : code * width + min(cut + 1, width)] = 1
                (found[number, code, 0],) = dataset.lookup_sum(names, own, values)
        found[..., 1] = whole - found[..., 0]
        return found

    def of_codes(self, domain: Domain, codes: np.ndarray) -> np.ndarray:
        """The answer on rows of codes, shape (row, attribute). As private as these.

        >>> query = HyperplaneQuery(features=("age",), number=2, seed=0)
        >>> query.of_codes(Domain(("age",), (4,)), np.array([[0], [1], [3]])).sum(axis=(1, 2))
        array([3, 3])
        """
        return self.answer(Dataset(domain, codes))


@dataclass(frozen=True, kw_only=True)
class WithHyperplanes(AllPairs):
    """Asks for hyperplanes, and then for what ``AllPairs`` asks.

    Attributes:
        query: The hyperplanes.
        share: Their part of the whole budget.

    >>> query = HyperplaneQuery(features=("age",), number=2, seed=0)
    >>> WithHyperplanes(query=query).share
    Fraction(1, 10)
    """

    query: HyperplaneQuery
    share: Fraction = Fraction(1, 10)

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """The hyperplanes' measurement, then those of the tables."""
        asked = curator.measure(
            [self.query], curator.ledger.budget * self.share, what=self.query.describe()
        )
        return [*asked, *super().run(curator, engine, progress=progress)]
