"""Ids that are no keys: several rows may have the same, so a row is protected and not its person.

It follows from the metadata alone, so it is said before a fit as well as after it.
"""

from collections.abc import Collection, Mapping


def repeated_ids(columns: Mapping[str, Mapping], keys: Collection[str]) -> tuple[str, ...]:
    """The columns of ids that are no keys of the table. Public.

    >>> repeated_ids({"visit": {"sdtype": "id"}, "patient": {"sdtype": "id"}}, keys=["visit"])
    ('patient',)
    """
    ids = (name for name, facts in columns.items() if facts.get("sdtype") == "id")
    return tuple(name for name in ids if name not in keys)


def on_repeated_ids(names: Collection[str], rows_per_person: int) -> list[str]:
    """A sentence on ids that are no keys, unless a person is protected who has several rows.

    >>> on_repeated_ids(["patient"], rows_per_person=3)
    []
    """
    if not names or rows_per_person > 1:
        return []
    return [
        f"The ids {list(names)!r} are no keys of the table. If several rows may "
        "have the same, one of them is protected, not the person: set person_column, or "
        "rows_per_person if you know it."
    ]
