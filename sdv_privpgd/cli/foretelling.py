"""Says what is public of a fit before anything is spent."""

from argparse import Namespace
from typing import TYPE_CHECKING

from sdv_privpgd.cli.documents import columns_of, declared_type
from sdv_privpgd.cli.saying import CommandError, in_options, say, spoken
from sdv_privpgd.columns.ids import on_repeated_ids, repeated_ids
from sdv_privpgd.columns.naming import on_names
from sdv_privpgd.columns.parsing import read_table
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.sources.source import Source

if TYPE_CHECKING:
    from sdv_privpgd.plugin.base import PrivateSynthesizer


def described(arguments: Namespace, synthesizer: "PrivateSynthesizer") -> str:
    """A table of the columns: their types, who says so, and what is known of their values."""
    says = "--metadata"
    if arguments.metadata is None:
        says = "dtype" if arguments.types == "dtypes" else "detected"
    sources, domain = synthesizer.value_sources(), synthesizer.public_domain or {}
    rows = [("column", "type", "type from", "values")]
    for name, facts in columns_of(synthesizer.get_metadata()).items():
        is_said = arguments.metadata is None and declared_type(domain.get(name)) is not None
        rows.append((name, facts["sdtype"], "--domain" if is_said else says, sources[name]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def say_before(synthesizer: "PrivateSynthesizer") -> None:
    """Says what the metadata and the settings alone make worth a look."""
    metadata = synthesizer.get_metadata()
    table = next(iter(metadata.tables.values()))
    keys = {table.primary_key, *table.alternate_keys}
    columns, domain = columns_of(metadata), synthesizer.public_domain or {}
    told = [each for each in repeated_ids(columns, keys) if each != synthesizer.people.column]
    ids = on_repeated_ids(told, synthesizer.people.max_rows)
    facts = read_table(columns, keys, domain)
    for sentence in [*ids, *on_names(facts)]:  # of dates that are days the fit itself speaks
        say(in_options(sentence))


@spoken()
def require_rows(arguments: Namespace, table: Source) -> None:
    """Raises ``CommandError`` for a table without rows, where their number is public."""
    if arguments.adjacency == Adjacency.REPLACE_ONE.value and not table.num_rows():
        raise CommandError(f"{arguments.table[0]} has no rows. Nothing was spent.")
