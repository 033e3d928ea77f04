"""How much a fit may spend, and by which method. Public."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, TypeGuard

import numpy as np

from sdv_privpgd.methods.method import Method
from sdv_privpgd.methods.names import method_of
from sdv_privpgd.privacy.accounting import check_delta, check_epsilon
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.units import MOST


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one fit.

    Attributes:
        epsilon: What the fit may spend, at ``delta``.
        delta: Choose it well below 1 / (number of rows).
        adjacency: Which tables are neighbors: ``replace_one`` or ``add_remove``.
        rows_per_person: How many rows one person may have.
        person_column: The column that says whose a row is, if no more of a person's rows are to be
            read; ``None`` takes it for granted that there are no more.
        weigh_people: Whether each row of a person counts as 1 / the number of those that are read.
        discovery_share: Part of the budget for what is not declared.
        method: What is asked, and what makes a model of the answers.
        seed: Of an engine that is named and of the rows, never of the noise.
    """

    epsilon: float
    method: Method
    delta: float = 1e-5
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    rows_per_person: int = 1
    discovery_share: float = 0.2
    seed: int = 0
    person_column: str | None = None
    weigh_people: bool = False

    def __post_init__(self) -> None:
        checked: Mapping[str, Any] = {
            "epsilon": check_epsilon(self.epsilon),
            "delta": check_delta(self.delta),
            "adjacency": Adjacency.parse(self.adjacency),
            "rows_per_person": check_count("rows_per_person", self.rows_per_person),
            "discovery_share": check_share("discovery_share", self.discovery_share),
            "seed": check_count("seed", self.seed, least=0),
            "weigh_people": check_flag("weigh_people", self.weigh_people),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.person_column is not None and self.adjacency is not Adjacency.ADD_REMOVE:
            raise ValueError(
                "person_column needs adjacency='add_remove': who is another person may have "
                "another number of rows, so that their number cannot be public."
            )
        if self.weigh_people and self.person_column is None:
            raise ValueError(
                "weigh_people needs person_column: without it nobody knows how many rows a person "
                "has, and no row can count as 1 / their number."
            )
        if self.weigh_people and self.rows_per_person > MOST:
            raise ValueError(
                f"weigh_people takes a rows_per_person of at most {MOST}, got "
                f"{self.rows_per_person!r}. All rows of a person count as one: choose fewer."
            )
        object.__setattr__(self, "method", method_of(self.method, seed=self.seed))
        if self.weigh_people and not self.method.weighs_rows:
            raise ValueError(
                "weigh_people does not go with private gradients: a sample has each row or has it "
                "not, and none of them in part. Leave it out."
            )

    @property
    def people(self) -> tuple[str, int, bool] | None:
        """The column that tells people apart, how many rows of each are read, if they are weighed.

        ``None`` where all rows are read.
        """
        if self.person_column is None:
            return None
        return self.person_column, self.rows_per_person, self.weigh_people

    def objections(self, table: PrivateTable | EncodedTable) -> list[str]:
        """A sentence if the table has no rows, and that is public. Ask before anything is spent."""
        if table.known_rows(self.adjacency) != 0:
            return []
        return [
            "The table has no rows. A fit would spend its whole budget on nothing, so none is made."
        ]

    @property
    def own_delta(self) -> Fraction:
        """The part of delta that the method needs: that of samples, where it trains by them."""
        return Fraction(self.delta) * self.method.own_delta

    def ledger(self, reserved: Fraction = Fraction(0)) -> PrivacyLedger:
        """The empty ledger of a fit, with a part of delta kept for thresholds and samples."""
        return PrivacyLedger.open(
            self.epsilon,
            self.delta,
            self.adjacency,
            self.rows_per_person,
            reserved=reserved,
            people=self.person_column,
            weighed=self.weigh_people,
        )

    def require(self, books: PrivacyLedger) -> None:
        """Raises ``ValueError`` if they protect others than these books, of a fit that goes on."""
        was = books.adjacency, books.rows_per_person, books.people, books.weighed
        now = self.adjacency, self.rows_per_person, self.person_column, self.weigh_people
        names = "adjacency", "rows_per_person", "person_column", "weigh_people"
        changed = [
            f"{name} was {getattr(before, 'value', before)!r} and is {getattr(own, 'value', own)!r}"
            for name, before, own in zip(names, was, now, strict=True)
            if before != own
        ]
        if changed:
            raise ValueError(
                f"{'; '.join(changed)}: the books of the fit that is to be gone on with say whom "
                "it protects. Set it back, or fit anew."
            )


def check_flag(name: str, value: object) -> bool:
    """The same truth as a bool. Raises ``ValueError`` for anything else."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_count(name: str, value: object, *, least: int = 1) -> int:
    """The same whole number as an int. Raises ``ValueError`` unless it is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def check_positive(name: str, value: object) -> float:
    """The same number as a float. Raises ``ValueError`` unless it is positive and finite."""
    if not _is_number(value) or not 0 < value < inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}.")
    return float(value)


def check_share(name: str, value: object) -> float:
    """The same number as a float. Raises ``ValueError`` unless it lies in [0, 1)."""
    if not _is_number(value) or not 0 <= value < 1:
        raise ValueError(f"{name} must be a number of at least 0 and below 1, got {value!r}.")
    return float(value)


def _is_number(value: object) -> TypeGuard[float]:
    kinds = int | float | np.integer | np.floating
    return isinstance(value, kinds) and not isinstance(value, bool)
