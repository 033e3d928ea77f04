"""Values that the noise hides: which they are, and how many rows may have them. Public."""

from collections.abc import Mapping
from dataclasses import dataclass

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.inference.intervals import Total
from sdv_privpgd.pipeline import Release
from sdv_privpgd.report.fit import ColumnEstimate
from sdv_privpgd.report.page import Part, Section, Text, long_table

_LEVEL = 0.95

_FEWER = 0.5
"""Synthetic rows have lost a value if they have it less often than this part of the least that is
likely."""


@dataclass(frozen=True, kw_only=True)
class HiddenValue:
    """A value that noise hides, or that the synthetic rows have far too rarely. Public.

    Attributes:
        column: Its column.
        label: The value, or the values that share a code.
        synthetic: Rows that have it among as many synthetic rows as there are rows.
        estimate: The unbiased estimate of how many rows have it.
        low: The least of the interval that holds that number in 95 of 100 cases.
        high: The most.
    """

    column: str
    label: str
    synthetic: float
    estimate: float
    low: float
    high: float

    @property
    def is_lost(self) -> bool:
        """Whether rows surely have it, and the synthetic rows far fewer."""
        return self.low > 0 and self.synthetic < _FEWER * self.low


def hidden_values(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> list[HiddenValue]:
    """The values of all categories that may have no rows, or that the synthetic rows have lost.

    Lost ones are first, then those that most rows may have.
    """
    total = estimate_total(release.domain, release.measurements).value
    found = []
    for column in schema.columns:
        if not isinstance(column.cells, Categories) or column.name not in estimates:
            continue
        own, labels = estimates[column.name], code_labels(column)
        synthetic = release.model.marginal((column.name,)) * total
        for code in range(column.num_values):
            count = Total(
                float(own.counts[code]),
                float(own.variances[code]),
                num_rows=total,
                low=0.0,
                high=max(total, 0.0),
            )
            low, high = count.interval("table", _LEVEL)
            value = HiddenValue(
                column=column.name,
                label=labels[code],
                synthetic=float(synthetic[code]),
                estimate=count.value,
                low=low,
                high=high,
            )
            if low <= 0 or value.is_lost:
                found.append(value)
    return sorted(found, key=lambda value: (not value.is_lost, -value.high))


def hidden_section(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> Section:
    """The values that noise hides, with the intervals of how many rows have them."""
    values, heading = hidden_values(release, schema, estimates), "Values that the noise hides"
    if not values:
        said = "There are none: all values of all categories stand out from the noise."
        return Section(heading, [Text(said)])
    columns = len({value.column for value in values})
    lost = sum(value.is_lost for value in values)
    sentences = (
        f"{_number(len(values), 'value')} of {_number(columns, 'column')} cannot be told from "
        "values that no row has, or the synthetic rows have lost them. That the synthetic rows "
        "have none or few of a value does not say that nobody has it. Each interval holds the true "
        "number of rows in 95 of 100 cases; up to so many rows may have the value."
    )
    if lost:
        sentences += (
            f" {_number(lost, 'value')}, listed first, surely {'has' if lost == 1 else 'have'} "
            "rows, but the synthetic rows have too few: use the interval."
        )
    parts: list[Part] = [
        Text(sentences),
        *long_table(
            "Values, those that most rows may have first",
            ("value", "column", "synthetic rows", "estimate, rows", "interval, rows"),
            [
                (
                    value.label,
                    value.column,
                    f"{value.synthetic:,.0f}",
                    f"{value.estimate:,.0f}".replace("-", "−"),
                    f"{value.low:,.0f} to {value.high:,.0f}",
                )
                for value in values
            ],
            texts=2,
        ),
    ]
    return Section(heading, parts)


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
