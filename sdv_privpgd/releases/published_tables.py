"""The door for tables that somebody has published: rows are made of them, without any microdata."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import shown
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.base.words import listed
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, Measurement
from sdv_privpgd.releases.combination import ModelledTables, modelled
from sdv_privpgd.releases.site_release import beside_others, described, plain_words
from sdv_privpgd.releases.tidy_tables import (
    HowPublished,
    Source,
    TidyTable,
    answers_of,
    tidy_tables,
    without_missing,
)
from sdv_privpgd.report.about import facts_in_words
from sdv_privpgd.report.page import Report, Section, Text, long_table
from sdv_privpgd.synthesize.engine import Engine

_NO_LEDGER = PrivacyLedger(
    adjacency=Adjacency.REPLACE_ONE, epsilon=0.0, delta=1e-5, budget=Fraction(0)
)
"""Nothing was asked of any table here. No report shows it."""


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """What was read of one table: its columns, none for the number of rows, and its cells. Public.

    The standard deviations of the noise in a cell, as published, are from ``least`` to ``largest``.
    """

    clique: Clique
    num_cells: int
    least: float
    largest: float

    @classmethod
    def of(cls, table: TidyTable) -> "PublishedTable":
        """What is said of a table."""
        least, largest = float(table.stddevs.min()), float(table.stddevs.max())
        return cls(clique=table.clique, num_cells=len(table.stddevs), least=least, largest=largest)

    @property
    def name(self) -> str:
        """Its columns in words."""
        return " x ".join(self.clique) or "number of rows"

    @property
    def noise(self) -> str:
        """The standard deviations in words."""
        if not self.largest:
            return "none: exact"
        if math.isclose(self.least, self.largest, rel_tol=0.01):
            return f"{self.largest:,.4g}"
        return f"{self.least:,.4g} to {self.largest:,.4g}"


@dataclass(frozen=True, kw_only=True, repr=False)
class PublishedTables(ModelledTables):
    """A model of tables that somebody has published. All that it shows follows from these.

    Attributes:
        publisher: Whose tables these are.
        tables: What was read, table by table.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean
    >>> rows = {"column_1": ["ill"] * 2, "label_1": [False, True], "estimate": [605, 395]}
    >>> tables = pd.DataFrame({**rows, "stddev": 2.0})
    >>> made = from_tables(tables, {"ill": Boolean()}, publisher="the census", engine="pgm")
    >>> made.num_rows, made.sample(3).shape
    (1000, (3, 1))
    """

    publisher: str
    tables: tuple[PublishedTable, ...]

    def _promise(self) -> dict[str, Any]:
        return {"publisher": self.publisher}

    def _report(self) -> Report:
        about = self.about(f"tables of {self.publisher}")
        declared = [
            (name, facts.sdtype, facts_in_words(words_of(facts)))
            for name, facts in about.declared.items()
        ]
        tables = [(each.name, f"{each.num_cells:,}", each.noise) for each in self.tables]
        header = ("table", "cells", "noise sd per cell")
        guarantee = [
            *map(Text, self._whose_guarantee()),
            *long_table("The published tables", header, tables),
        ]
        columns = long_table("Columns", ("column", "kind", "declared"), declared, texts=3)
        return self._reported(
            about,
            title=f"Synthetic rows of tables that {self.publisher} has published",
            lead=[],
            numbers={
                "published by": self.publisher,
                "tables": f"{len(tables):,}",
            },
            sections=[
                Section("Whose guarantee it is", guarantee),
                Section("What was declared of the columns", columns, folded=True),
            ],
            facts={
                "report": "published",
                "publisher": self.publisher,
                "tables": [
                    {
                        "columns": list(each.clique),
                        "cells": each.num_cells,
                        "least_stddev": each.least,
                        "largest_stddev": each.largest,
                    }
                    for each in self.tables
                ],
            },
        )

    def _whose_guarantee(self) -> list[str]:
        """What can be said of privacy, a sentence or two each."""
        exact = [each.name for each in self.tables if each.clique and not each.largest]
        said = [
            f"The rows were made of {len(self.tables):,} tables that {self.publisher} has "
            "published, and of nothing else. No row of people was read.",
            "Whether these tables protect people, by which method and how well, is for "
            f"{self.publisher} to say. This program has no ledger of it and adds no promise. "
            "Whatever guarantee of differential privacy the tables have, the rows have as well, "
            "because they are computed from the tables alone.",
            "The standard deviations are those that were given with the tables. They are taken as "
            "true, and noise as independent from cell to cell; intervals rest on that.",
        ]
        if exact:
            said.append(
                f"Exact, as far as is said: {listed(exact, 4)}. Nothing hides a person in a small "
                "count of an exact table, and rows that follow it do not either."
            )
        return said


def from_tables(
    tables: Source | Sequence[Source],
    columns: Mapping[str, Mapping],
    *,
    publisher: str,
    suppressed_below: int | None = None,
    rounded_to: int | None = None,
    total: int | None = None,
    num_bins: int | None = None,
    engine: Engine | str = "particles",
    seed: int = 0,
    progress: Progress = silent,
) -> PublishedTables:
    """Fits a model to tables of counts that somebody has published. No row of people is read.

    Privacy: post-processing of what is public already. Whether the tables protect people, and how,
    is for their publisher to say.

    Each row of ``tables`` is a cell: ``column_1`` and ``label_1``, ``column_2`` and so on name it,
    ``estimate`` is its count, and ``stddev`` (or ``variance``) the noise in it, 0 where it is
    exact. That is the form of ``noisy_tables``; rows whose ``kind`` is not "measured" follow from
    others and are left out, and ``round`` tells tables apart that were measured several times. A
    row without a column is the number of rows. Noise is taken to be independent from cell to cell.
    If it differs between the cells of a table, the model takes its mean variance, and intervals the
    largest.

    Exact tables are seldom published as they are. A count that was suppressed is taken for any
    number below ``suppressed_below``, and one that was rounded has the noise of its rounding:
    ``stddev`` may be left out then. Per cents are recognised by their sign, or because a table
    without noise adds up to 100 and has decimals; shares because a table of decimals adds up to 1.
    Of tables that count other numbers of rows than the rest, the shares are used, and
    ``warnings`` says so.

    Args:
        tables: Such rows, the path of a ``.parquet`` or ``.csv`` file with them, or several.
        columns: What is public of each column, as ``fit_table`` takes it, without gaps. The cells
            of numbers and dates must be those of the tables: ``cut_points`` says where they begin.
        publisher: Who has published the tables, for the report.
        suppressed_below: Smaller counts were not told: such cells are absent, empty, ``"*"`` or
            ``"<10"``. With 1, absent cells are empty ones.
        rounded_to: Counts are multiples of it.
        total: The number of rows that tables in per cents or shares are of.
        num_bins: Cells of numbers and dates that do not name their own.
        engine: What makes rows of the tables, as ``fit_table`` takes it.
        seed: Of an engine that is named and of the rows.
        progress: Told of the steps.

    Raises:
        PublicDomainError: Where a column's domain is not declared.
        ValueError: For labels that name no cell, cells that are missing or there twice, columns
            that are not declared or that no table has, noise that is not said, and per cents of
            nobody knows how many rows.

    >>> import pandas as pd
    >>> from sdv_privpgd import Categorical, Numerical
    >>> age = Numerical(0, 99, decimal_places=0, cut_points=[18, 65])
    >>> tables = pd.DataFrame({
    ...     "column_1": "age", "label_1": ["0-17", "18-64", "65-99"] * 2,
    ...     "column_2": "sex", "label_2": ["F"] * 3 + ["M"] * 3,
    ...     "estimate": [110, 305, 120, 115, 290, 60], "stddev": 5.0,
    ... })
    >>> made = from_tables(
    ...     tables, {"age": age, "sex": Categorical(["F", "M"])}, publisher="the census",
    ...     engine="pgm",
    ... )
    >>> made.num_rows, len(made.sample(10))
    (1000, 10)
    """
    if not isinstance(publisher, str) or not publisher.strip():
        raise ValueError(
            f"publisher must name who has published the tables, got {shown(publisher)}."
        )
    is_one = isinstance(tables, str | Path | pd.DataFrame)
    how = HowPublished(suppressed_below=suppressed_below, rounded_to=rounded_to, total=total)
    found = tidy_tables([tables] if is_one else tables, how)  # pyright: ignore
    if not found:
        raise ValueError("There are no tables: the rows are empty, or none of them is 'measured'.")
    words = without_missing(plain_words(columns), found)
    description = described(words, num_bins)
    found, mean = answers_of(found, description.schema)
    largest = [
        replace(each, stddev=float(table.stddevs.max()))
        for each, table in zip(mean, found, strict=True)
    ]
    domain = description.schema.domain()
    scales, unlike = _scales(domain, mean)
    mean, largest = (
        [
            replace(each, answer=each.answer * scale, stddev=each.stddev * scale)
            for each, scale in zip(answers, scales, strict=True)
        ]
        for answers in (mean, largest)
    )
    weighed = _weighed(mean)
    fitted, own = modelled(description, _NO_LEDGER, weighed, engine, seed, progress, said=largest)
    return PublishedTables(
        fitted=fitted,
        engine=own,
        seed=seed,
        publisher=publisher.strip(),
        tables=tuple(PublishedTable.of(each) for each in found),
        warnings=(*_on_noise(found), *unlike, *_on_margins(domain, largest)),
        date=date.today().isoformat(),
    )


def _weighed(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The same answers; exact tables beside noisy ones count as much as an engine can bear.

    An engine that descends would never reach the noisy tables if others weighed infinitely more.
    """
    # An exact table counts, in a fit, as one with so much less noise than the least noisy other.
    more_precise = 10.0
    noisy = [each.stddev for each in measurements if each.stddev]
    least = min(noisy, default=0.0) / more_precise
    return [
        each if each.stddev or isinstance(each.query, CountQuery) else replace(each, stddev=least)
        for each in measurements
    ]


def _on_noise(tables: Sequence[TidyTable]) -> list[str]:
    uneven = [table.name for table in tables if not table.is_even]
    said = (
        f"The noise differs between the cells of {listed(uneven, 3)}: the model takes the mean "
        "variance of each table, and intervals the largest, so that they are wide rather than "
        "wrong."
    )
    return [said] if uneven else []


def _differ(distances: Any, noise: Any, total: float) -> Any:
    """Whether counts differ by many standard deviations of their noise, and by a part of all."""
    far, part = 6.0, 0.005
    return distances > np.maximum(far * noise, part * total)


def _scales(domain: Domain, measurements: Sequence[Measurement]) -> tuple[list[float], list[str]]:
    """What makes all tables count the same rows, 1 for those that do, and a sentence on others."""
    total, scales, unlike = estimate_total(domain, measurements), [], []
    for each in measurements:
        own = float(each.answer.sum())
        noise = math.hypot(each.stddev * math.sqrt(each.answer.size), total.stddev)
        is_unlike = _differ(abs(own - total.value), noise, total.value)
        scales.append(total.value / own if is_unlike and own > 0 else 1.0)
        if is_unlike:
            name = each.query.describe().removeprefix("marginal of ").removesuffix(" in groups")
            unlike.append(f"{name} {np.rint(own):,.0f}")
    said = (
        f"The tables do not count the same rows: together they say {total.value:,.0f}, but "
        f"{listed(unlike, 3)}. Check whether they are about the same people, and whether cells "
        "were suppressed. Of these tables the shares are used."
    )
    return scales, [said] if unlike else []


def _on_margins(domain: Domain, largest: Sequence[Measurement]) -> list[str]:
    """A sentence if tables say other counts of what they share, beyond their ``largest`` noise."""
    total = estimate_total(domain, largest).value
    apart = dict.fromkeys(
        " x ".join(each.clique)
        for each in beside_others(domain, largest)
        if _differ(each.distances, np.sqrt(each.margin.variance + each.variance), total).any()
    )
    said = (
        "Tables say other counts of columns that they share than the others do, and noise does not "
        f"explain it: {listed([*apart], 4)}. Check whether they are about the same people. What "
        "fits all of them is a compromise, and no interval covers that."
    )
    return [said] if apart else []
