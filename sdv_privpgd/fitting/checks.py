"""What settings and columns must have in common, checked before a row is read. Public."""

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.words import listed
from sdv_privpgd.columns.facts import without_domain
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods import pipeline

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
    if settings.people.column in names:
        raise ValueError(
            f"people.column={settings.people.column!r} is a modelled column: rows would name "
            "people. Make it an id in the metadata, or leave it out of the columns."
        )
    weights = settings.people.weight_column
    declared = None if weights is None else description.facts.get(weights)
    if declared is not None and getattr(declared, "number_format", "") is not None:
        raise ValueError(
            f"weight_column={weights!r} is declared, and not as plain numbers: weights are read as "
            "numbers. Declare it as Numerical(...) without a number_format, or leave it out of the "
            "columns, so that it is not modelled."
        )
    unknown = [name for name in getattr(settings.method, "importance", ()) if name not in names]
    if unknown:
        raise ValueError(
            f"target names {unknown!r}, which are no modelled columns: choose from {names!r}."
        )


def on_undeclared(settings: Settings, description: Description) -> list[str]:
    """A sentence on columns whose domain is found privately, if there are any."""
    unknown = without_domain(description.undeclared)
    said = (
        f"The ranges or categories of {listed([*map(repr, unknown)])} are not declared: "
        f"{settings.discovery_share:.3g} of the budget finds them privately. Declare them with "
        "public_domain={column: {...}} to save it, or pass public_metadata=True if the metadata "
        "has them from documentation and not from the data."
    )
    return [said] if unknown else []


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
