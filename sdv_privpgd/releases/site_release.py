"""What one site hands over: noisy answers about its table, what they cost, and its file. Public.

The file is a zip archive of JSON and of arrays of whole numbers. ``release.json`` has

- ``format``, which is "sdv-privpgd release", and ``version``: 1, or 2 where there is an ``order``;
- ``site``, ``date``, ``program`` and ``strategy``, as text, and ``num_bins``;
- ``columns``: what is declared of each column, in order, in SDV's words with its ``sdtype``. The
  codes of the tables follow from it: the cells of a column in order, and missing last;
- ``dtypes``: those of the table that no cell chose, by column, as files of models have them. Rows
  come back in those that all sites have;
- ``order``, if a person's rows are in one: ``column``, ``max_rows``, ``sequence_index``,
  ``previous`` and ``context_columns``, as ``People`` takes them. The columns it adds come last;
- ``ledger``: every charge, as ``PrivacyLedger.to_json`` writes it;
- ``answers``: for each what it ``asks`` (the number of rows, a table of counts over ``columns``, or
  such a table over ``groups`` of codes), the ``stddev`` of the noise in each number, and the name
  of the ``file`` with the numbers.

Each of these files is a NumPy array (``.npy``) of 64-bit integers with one axis a column. Where the
ledger says that people are weighed, these are in its ``units`` of a count of one. Nothing
that is read is run, no pickle is accepted, and no array may be larger than its columns say. Answers
that are more precise than the ledger says, or more than it has paid for, are refused, and so are
tables that cannot be about the rows of the others. The file ends in the digest of all of it.

Answers agree if they may be of the same rows. What a set of attributes is counted as follows from
every table that holds the set. Of one table it has noise of a known variance, independent from cell
to cell, and so has the average of what the others say. So the squared differences over their
variances sum up to a chi-square. Counts that were altered after they were measured are far out,
whatever digest was written. Who alters all tables alike is not found.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Clique, Domain, FieldsAlone, Grouping
from sdv_privpgd.base.files import MOST_TEXT, Members, array_bytes, read_archive, write_archive
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.drafting.files import plain_domain
from sdv_privpgd.estimate.noisy_tables import (
    EXACT,
    NoisyTable,
    Total,
    estimate_total,
    fresh_tables,
    grouped_tables,
    margin_estimates,
)
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.model_file import node_of, of_node
from sdv_privpgd.fitting.options import require_sdtypes
from sdv_privpgd.fitting.settings import People
from sdv_privpgd.methods.pipeline import Answers
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import (
    CountQuery,
    DependenceQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    QuadrantQuery,
    Query,
    TableQuery,
)
from sdv_privpgd.report.measures import PublicFacts
from sdv_privpgd.report.privacy import privacy_report
from sdv_privpgd.report.warnings import Rank, warnings_of


def described(
    columns: Mapping[str, Mapping], num_bins: int | None, visits: Visits | None = None
) -> Description:
    """The columns by what is declared of them alone, in words that files can hold.

    No dtype of a table has a say: the same words give the same codes everywhere. Raises
    ``PublicDomainError`` if columns lack their range or categories.
    """
    description = Description.of(
        *require_sdtypes(plain_words(columns)), num_bins=num_bins, discovers=False, visits=visits
    )
    _ = description.schema  # raises where a domain is not known
    description.require_possible()
    return description


def plain_words(columns: Mapping[str, Mapping]) -> dict[str, dict]:
    """Declarations of columns with their sdtypes, as files can hold them."""
    kinds, others = require_sdtypes(columns)
    return plain_domain({name: {**kinds[name], **others[name]} for name in kinds})


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured(FieldsAlone):
    """Noisy answers about one site's table, ready to be handed over. Public, files included.

    Attributes:
        site: Whose table it is: a name that no other site has.
        columns: What is declared of each column, in order, in SDV's words with its sdtype.
        num_bins: Cells of a number or date that does not name its own; ``None`` for 32.
        ledger: What the answers cost.
        answers: The noisy answers, in the order in which they were asked for.
        strategy: What chose the questions, as Python writes it.
        date: When it was measured.
        program: What measured it.
        visits: The order of a person's rows, if each was told of the one before.
        dtypes: Those of the table that no cell chose. They have no say in what is counted.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, measure
    >>> table = pd.DataFrame({"ill": [True, False] * 500})
    >>> measured = measure(table, {"ill": Boolean()}, epsilon=1.0, site="North")
    >>> measured.num_rows, measured.ledger.spent() <= 1.0
    (1000, True)
    """

    site: str
    columns: Mapping[str, Mapping[str, Any]]
    num_bins: int | None
    ledger: PrivacyLedger
    answers: tuple[Measurement, ...]
    strategy: str
    date: str
    program: str
    visits: Visits | None = None
    dtypes: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def description(self) -> Description:
        """The columns by what is declared of them. Of its dates the site was told before."""
        own = described(self.columns, self.num_bins, self.visits)
        return replace(own, timeless=frozenset(self.columns))

    @property
    def schema(self) -> Schema:
        """What the codes mean that the answers are about."""
        return self.description.attributes

    @property
    def domain(self) -> Domain:
        """The domain of the codes."""
        return self.schema.domain()

    @property
    def num_rows(self) -> int:
        """The number of rows: noisy where it is private."""
        return round(estimate_total(self.domain, self.answers).value)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is worth a look before it is handed over, a sentence each, of columns and delta.

        How much the noise hides is said of all sites together, once they are combined.
        """
        facts = PublicFacts(
            schema=self.schema,
            release=Answers(
                domain=self.domain, ledger=self.ledger, measurements=self.answers, statistics=()
            ),
            ledger=self.ledger,
            declared=self.description.facts,
            added=() if self.visits is None else self.visits.added,
        )
        return warnings_of(facts, but=[Rank.NOISE])

    @cached_property
    def digest(self) -> str:
        """64 hexadecimal digits that no other release has, whatever its site is called."""
        found = hashlib.sha256(json.dumps(self.columns, sort_keys=True).encode())
        if self.visits is not None:
            found.update(json.dumps(order_facts(self.visits)).encode())
        for answer in self.answers:
            found.update(json.dumps([query_facts(answer.query), answer.stddev]).encode())
            kind = "<i8" if answer.answer.dtype.kind == "i" else "<f8"
            found.update(answer.answer.astype(kind).tobytes())
        return found.hexdigest()

    def privacy_report(self) -> str:
        """What was spent on the site's table, on what and under which adjacency, as text."""
        return privacy_report(self.ledger)

    def save(self, path: str | Path) -> Path:
        """Writes the release to a ``.zip`` file, and returns where it lies.

        The file has JSON, which people can read, and arrays of whole numbers. Nothing in it is
        run when it is read. ``releases/site_release.py`` says what is in it, and ``load`` reads it.
        """
        facts = {name: getattr(self, name) for name in ("site", "num_bins", "date", "program")}
        facts |= {"columns": dict(self.columns), "strategy": self.strategy}
        facts["dtypes"] = {name: node_of(dtype) for name, dtype in self.dtypes.items()}
        if self.visits is not None:
            facts["order"] = order_facts(self.visits)
        return write_release(Path(path), facts, self.ledger, self.answers)

    @classmethod
    def load(cls, path: str | Path) -> "Measured":
        """The release in a file that ``save`` has written.

        Raises:
            ValueError: For any other file, and for answers that the ledger in it does not pay for.
        """
        return cls(**read_archive(Path(path), "release file", _read))

    def __repr__(self) -> str:
        rows = f"{self.num_rows:,} rows, {len(self.columns)} columns"
        return f"Measured({self.site!r}: {rows}, epsilon {self.ledger.spent():.4g})"


@dataclass(frozen=True, kw_only=True)
class Site:
    """One of the sites of a combined table, as its release has it. Public."""

    name: str
    ledger: PrivacyLedger
    rows: Total  # how many rows it has, noisy where that is private
    strategy: str
    date: str

    @classmethod
    def of(cls, measured: Measured) -> "Site":
        """The site of a release."""
        own = {name: getattr(measured, name) for name in ("ledger", "strategy", "date")}
        rows = estimate_total(measured.domain, measured.answers)
        return cls(name=measured.site, rows=rows, **own)

    def to_dict(self) -> dict[str, Any]:
        """What a report's numbers have of it."""
        return {
            "site": self.name,
            "num_rows": self.rows.value,
            "epsilon_spent": self.ledger.spent(),
            "date": self.date,
            "strategy": self.strategy,
            "ledger": self.ledger.to_dict(),
        }


COUNT, TABLE, GROUPED = "number of rows", "table", "table over groups"
_KINDS = {
    COUNT: CountQuery,
    TABLE: MarginalQuery,
    GROUPED: GroupedMarginalQuery,
    "dependence": DependenceQuery,
    "quadrants": QuadrantQuery,
}
"""What a file calls the queries that it can hold."""


def query_facts(query: Query) -> dict[str, Any]:
    """What a query asks for, in lists, numbers and text.

    Raises ``ValueError`` for a query that no release file has.
    """
    asks = {kind: name for name, kind in _KINDS.items()}.get(type(query))
    if asks is None:
        raise ValueError(f"A release file cannot hold an answer on {query.describe()}.")
    found: dict[str, Any] = {"asks": asks}
    if isinstance(query, TableQuery):
        found["columns"] = list(query.clique)
        if (grouping := query.grouping) is not None:
            found["groups"] = {name: grouping[name].tolist() for name in grouping.attributes}
    return found


def query_of(facts: Any, domain: Domain) -> Query:
    """The query that facts describe. Raises ``ValueError`` where it is none of this domain."""
    asks = facts.get("asks") if isinstance(facts, Mapping) else None
    if asks == COUNT:
        return CountQuery()
    if asks not in list(_KINDS):
        raise ValueError(f"A release file asks for {COUNT!r} or a table, and not {asks!r}.")
    clique = facts.get("columns")
    if not isinstance(clique, list) or not all(isinstance(name, str) for name in clique):
        raise ValueError("A table of a release file needs the names of its columns.")
    if not clique or len(set(clique)) < len(clique):
        raise ValueError(f"A table of a release file needs different columns, got {clique!r}.")
    kind: Any = _KINDS[asks]
    is_grouped = kind in (GroupedMarginalQuery, QuadrantQuery)
    groups = [_grouping(facts.get("groups"))] if is_grouped else []
    query = kind(tuple(clique), *groups)
    query.shape(domain)
    return query


def _grouping(groups: Any) -> Grouping:
    is_whole = isinstance(groups, Mapping) and all(
        isinstance(own, list) and all(type(group) is int and group < len(own) for group in own)
        for own in groups.values()
    )
    if not is_whole:
        raise ValueError(
            "A table over groups needs the group of each code, a whole number below that of codes."
        )
    return Grouping.of({str(name): np.array(own) for name, own in groups.items()})


def order_facts(visits: Visits) -> dict[str, Any]:
    """What a file says of an order, as ``People`` takes it."""
    return {
        "column": visits.person,
        "max_rows": visits.most,
        "sequence_index": visits.by,
        "previous": list(visits.previous),
        "context_columns": list(visits.context_columns),
    }


def order_of(facts: Any) -> Visits:
    """The order that a file says. Raises ``ValueError`` for anything else."""
    names = ("column", "max_rows", "sequence_index", "previous", "context_columns")
    if not isinstance(facts, Mapping) or set(facts) != set(names):
        raise ValueError(f"its order needs {list(names)!r} and nothing else.")
    visits = People(**facts).visits
    if visits is None:
        raise ValueError("its order names no column of people, or none that puts rows in order.")
    return visits


FORMAT, VERSION, ORDERED = "sdv-privpgd release", 1, 2
"""The version of a file with an order is one that older programs refuse: they would not know what
its codes mean."""

_FACTS = "release.json"


def write_release(
    path: Path, facts: Mapping[str, Any], ledger: PrivacyLedger, answers: Sequence[Measurement]
) -> Path:
    """Writes a release, and returns where it lies. The same release gives the same bytes."""
    if path.suffix.lower() != ".zip":
        raise ValueError(f"A release is kept in a file that ends in .zip, got {str(path)!r}.")
    names = [f"answers/{place:05}.npy" for place in range(len(answers))]
    whole = {
        "format": FORMAT,
        "version": ORDERED if "order" in facts else VERSION,
        **facts,
        "ledger": ledger.to_dict(),
        "answers": [
            {**query_facts(each.query), "stddev": each.stddev, "file": name}
            for each, name in zip(answers, names, strict=True)
        ],
    }
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
    units = ledger.units  # whole numbers as they are: as floats the largest would be rounded
    counts = (np.rint(e.answer * units) if units > 1 else e.answer for e in answers)
    arrays = [array_bytes(np.ascontiguousarray(each, "<i8")) for each in counts]
    write_archive(path, {_FACTS: text.encode(), **dict(zip(names, arrays, strict=True))})
    return path


def _read(members: Members) -> dict[str, Any]:
    """The fields of a release. Raises for one whose answers are not those of its ledger."""
    whole = json.loads(members.bytes(_FACTS, MOST_TEXT))
    if not isinstance(whole, Mapping) or whole.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}.")
    if whole.get("version") != (ORDERED if "order" in whole else VERSION):
        raise ValueError(
            f"it has version {whole.get('version')!r} of the format, and {VERSION} can be read, or "
            f"{ORDERED} with an order of rows: install the version of sdv-privpgd that wrote it."
        )
    texts = ("site", "date", "program", "strategy")
    if not all(isinstance(whole.get(name), str) for name in texts):
        raise ValueError(f"it needs {', '.join(texts)}, as text.")
    columns, bins = whole["columns"], whole["num_bins"]
    if not isinstance(columns, Mapping) or not isinstance(bins, int | None):
        raise ValueError("it needs columns, by name, and num_bins.")
    visits = order_of(whole["order"]) if "order" in whole else None
    domain = described(columns, bins, visits).attributes.domain()
    ledger = read_ledger(json.dumps(whole["ledger"]))
    answers = tuple(_answer(members, each, domain, ledger.units) for each in whole["answers"])
    _require_paid(ledger, answers)
    require_agreement(domain, answers)
    facts = {name: whole[name] for name in (*texts, "columns", "num_bins")}
    dtypes = {name: of_node(node) for name, node in whole.get("dtypes", {}).items()}
    return {**facts, "visits": visits, "dtypes": dtypes, "ledger": ledger, "answers": answers}


def _answer(members: Members, facts: Mapping[str, Any], domain: Domain, units: int) -> Measurement:
    most_cells = 2**28  # of one table: 2 GiB of counts
    query, stddev = query_of(facts, domain), facts["stddev"]
    if isinstance(stddev, bool) or not isinstance(stddev, int | float):
        raise ValueError(f"a standard deviation is a number, got {stddev!r}.")
    if not 0 <= stddev < math.inf:
        raise ValueError(f"a standard deviation is not negative and finite, got {stddev!r}.")
    shape = query.shape(domain)
    if math.prod(shape) > most_cells:
        raise ValueError(f"the {query.describe()} has too many cells.")
    found = members.array(str(facts["file"]), 8 * math.prod(shape))
    if found.dtype != np.dtype("<i8") or found.shape != shape:
        raise ValueError(
            f"the {query.describe()} needs 64-bit integers of shape {shape}, got {found.dtype} of "
            f"shape {found.shape}."
        )
    answer = found.astype(np.int64)
    answer = answer / units if units > 1 else answer
    return Measurement(query=query, answer=answer, stddev=float(stddev), units=units)


def _require_paid(ledger: PrivacyLedger, answers: Sequence[Measurement]) -> None:
    """Raises ``ValueError`` for answers that no charge of the ledger has paid for."""
    paid: Counter[float] = Counter()
    for charge in ledger.charges:
        if charge.temperature is None and charge.threshold is None:
            paid[charge.stddev / ledger.units] += charge.num_queries
    given = Counter(answer.stddev for answer in answers)
    public = all(isinstance(each.query, CountQuery) for each in answers if not each.stddev)
    if given - paid or not public:
        raise ValueError("it has answers that its ledger has not paid for.")


class Contrast(NamedTuple):
    """A margin of a table, and what others say of the same."""

    clique: Clique
    margin: NoisyTable
    others: np.ndarray
    variance: float | np.ndarray

    @property
    def distances(self) -> np.ndarray:
        """How far they are apart, in rows."""
        return np.abs(self.margin.counts - self.others)

    @property
    def errors(self) -> np.ndarray:
        """How far they are apart, in standard deviations of their noise."""
        return self.distances / np.sqrt(self.margin.variance + self.variance)

    @property
    def chi_square(self) -> float:
        """The sum of squares of the errors."""
        return float(np.square(self.errors).sum())

    @property
    def score(self) -> float:
        """It in standard deviations, about."""
        freedom = self.errors.size
        return (self.chi_square - freedom) / math.sqrt(2 * freedom)


def require_agreement(domain: Domain, answers: Sequence[Measurement]) -> None:
    """Raises ``ValueError`` for a table that cannot be about the rows of the others.

    Noise alone makes a release with a thousand pairs look so once in 300 million.
    """
    chance = 1e-12  # of noise alone, for one table and one set of its attributes
    lowest = 12.0  # standard deviations below 0 that noise does not reach: 2e-33
    for each in answers:
        may_be_negative = isinstance(each.query, QuadrantQuery)
        if not may_be_negative and each.answer.min(initial=0) < -lowest * _stddev(each):
            raise ValueError(f"the {each.query.describe()} is far below 0: it was altered.")
    worst = max(beside_others(domain, answers), key=lambda each: each.score, default=None)
    if worst is not None and chdtrc(worst.errors.size, worst.chi_square) < chance:
        name = f"table of {' x '.join(worst.clique)}" if worst.clique else "number of rows"
        raise ValueError(
            f"its {name} is not of the rows that its other tables count: one of them was altered "
            "after it was measured."
        )


def beside_others(domain: Domain, answers: Sequence[Measurement]) -> Iterator[Contrast]:
    """Each margin of each table, over groups as well, beside what other tables say of it."""
    answers = [replace(each, stddev=_stddev(each)) for each in answers]
    codes, grouped = fresh_tables(domain, answers), grouped_tables(domain, answers)
    for each in answers:
        if isinstance(each.query, CountQuery):
            codes[()] = NoisyTable(each.answer.astype(np.float64).reshape(()), each.stddev**2)
    yield from _beside_each_other(codes)
    for grouping, tables in grouped.items():
        yield from _beside_each_other(tables)
        yield from _beside_codes(grouping, tables, codes)
    for grouping, tables in grouped_tables(domain, answers, QuadrantQuery).items():
        for clique, known in margin_estimates(codes, 2).items():
            if clique in tables:
                sides = grouping.sums(known.counts, clique)
                others = QuadrantQuery(clique, grouping).of_counts(sides)
                yield Contrast(clique, tables[clique], others, known.variance * known.counts.size)


def _stddev(answer: Measurement) -> float:
    """At least that of the noise, rounded: where it is nearly always 0, one is no surprise."""
    return math.hypot(answer.stddev, 1 / math.sqrt(12) / answer.units) if answer.stddev else EXACT


def _beside_each_other(tables: Mapping[Clique, NoisyTable]) -> Iterator[Contrast]:
    """Each table beside all others over codes of the same kind."""
    held: dict[Clique, list[tuple[Clique, NoisyTable]]] = {}
    for clique, table in tables.items():
        for degree in range(len(clique) + 1):
            for subset in combinations(clique, degree):
                held.setdefault(subset, []).append((clique, table.margin(clique, subset)))
    for margins in held.values():
        precision = sum(1 / margin.variance for _, margin in margins)
        whole = sum(margin.counts / margin.variance for _, margin in margins)
        for clique, margin in margins if len(margins) > 1 else ():
            left = precision - 1 / margin.variance
            others = (whole - margin.counts / margin.variance) / left
            yield Contrast(clique, margin, others, 1 / left)


def _beside_codes(
    grouping: Grouping, tables: Mapping[Clique, NoisyTable], codes: Mapping[Clique, NoisyTable]
) -> Iterator[Contrast]:
    """Each table over groups beside the sums of what tables over codes say."""
    for degree in (1, 2):
        known = margin_estimates(codes, degree)
        for clique, table in tables.items():
            for subset in known.keys() & set(combinations(clique, degree)):
                counts, variance = known[subset].counts, known[subset].variance
                sizes = grouping.sums(np.ones_like(counts), subset)
                margin = table.margin(clique, subset)
                yield Contrast(clique, margin, grouping.sums(counts, subset), variance * sizes)
