"""The order of a person's rows in the file of a release. Public."""

from collections.abc import Mapping
from typing import Any

from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.fitting.settings import People


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
