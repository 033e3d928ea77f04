"""The order of a person's rows in the file of a release. Public."""

from collections.abc import Mapping
from typing import Any

from sdv_privpgd.columns.visits import Visits


def order_facts(visits: Visits) -> dict[str, Any]:
    """What a file says of an order."""
    return {
        "person_column": visits.person,
        "rows_per_person": visits.most,
        "sequence_by": visits.by,
        "previous": list(visits.previous),
        "per_person": list(visits.per_person),
    }


def order_of(facts: Any) -> Visits:
    """The order that a file says. Raises ``ValueError`` for anything else."""
    names = ("person_column", "sequence_by")
    lists = ("previous", "per_person")
    if (
        not isinstance(facts, Mapping)
        or not all(isinstance(facts.get(name), str) for name in names)
        or not all(isinstance(facts.get(name), list) for name in lists)
        or type(facts.get("rows_per_person")) is not int
    ):
        raise ValueError(
            f"its order needs {' and '.join(names)} as text, rows_per_person, and lists of "
            f"{' and '.join(lists)}."
        )
    return Visits(
        person=facts["person_column"],
        most=facts["rows_per_person"],
        by=facts["sequence_by"],
        previous=tuple(facts["previous"]),
        per_person=tuple(facts["per_person"]),
    )
