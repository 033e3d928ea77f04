"""How a table is opened that a description without SDV's metadata says all of."""

from collections.abc import Callable, Mapping
from typing import Any

from sdv_privpgd.columns.keys import on_patterns
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.counting import Bound


def opened(
    table: Any,
    description: Description,
    people: Bound,
    objections: Callable[[PrivateTable, Mapping[str, str | None]], list[str]] | None = None,
) -> PrivateTable:
    """The described columns of a table, with ``Settings.people.limit``. No cell is looked at.

    Raises:
        ValueError: If columns are not as described, in one sentence each, or if ``objections``
            to the opened table are raised.
    """
    private, errors = PrivateTable.opened(
        table,
        description.words,
        description.facts,
        has_others=True,
        people=people,
        visits=description.ordered,
    )
    if description.patterns and not errors:
        kept = private.dtypes_kept(description.columns, description.modelled, description.keys)
        errors = on_patterns(description.patterns, kept)
    if objections is not None:
        unique = {name: description.patterns.get(name) for name in description.keys}
        errors = errors or objections(private, unique)
    if errors:
        raise ValueError(" ".join(errors))
    return private
