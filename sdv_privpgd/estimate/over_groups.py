"""What was measured over groups of codes, as tables whose codes are the groups. Public."""

from sdv_privpgd.domain import Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables


def over_groups(tables: ConsistentTables, grouping: Grouping) -> ConsistentTables:
    """The pairs that were measured over these groups, and the groups' own counts.

    The pairs are as they were measured: they need not agree with the marginals.
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
