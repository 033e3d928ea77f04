"""The coefficients of a regression, as a table and in words. Public."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.inference.intervals import deviations


@dataclass(frozen=True, kw_only=True, repr=False)
class Regression:
    """Coefficients of the population, and how sure they are. Public.

    Attributes:
        title: What is regressed on what.
        coefficients: A Series by the names of the terms.
        covariance: Of the coefficients: sampling and noise. A frame.
        noise: The part of it that is the noise's. A frame.
        num_rows: The rows that the pair with most missing values has.
        notes: What to keep in mind, a sentence each.

    >>> names, square = pd.Index(["intercept", "age"]), np.diag([0.04, 0.0001])
    >>> square = pd.DataFrame(square, names, names)
    >>> found = Regression(title="Linear regression of pay on age", num_rows=1000.0, notes=(),
    ...     coefficients=pd.Series([2.0, 0.03], names), noise=square / 2, covariance=square)
    >>> found.summary().round(3).loc["age"].tolist()
    [0.03, 0.01, 3.0, 0.003, 0.01, 0.05]
    """

    title: str
    coefficients: pd.Series
    covariance: pd.DataFrame
    noise: pd.DataFrame
    num_rows: float
    notes: tuple[str, ...]

    @property
    def stddev(self) -> pd.Series:
        """The standard error of each coefficient."""
        found = np.sqrt(np.diagonal(self.covariance.to_numpy()))
        return pd.Series(found, index=self.coefficients.index)

    def interval(self, level: float = 0.95) -> pd.DataFrame:
        """The ends of each coefficient's interval, for the population."""
        half = deviations("population", level) * self.stddev
        return pd.DataFrame({"low": self.coefficients - half, "high": self.coefficients + half})

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """One row a term: ``coef``, ``std err``, ``z``, ``P>|z|``, and the interval's ends."""
        z = self.coefficients / self.stddev
        ends = self.interval(level)
        tails = (1 - level) / 2, (1 + level) / 2
        return pd.DataFrame(
            {
                "coef": self.coefficients,
                "std err": self.stddev,
                "z": z,
                "P>|z|": 2 * ndtr(-np.abs(z)),
                f"[{tails[0]:.4g}": ends["low"],
                f"{tails[1]:.4g}]": ends["high"],
            }
        )

    def __repr__(self) -> str:
        """The coefficients in a line, each with its standard error."""
        found = zip(self.coefficients.items(), self.stddev, strict=True)
        terms = ", ".join(f"{name} {value:.4g} ± {error:.2g}" for (name, value), error in found)
        return f"Regression({self.title!r}: {terms})"

    def __str__(self) -> str:
        table = self.summary().to_string(float_format="{:.4g}".format)
        share = np.diagonal(self.noise.to_numpy()) / np.diagonal(self.covariance.to_numpy())
        return "\n".join(
            [
                f"{self.title}, about {self.num_rows:,.0f} rows",
                table,
                "Standard errors are those of the population: sampling, and the noise of the "
                f"tables, which is {100 * share.min():.0f} to {100 * share.max():.0f} % of the "
                "variances.",
                *self.notes,
            ]
        )
