"""A question as a user writes it, checked and in words. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from sdv_privpgd.columns.column import Column
from sdv_privpgd.inference.conditions import Part, column_named, parts_of
from sdv_privpgd.inference.values import as_users, code_values

MOST_COLUMNS = 3
"""The columns that a question may name."""

_ARGUMENTS = {
    "count": (),
    "share": ("among",),
    "mean": ("of",),
    "sum": ("of",),
    "quantile": ("of", "q"),
    "table": ("of",),
}
"""What can be asked, and what each takes besides ``where``."""

_OF_VALUES = ("mean", "sum", "quantile")
"""What values beyond a range can change."""


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """The rows that may lie beyond a range that was found from noisy counts.

    Attributes:
        rows: How many there may be.
        below: Whether they may lie below it: no low end was declared.
        above: Whether they may lie above it: no high end was declared.
    """

    rows: float
    below: bool
    above: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A question that can be answered.

    Attributes:
        question: The question in words.
        columns: The columns that it is about.
        rows: For columns with a condition, the share of each code's rows that meets it.
        base: The same for the rows that a share is among.
        least: The least of ``rows`` and of ``base``, however rows are spread in cells.
        most: The most of them.
        q: Of a quantile.
        is_clipped: Whether values beyond a range that was found count as its ends.
        notes: What to keep in mind, a sentence each.
    """

    question: str
    columns: tuple[Column, ...]
    rows: Mapping[str, np.ndarray]
    base: Mapping[str, np.ndarray]
    least: tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]
    most: tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]
    q: float
    is_clipped: bool
    notes: tuple[str, ...]

    @property
    def is_cut(self) -> bool:
        """Whether it depends on how rows are spread in cells."""
        return any(
            (self.least[place][name] < self.most[place][name]).any()
            for place in (0, 1)
            for name in self.most[place]
        )


def asked_of(
    columns: Mapping[str, Column],
    what: str,
    *,
    of: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    among: Mapping[str, Any] | None = None,
    q: float | None = None,
    clipped: bool = False,
) -> Asked:
    """Checks a question about columns, given by name.

    Raises:
        ValueError: For what cannot be asked; the message says what can.
    """
    if what not in _ARGUMENTS:
        known = ", ".join(map(repr, _ARGUMENTS))
        raise ValueError(f"what must be one of {known}, got {what!r}.")
    for name, given in {"of": of, "among": among, "q": q}.items():
        if given is not None and name not in _ARGUMENTS[what]:
            raise ValueError(f"answer({what!r}) takes no {name}=, got {given!r}.")
        if given is None and name in _ARGUMENTS[what] and name != "among":
            raise ValueError(f"answer({what!r}) needs {name}=.")
    if clipped and what not in _OF_VALUES:
        raise ValueError(f"answer({what!r}) takes no clipped=: it is for {', '.join(_OF_VALUES)}.")
    if q is not None and not 0 < q < 1:
        raise ValueError(f"q must be above 0 and below 1, such as 0.5, got {q!r}.")
    events, base = parts_of(columns, where), parts_of(columns, among)
    if what == "share" and not events:
        raise ValueError("answer('share') needs where=, as in where={'ward': 'B'}.")
    for part in {**events, **base}.values():
        if what not in ("count", "share") and not part.weights.any():
            raise ValueError(
                f"The fit has put no rows where {part.words}, so there is no {what} of them. Count "
                "them: the interval says how many there may be."
            )
    about = _about(columns, what, of)
    involved = list(dict.fromkeys([*(column.name for column in about), *events, *base]))
    if len(involved) > MOST_COLUMNS:
        raise ValueError(
            f"A question may name {MOST_COLUMNS} columns, got {involved!r}. Count more in rows "
            "that were sampled."
        )
    return Asked(
        question=_in_words(what, about, events, base, q, clipped=clipped),
        columns=about,
        rows=_weights("weights", events, base),
        base=_weights("weights", base),
        least=(_weights("least", events, base), _weights("least", base)),
        most=(_weights("most", events, base), _weights("most", base)),
        q=0.5 if q is None else q,
        is_clipped=clipped,
        notes=_notes(what, about, {**events, **base}),
    )


def _about(
    columns: Mapping[str, Column], what: str, of: str | Sequence[str] | None
) -> tuple[Column, ...]:
    """The columns that a question is about."""
    if of is None:
        return ()
    if what != "table" and not isinstance(of, str):
        raise ValueError(f"answer({what!r}) is of one column, got of={of!r}.")
    names = [of] if isinstance(of, str) else list(of)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"of= must name columns, each once, got {of!r}.")
    about = tuple(column_named(columns, name) for name in names)
    for column in about:
        if what in ("mean", "sum") and column.sdtype != "numerical":
            raise ValueError(
                f"Column {column.name!r} is {column.sdtype}, which has no {what}. Ask for a share "
                "of its values, or, of dates, for a quantile."
            )
        if what == "quantile" and not column.is_ordered:
            raise ValueError(
                f"Column {column.name!r} is {column.sdtype}: its values have no order, so it has "
                "no quantiles."
            )
    return about


def _weights(which: str, *events: Mapping[str, Part]) -> dict[str, np.ndarray]:
    """The share of each code's rows that meets all conditions, by column."""
    named = dict.fromkeys(name for parts in events for name in parts)
    return {
        name: reduce(np.minimum, (getattr(parts[name], which) for parts in events if name in parts))
        for name in named
    }


def _in_words(
    what: str,
    about: Sequence[Column],
    events: Mapping[str, Part],
    base: Mapping[str, Part],
    q: float | None,
    *,
    clipped: bool,
) -> str:
    """The question in words, without an end."""
    text = {"table": "Counts", "quantile": f"Quantile {q}"}.get(what, what.capitalize())
    if about:
        text += " of " + " x ".join(column.name for column in about)
    if clipped:
        values = code_values(about[0])
        low, high = (as_users(about[0], end) for end in (values.lows.min(), values.highs.max()))
        text += f" clipped to {low} to {high}"
    for word, parts in {"where": events, "among rows where": base}.items():
        if parts:
            text += f" {word} {' and '.join(part.words for part in parts.values())}"
    return text


def _notes(what: str, about: Sequence[Column], parts: Mapping[str, Part]) -> tuple[str, ...]:
    """What the answer takes for granted beyond the noise."""
    cut = [repr(name) for name, part in parts.items() if part.is_cut]
    notes = []
    if cut:
        hidden = (
            "the intervals hold for any spread, and the estimate may be far off"
            if what in ("count", "share")
            else "no interval covers what that hides"
        )
        notes.append(
            f"A condition cuts cells of {' and '.join(cut)}: rows were taken to be spread in them "
            f"as in sampled rows; {hidden}."
        )
    if what in ("mean", "sum") and not code_values(about[0]).are_single:
        notes.append(
            f"Values of {about[0].name!r} were taken to be spread in their cells as in sampled "
            "rows, and no interval covers what that hides."
        )
    return tuple(notes)
