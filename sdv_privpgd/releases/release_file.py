"""The file of a release: a zip archive of JSON and of arrays of whole numbers. Public.

``release.json`` has

- ``format``, which is "sdv-privpgd release", and ``version``: 1, or 2 where there is an ``order``;
- ``holder``, ``date``, ``program`` and ``strategy``, as text, and ``num_bins``;
- ``columns``: what is declared of each column, in order, in SDV's words with its ``sdtype``. The
  codes of the tables follow from it: the cells of a column in order, and missing last;
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
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.base.files import MOST_TEXT, Members, array_bytes, read_archive, write_archive
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.fitting.settings import People
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import (
    CountQuery,
    DependenceQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    Query,
)
from sdv_privpgd.releases.agreement import require_agreement

COUNT, TABLE, GROUPED = "number of rows", "table", "table over groups"
DEPENDENCE = "dependence"


def query_facts(query: Query) -> dict[str, Any]:
    """What a query asks for, in lists, numbers and text.

    Raises ``ValueError`` for a query that no release file has.
    """
    if isinstance(query, CountQuery):
        return {"asks": COUNT}
    if isinstance(query, MarginalQuery):
        return {"asks": TABLE, "columns": list(query.clique)}
    if isinstance(query, DependenceQuery):
        return {"asks": DEPENDENCE, "columns": list(query.clique)}
    if isinstance(query, GroupedMarginalQuery):
        groups = {name: query.grouping[name].tolist() for name in query.clique}
        others = {
            name: query.grouping[name].tolist()
            for name in query.grouping.attributes
            if name not in groups
        }
        return {
            "asks": GROUPED,
            "columns": list(query.clique),
            "groups": {name: (groups | others)[name] for name in query.grouping.attributes},
        }
    raise ValueError(f"A release file cannot hold an answer on {query.describe()}.")


def query_of(facts: Any, domain: Domain) -> Query:
    """The query that facts describe. Raises ``ValueError`` where it is none of this domain."""
    asks = facts.get("asks") if isinstance(facts, Mapping) else None
    if asks == COUNT:
        return CountQuery()
    if asks not in (TABLE, GROUPED, DEPENDENCE):
        raise ValueError(f"A release file asks for {COUNT!r} or a table, and not {asks!r}.")
    clique = facts.get("columns")
    if not isinstance(clique, list) or not all(isinstance(name, str) for name in clique):
        raise ValueError("A table of a release file needs the names of its columns.")
    if not clique or len(set(clique)) < len(clique):
        raise ValueError(f"A table of a release file needs different columns, got {clique!r}.")
    query: Query = (DependenceQuery if asks == DEPENDENCE else MarginalQuery)(tuple(clique))
    if asks == GROUPED:
        query = GroupedMarginalQuery(tuple(clique), _grouping(facts.get("groups")))
    query.shape(domain)
    return query


def _grouping(groups: Any) -> Grouping:
    is_whole = isinstance(groups, Mapping) and all(
        isinstance(own, list) and all(type(group) is int for group in own)
        for own in groups.values()
    )
    if not is_whole:
        raise ValueError("A table over groups needs the group of each code, a whole number.")
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


@dataclass(frozen=True, kw_only=True)
class ReadRelease:
    """What a file holds.

    Attributes:
        facts: Holder, columns, num_bins, strategy, date, program and visits, by name.
        ledger: What the answers cost.
        answers: The noisy answers.
    """

    facts: Mapping[str, Any]
    ledger: PrivacyLedger
    answers: tuple[Measurement, ...]


def write_release(
    path: Path, facts: Mapping[str, Any], ledger: PrivacyLedger, answers: Sequence[Measurement]
) -> Path:
    """Writes a release, and returns where it lies. The same release gives the same bytes.

    Raises:
        ValueError: Unless the path ends in ``.zip``.
    """
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
    arrays = [array_bytes(_in_units(each.answer, ledger.units)) for each in answers]
    write_archive(path, {_FACTS: text.encode(), **dict(zip(names, arrays, strict=True))})
    return path


def read_release(
    path: Path, schema_of: Callable[[Mapping[str, Mapping], int | None, Visits | None], Schema]
) -> ReadRelease:
    """The release in a file.

    Args:
        path: Of the file.
        schema_of: Makes the schema of declared columns, a number of cells, and an order of rows.

    Raises:
        DamagedFileError: For a file that cannot be read or is no release, or whose answers are not
            those of its ledger.
    """
    return read_archive(path, "release file", lambda members: _read(members, schema_of))


def _read(members: Members, schema_of: Callable[..., Schema]) -> ReadRelease:
    whole = json.loads(members.bytes(_FACTS, MOST_TEXT))
    if not isinstance(whole, Mapping) or whole.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}.")
    if whole.get("version") != (ORDERED if "order" in whole else VERSION):
        raise ValueError(
            f"it has version {whole.get('version')!r} of the format, and {VERSION} can be read, or "
            f"{ORDERED} with an order of rows: install the version of sdv-privpgd that wrote it."
        )
    texts = ("holder", "date", "program", "strategy")
    if not all(isinstance(whole.get(name), str) for name in texts):
        raise ValueError(f"it needs {', '.join(texts)}, as text.")
    columns, bins = whole["columns"], whole["num_bins"]
    if not isinstance(columns, Mapping) or not isinstance(bins, int | None):
        raise ValueError("it needs columns, by name, and num_bins.")
    visits = order_of(whole["order"]) if "order" in whole else None
    domain = schema_of(columns, bins, visits).domain()
    ledger = read_ledger(json.dumps(whole["ledger"]))
    answers = tuple(_answer(members, each, domain, ledger.units) for each in whole["answers"])
    _require_paid(ledger, answers)
    require_agreement(domain, answers)
    facts = {name: whole[name] for name in (*texts, "columns", "num_bins")} | {"visits": visits}
    return ReadRelease(facts=facts, ledger=ledger, answers=answers)


def _in_units(answer: np.ndarray, units: int) -> np.ndarray:
    return np.ascontiguousarray(np.rint(answer * units) if units > 1 else answer, "<i8")


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
