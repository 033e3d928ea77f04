"""What settings and columns must have in common, checked before a row is read. Public."""

from sdv_privpgd import pipeline
from sdv_privpgd.domain import Domain
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.settings import Settings

_FEW, _SEVERAL = 4, 16
"""Codes that are foreseen of a column without a domain, and at most of one whose range is looked
into: a fit is refused early only if it would be refused for more of them as well."""


def check(settings: Settings, description: Description) -> None:
    """Raises for what no fit can ask of these columns, before a row is read."""
    description.require_possible()
    names = list(description.measured)
    codes = Domain(tuple(names), (1,) * len(names))
    pipeline.require_room(settings.method.statistics(codes))
    settings.method.require_settings(codes)
    if settings.person_column in names:
        raise ValueError(
            f"person_column={settings.person_column!r} is a modelled column: rows would name "
            "people. Make it an id in the metadata, or leave it out of the columns."
        )
    if settings.weigh_people and description.visits is not None:
        raise ValueError(
            "weigh_people and sequence_by cannot go together: persons are sampled from how their "
            "rows follow each other, of which each counts as one. Leave one of them out."
        )
    unknown = [name for name in getattr(settings.method, "importance", ()) if name not in names]
    if unknown:
        raise ValueError(
            f"target and importance name {unknown!r}, which are no modelled columns: choose from "
            f"{names!r}."
        )


def check_match(settings: Settings, description: Description) -> None:
    """Raises ``MatchError`` where the method cannot model what it will ask.

    What is not known of a column yet is taken to be small: a fit looks again once it has found it.
    """
    known = {column.name: column.size for column in description.declared_schema.columns}
    looked_into = description.undeclared
    sizes = {
        name: min(known.get(name, _FEW), _SEVERAL) if name in looked_into else known[name]
        for name in description.measured
        if name in known or name in looked_into
    }
    if sizes:
        domain = Domain(tuple(sizes), tuple(sizes.values()))
        settings.method.require(domain)
