"""What synthetic rows are good for beside fresh real ones: numbers, lines, a section. Not private.

A fifth of the real rows, or rows that were held out, stand for what is to come. The synthetic rows
and as many other real rows are compared with them. The real ones show what a perfect synthesizer
of a table of this size would have.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sdv_privpgd.metrics.reading import Described
from sdv_privpgd.metrics.usefulness import usefulness
from sdv_privpgd.report.page import Section, Table, Text
from sdv_privpgd.words import listed

if TYPE_CHECKING:
    import pandas as pd

    Columns = Mapping[str, "pd.Series"]

Useful = Mapping[str, Mapping[str, float]]
"""The scores of ``"synthetic"`` and of ``"real"`` rows; empty where there are too few rows."""

_TEST_SHARE = 0.2

_FEWEST, _MOST = 50, 50_000
"""Rows of either table: with fewer nothing is said, and of more so many are drawn at random."""

_MODELS = {"": "gradient boosting", "linear_": "a linear model"}

_LEARNED = {
    "auroc": "area under the ROC curve of {}: 1 is best, 0.5 is chance",
    "f1": "macro F1 of {}: 1 is best",
    "accuracy": "accuracy of {}: 1 is best",
    "r2": "R² of {}: 1 is best, 0 is the mean",
}

_MEANINGS = {
    **{
        f"{prefix}{name}": meaning.format(model)
        for prefix, model in _MODELS.items()
        for name, meaning in _LEARNED.items()
    },
    "pmse": "how well boosting tells these rows from real ones: 0 is not at all, 1 always",
    "tv2": "mean distance of the tables of two columns: 0 is best",
    "tv3": "mean distance of the tables of three columns: 0 is best",
    "tail": "how far the smallest and largest 1 % of the numbers lie off: 0 is best",
}


def useful_scores(
    columns: Sequence[Described],
    real: "Columns",
    synthetic: "Columns",
    *,
    label: str | None = None,
    held_out: "Columns | None" = None,
) -> Useful:
    """The scores of ``metrics.usefulness`` for the synthetic rows and for fresh real ones.

    Args:
        columns: How the columns are read.
        real: The real rows.
        synthetic: The synthetic rows.
        label: A column that models learn to predict, if any.
        held_out: Real rows to compare with. Without them, a random fifth of ``real`` is taken, and
            the fresh real rows are the others.

    Raises:
        ValueError: If the label is no column.
    """
    names = [column.name for column in columns]
    if label is not None and label not in names:
        raise ValueError(f"label must be one of the columns {listed(names, 12)}, got {label!r}.")
    generator = np.random.default_rng(0)
    if held_out is None:
        order = generator.permutation(_size(real))
        cut = round(_TEST_SHARE * len(order))
        real, held_out = _taken(real, order[cut:]), _taken(real, order[:cut])
    fewest = min(_size(real), _size(synthetic), _size(held_out) / _TEST_SHARE)
    if fewest < _FEWEST:
        return {}
    size = min(_size(real), _size(synthetic), _MOST)
    real, synthetic, held_out = (
        _drawn(each, most, generator)
        for each, most in ((real, size), (synthetic, size), (held_out, _MOST))
    )
    return {
        arm: usefulness(columns, rows, held_out, label)
        for arm, rows in (("synthetic", synthetic), ("real", real))
    }


def useful_section(found: Useful) -> Section:
    """The table of the scores."""
    if not found:
        return Section("What the rows are good for", [Text(f"Fewer than {_FEWEST} rows.")])
    ours, fresh = found["synthetic"], found["real"]
    more = "Models learn with their defaults."
    if not any(name.removeprefix("linear_") in _LEARNED for name in fresh):
        more = "Name a label to see what models learn."
    rows = [
        (name, _MEANINGS[name], *(f"{each.get(name, np.nan):.3g}" for each in (ours, fresh)))
        for name in fresh
    ]
    return Section(
        "What the rows are good for",
        [
            Text(
                "Both kinds of rows are compared with real rows that were set aside. What fresh "
                f"real rows reach is the best that rows of a table of this size could. {more}"
            ),
            Table(
                "In the values that a user gets",
                ("score", "what it measures", "synthetic rows", "fresh real rows"),
                rows,
                texts=2,
            ),
        ],
    )


def useful_lines(found: Useful) -> list[str]:
    """The same as lines of text."""
    if not found:
        return []
    lines = ["", "What the rows are good for:", f"  {'synthetic':>12}  {'fresh real':>12}"]
    for name, fresh in found["real"].items():
        numbers = f"  {found['synthetic'].get(name, np.nan):>12.3g}  {fresh:>12.3g}"
        lines.append(f"{numbers}  {_MEANINGS[name].partition(':')[0]}")
    return lines


def _size(columns: "Columns") -> int:
    return len(next(iter(columns.values())))


def _taken(columns: "Columns", places: np.ndarray) -> "Columns":
    return {name: series.iloc[places] for name, series in columns.items()}


def _drawn(columns: "Columns", most: int, generator: np.random.Generator) -> "Columns":
    size = _size(columns)
    if size <= most:
        return columns
    return _taken(columns, np.sort(generator.choice(size, size=most, replace=False)))
