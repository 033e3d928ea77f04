"""What was measured over groups of codes, as tables whose codes are the groups. Public."""

from sdv_privpgd.domain import Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables


def over_groups(tables: ConsistentTables, grouping: Grouping) -> ConsistentTables:
    """The pairs that were measured over these groups, and the groups' own counts.

    The pairs are as they were measured: they need not agree with the marginals.

    >>> import numpy as np
    >>> from sdv_privpgd.estimate.noisy_tables import NoisyTable
    >>> grouping = Grouping.of({"a": np.array([0, 0, 1]), "b": np.array([0, 1])})
    >>> measured = {("a", "b"): NoisyTable(np.array([[40.0, 12.0], [9.0, 41.0]]), 4.0)}
    >>> tables = ConsistentTables(
    ...     total=100.0, one_way={"a": np.array([30.0, 20.0, 50.0]), "b": np.array([50.0, 50.0])},
    ...     tables={}, variances={}, grouped={grouping: measured},
    ... )
    >>> found = over_groups(tables, grouping)
    >>> found.one_way["a"], found.variances
    (array([50., 50.]), {('a', 'b'): 4.0})
    """
    measured = {
        clique: table for clique, table in tables.grouped[grouping].items() if len(clique) == 2
    }
    return ConsistentTables(
        total=tables.total,
        one_way={
            name: grouping.sums(tables.one_way[name], (name,)) for name in grouping.attributes
        },
        tables={clique: table.counts for clique, table in measured.items()},
        variances={clique: table.variance for clique, table in measured.items()},
        grouped={},
    )
