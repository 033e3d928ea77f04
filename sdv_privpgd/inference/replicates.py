"""What repetitions of a fit say of a statistic's error, in numbers and in a sentence. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.inference.intervals import Interval, deviations

METHODS = ("normal", "pivot")
"""How an interval is made of replicates."""

MODEL_BASED = (
    "It is model-based: it takes the fitted model for the truth, so it knows sampling and noise, "
    "but neither what the model never learned nor the bias of a model that noise has shrunken."
)


@dataclass(frozen=True, kw_only=True)
class Replicates:
    """Errors of estimates in repetitions of a fit: of shape (repetition, number).

    Attributes:
        estimate: The estimates, shape (number,).
        errors: Of each repetition, estimate less truth; NaN where it had none.
    """

    estimate: np.ndarray
    errors: np.ndarray

    @property
    def stddev(self) -> np.ndarray:
        """The standard deviation of the errors."""
        with np.errstate(invalid="ignore", divide="ignore"):
            centered = self.errors - self.bias
            return np.sqrt(np.nansum(centered**2, axis=0) / (self._number - 1))

    @property
    def bias(self) -> np.ndarray:
        """The mean of the errors."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nansum(self.errors, axis=0) / self._number

    def ends(self, level: float, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of the intervals.

        ``"normal"`` is the estimate and Student's t times the standard deviation on either side;
        t has one degree of freedom less than there are repetitions. ``"pivot"`` takes the
        quantiles of the errors off the estimate, which removes their bias as well and needs some
        hundreds of repetitions.
        """
        if method not in METHODS:
            raise ValueError(f"method must be one of {METHODS}, got {method!r}.")
        if method == "pivot":
            tails = (1 - level) / 2, (1 + level) / 2
            low, high = np.nanquantile(self.errors, tails, axis=0)
            return self.estimate - high, self.estimate - low
        half = stdtrit(np.maximum(self._number - 1, 1), (1 + level) / 2) * self.stddev
        return self.estimate - half, self.estimate + half

    @property
    def _number(self) -> np.ndarray:
        """The repetitions that had a value."""
        return np.isfinite(self.errors).sum(axis=0)


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """A statistic of the rows, and how sure it is.

    Attributes:
        estimate: The statistic of the fitted model's rows: a number, an array or a Series, as the
            function returned it.
        stddev: Its standard error, in the same shape.
        bias: The mean of the repetitions less the estimate, in the same shape. Where it is not
            small beside ``stddev``, the fit shrinks what is asked for, and the interval may miss.
        replicates: The statistic of each repetition: an array of shape (repetition, ...), or of a
            Series a frame with a row for each.
        kind: ``"population"`` or ``"table"``: which truth the interval is for.
        notes: What to keep in mind, a sentence each.

    >>> found = Bootstrap.of(0.31, [0.30, 0.33, 0.29, 0.32], kind="population")
    >>> str(found).split(", by ")[0]
    '0.31 (standard error: 0.0183). With 95 % confidence 0.252 to 0.368 in the population that the
    rows were drawn from'
    """

    estimate: Any
    stddev: Any
    bias: Any
    replicates: Any
    kind: str
    notes: tuple[str, ...]
    _found: Replicates

    @classmethod
    def of(
        cls,
        estimate: Any,
        values: list[Any],
        truths: list[Any] | None = None,
        *,
        kind: str,
        notes: Sequence[str] = (),
    ) -> "Bootstrap":
        """Of the statistic of the model, of each refit, and, if it is not the model, the truths.

        Raises:
            ValueError: For a statistic that is no number, or not always of the same shape.
        """
        own, shaped = _flat(estimate, estimate)
        if not np.isfinite(own).all():
            raise ValueError(f"The statistic must be a finite number, got {estimate!r}.")
        flat = np.array([_flat(value, estimate)[0] for value in values])
        true = own if truths is None else np.array([_flat(each, estimate)[0] for each in truths])
        found = Replicates(estimate=own, errors=flat - true)
        lacking = int((~np.isfinite(found.errors)).any(axis=1).sum())
        note = (
            f"In {lacking} of {len(values)} repetitions some value had no number and was left out."
        )
        return cls(
            estimate=shaped(own),
            stddev=shaped(found.stddev),
            bias=shaped(found.bias),
            replicates=_stacked(flat, estimate),
            kind=kind,
            notes=(*([note] if lacking else []), MODEL_BASED, *notes),
            _found=found,
        )

    def interval(self, level: float = 0.95, method: str = "normal") -> Any:
        """The ends of the interval: of a number an ``Interval``, else a frame of ``low``, ``high``.

        Args:
            level: The part of all fits whose intervals hold the truth.
            method: ``"normal"``, by the standard error and Student's t, or ``"pivot"``, by the
                quantiles of the errors: for some hundreds of repetitions and lopsided errors.
        """
        deviations(self.kind, level)
        low, high = self._found.ends(level, method)
        if np.ndim(self.estimate) == 0:
            return Interval(float(low[0]), float(high[0]))
        index = self.estimate.index if isinstance(self.estimate, pd.Series) else None
        return pd.DataFrame({"low": low, "high": high}, index=index)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """One row a number: ``estimate``, ``stddev``, ``bias``, ``low`` and ``high``."""
        index = self.estimate.index if isinstance(self.estimate, pd.Series) else None
        low, high = self._found.ends(level, "normal")
        own = {"stddev": self._found.stddev, "bias": self._found.bias, "low": low, "high": high}
        return pd.DataFrame({"estimate": self._found.estimate, **own}, index=index)

    def __str__(self) -> str:
        where = (
            "in this table"
            if self.kind == "table"
            else "in the population that the rows were drawn from"
        )
        by = f"by {len(self._found.errors)} repetitions of the fit"
        if np.ndim(self.estimate) == 0:
            low, high = self.interval()
            opening = (
                f"{self.estimate:,.5g} (standard error: {self.stddev:,.3g}). With 95 % confidence "
                f"{low:,.3g} to {high:,.3g} {where}, {by}."
            )
            return " ".join([opening, *self.notes])
        table = self.to_frame().to_string(float_format="{:,.4g}".format)
        return f"{table}\n95 % intervals for what is {where}, {by}. {' '.join(self.notes)}"


def _flat(value: Any, like: Any) -> tuple[np.ndarray, Any]:
    """A statistic's values as float64, and what gives such values the statistic's shape."""
    if isinstance(like, pd.DataFrame) or isinstance(value, pd.DataFrame):
        raise ValueError("The statistic must return a number, an array or a Series, not a frame.")
    if isinstance(like, pd.Series):
        found = value.reindex(like.index).to_numpy(dtype=np.float64, na_value=np.nan)
        return found, lambda own: pd.Series(own, index=like.index, name=like.name)
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The statistic must return a number, an array or a Series of numbers, got {value!r}."
        ) from None
    shape = np.shape(like)
    if found.shape != shape:
        raise ValueError(
            f"The statistic must always have one shape, got {shape} and {found.shape}. A Series "
            "is aligned by its index."
        )
    if not shape:
        return found.reshape(1), lambda own: float(own[0])
    return found.ravel(), lambda own: own.reshape(shape)


def _stacked(flat: np.ndarray, like: Any) -> Any:
    if isinstance(like, pd.Series):
        return pd.DataFrame(flat, columns=like.index)
    return flat.reshape(len(flat), *np.shape(like))
