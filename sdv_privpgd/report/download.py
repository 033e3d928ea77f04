"""The noisy tables as files inside a page. Public."""

import gzip
import io
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

import pandas as pd

from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.tables import CONSISTENT, MEASURED, noisy_tables
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.report.assumed import CONFIDENT
from sdv_privpgd.report.fit import ColumnEstimate
from sdv_privpgd.report.page import Part, Section, Text

_MOST_CELLS = 40_000
"""Cells in a file of pairs: at most half a megabyte in a page."""


@dataclass(frozen=True)
class Download:
    """A link to a file that lies in the page. It is made when the page is written."""

    words: str
    name: str
    kind: str
    make: Callable[[], bytes]

    def html(self) -> str:
        """The link, with the size of the file."""
        content = self.make()
        size = (
            f"{len(content) / 1e3:,.0f} kB"
            if len(content) < 1e6
            else f"{len(content) / 1e6:.1f} MB"
        )
        return (
            f'<p class=download><a download="{escape(self.name)}" '
            f'href="data:{self.kind};base64,{b64encode(content).decode()}">'
            f"{escape(self.words)}</a> <span class=quiet>{escape(self.name)}, {size}</span></p>"
        )


def download_section(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> Section:
    """The estimates of all columns, and the noisy tables of columns and pairs, as files."""
    kinds = _kinds(release)
    parts: list[Part] = [
        Text(
            "The noisy tables are what was measured; all else on this page follows from them. They "
            "are as public as the synthetic rows."
        ),
        Download(
            "How many rows have each value of each column, with 95 % intervals",
            "columns.csv",
            "text/csv",
            lambda: columns_csv(schema, estimates),
        ),
    ]
    if kinds:
        parts.append(
            Download(
                f"The {' and the '.join(kinds)} tables of columns and pairs, packed with gzip",
                "noisy_tables.csv.gz",
                "application/gzip",
                lambda: tables_csv(release, schema, kinds),
            )
        )
    lacking = [kind for kind in (MEASURED, CONSISTENT) if kind not in kinds]
    said = (
        f"the {' and '.join(lacking)} tables of pairs, which are too large, and " if lacking else ""
    )
    parts.append(
        Text(
            f"Left out are {said}tables of three columns: the program's "
            'noisy_tables("tables.csv") writes everything.',
            quiet=True,
        )
    )
    return Section("Download the noisy tables", parts)


def columns_csv(schema: Schema, estimates: Mapping[str, ColumnEstimate]) -> bytes:
    """One line for each value: the estimated rows, the noise's standard deviation, the interval."""
    parts = []
    for column in schema.attributes:
        if column.name in estimates:
            own = estimates[column.name]
            stddev = own.variances**0.5
            low, high = own.counts - CONFIDENT * stddev, own.counts + CONFIDENT * stddev
            rows = {"column": column.name, "label": code_labels(column), "estimate": own.counts}
            ends = {"low": low.clip(min=0), "high": high.clip(min=0)}
            parts.append(pd.DataFrame({**rows, "stddev": stddev, **ends}))
    return _csv(pd.concat(parts, ignore_index=True))


def tables_csv(release: Release, schema: Schema, kinds: list[str]) -> bytes:
    """The noisy tables of at most two columns, as ``noisy_tables`` writes them, packed."""
    frame = noisy_tables(release, schema, kinds=kinds, most=2)
    # Without a time of packing: pages of the same answers are the same.
    return gzip.compress(_csv(frame), mtime=0)


def _csv(frame: pd.DataFrame) -> bytes:
    rounded = frame.round({"estimate": 2, "stddev": 4, "low": 2, "high": 2})
    text = io.StringIO()
    rounded.to_csv(text, index=False, float_format="%.12g", lineterminator="\n")
    return text.getvalue().encode()


def _kinds(release: Release) -> list[str]:
    """The kinds of tables whose cells are few enough together, those that were measured first."""
    tables = [
        each
        for each in release.measurements
        if isinstance(each.query, MarginalQuery | GroupedMarginalQuery)
        and len(each.query.clique) <= 2
    ]
    asked = [each.query.clique for each in tables if isinstance(each.query, MarginalQuery)]
    cells = {
        MEASURED: sum(each.answer.size for each in tables),
        CONSISTENT: sum(
            map(release.domain.size, {frozenset(clique): clique for clique in asked}.values())
        ),
    }
    found, left = [], _MOST_CELLS
    for kind, number in cells.items():
        if asked and number <= left:
            found.append(kind)
            left -= number
    return found
