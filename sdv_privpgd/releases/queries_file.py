"""Queries as facts that JSON holds, and back. Public."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.privacy.queries import (
    CountQuery,
    DependenceQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Query,
)

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
