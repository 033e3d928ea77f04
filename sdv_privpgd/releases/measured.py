"""What one holder hands over: noisy answers about its table, what they cost, and what they mean."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sdv_privpgd.base.domain import Domain, FieldsAlone
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.drafting.files import plain_domain
from sdv_privpgd.estimate.noisy_tables import Total, estimate_total
from sdv_privpgd.fitting.asking import require_sdtypes
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.releases.release_file import order_facts, query_facts, read_release, write_release
from sdv_privpgd.report.privacy import privacy_report
from sdv_privpgd.report.warnings import Answers, PublicFacts, Rank, warnings_of


def described(
    columns: Mapping[str, Mapping], num_bins: int | None, visits: Visits | None = None
) -> Description:
    """The columns by what is declared of them alone, in words that files can hold.

    No dtype of a table has a say: the same words give the same codes everywhere. Raises
    ``PublicDomainError`` if columns lack their range or categories.
    """
    description = Description.of(
        *require_sdtypes(plain_words(columns)), num_bins=num_bins, discovers=False, visits=visits
    )
    _ = description.schema  # raises where a domain is not known
    description.require_possible()
    return description


def plain_words(columns: Mapping[str, Mapping]) -> dict[str, dict]:
    """Declarations of columns with their sdtypes, as files can hold them."""
    kinds, others = require_sdtypes(columns)
    return plain_domain({name: {**kinds[name], **others[name]} for name in kinds})


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured(FieldsAlone):
    """Noisy answers about one holder's table, ready to be handed over. Public, files included.

    Attributes:
        holder: Whose table it is: a name that no other holder has.
        columns: What is declared of each column, in order, in SDV's words with its sdtype.
        num_bins: Cells of a number or date that does not name its own; ``None`` for 32.
        ledger: What the answers cost.
        answers: The noisy answers, in the order in which they were asked for.
        strategy: What chose the questions, as Python writes it.
        date: When it was measured.
        program: What measured it.
        visits: The order of a person's rows, if each was told of the one before.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, measure
    >>> table = pd.DataFrame({"ill": [True, False] * 500})
    >>> measured = measure(table, {"ill": Boolean()}, epsilon=1.0, holder="North")
    >>> measured.num_rows, measured.ledger.spent() <= 1.0
    (1000, True)
    """

    holder: str
    columns: Mapping[str, Mapping[str, Any]]
    num_bins: int | None
    ledger: PrivacyLedger
    answers: tuple[Measurement, ...]
    strategy: str
    date: str
    program: str
    visits: Visits | None = None

    @cached_property
    def description(self) -> Description:
        """The columns by what is declared of them."""
        return described(self.columns, self.num_bins, self.visits)

    @property
    def schema(self) -> Schema:
        """What the codes mean that the answers are about."""
        return self.description.attributes

    @property
    def domain(self) -> Domain:
        """The domain of the codes."""
        return self.schema.domain()

    @property
    def num_rows(self) -> int:
        """The number of rows: noisy where it is private."""
        return round(estimate_total(self.domain, self.answers).value)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is worth a look before it is handed over, a sentence each, of columns and delta.

        How much the noise hides is said of all holders together, once they are combined.
        """
        facts = PublicFacts(
            schema=self.schema,
            release=Answers(self.domain, self.answers),
            ledger=self.ledger,
            declared=self.description.facts,
            added=() if self.visits is None else self.visits.added,
        )
        return warnings_of(facts, but=[Rank.NOISE])

    @cached_property
    def digest(self) -> str:
        """64 hexadecimal digits that no other release has, whatever its holder is called."""
        found = hashlib.sha256(json.dumps(self.columns, sort_keys=True).encode())
        if self.visits is not None:
            found.update(json.dumps(order_facts(self.visits)).encode())
        for answer in self.answers:
            found.update(json.dumps([query_facts(answer.query), answer.stddev]).encode())
            kind = "<i8" if answer.answer.dtype.kind == "i" else "<f8"
            found.update(answer.answer.astype(kind).tobytes())
        return found.hexdigest()

    def privacy_report(self) -> str:
        """What was spent on the holder's table, on what and under which adjacency, as text."""
        return privacy_report(self.ledger)

    def save(self, path: str | Path) -> Path:
        """Writes the release to a ``.zip`` file, and returns where it lies.

        The file has JSON, which people can read, and arrays of whole numbers. Nothing in it is
        run when it is read. ``releases/release_file.py`` says what is in it.

        >>> import pandas as pd
        >>> from tempfile import TemporaryDirectory
        >>> from sdv_privpgd import Boolean, measure
        >>> table = pd.DataFrame({"ill": [True, False] * 500})
        >>> measured = measure(table, {"ill": Boolean()}, epsilon=1.0, holder="North")
        >>> with TemporaryDirectory() as folder:
        ...     path = measured.save(f"{folder}/north.zip")
        ...     Measured.load(path).digest == measured.digest
        True
        """
        facts = {name: getattr(self, name) for name in ("holder", "num_bins", "date", "program")}
        facts |= {"columns": dict(self.columns), "strategy": self.strategy}
        if self.visits is not None:
            facts["order"] = order_facts(self.visits)
        return write_release(Path(path), facts, self.ledger, self.answers)

    @classmethod
    def load(cls, path: str | Path) -> "Measured":
        """The release in a file that ``save`` has written.

        Raises:
            ValueError: For any other file, and for answers that the ledger in it does not pay for.
        """
        read = read_release(Path(path), lambda *facts: described(*facts).attributes)
        return cls(ledger=read.ledger, answers=read.answers, **read.facts)

    def __repr__(self) -> str:
        rows = f"{self.num_rows:,} rows, {len(self.columns)} columns"
        return f"Measured({self.holder!r}: {rows}, epsilon {self.ledger.spent():.4g})"


@dataclass(frozen=True, kw_only=True)
class Holder:
    """One of the holders of a combined table, as its release has it. Public."""

    name: str
    ledger: PrivacyLedger
    rows: Total
    """How many rows it has, noisy where that is private."""
    strategy: str
    date: str

    @classmethod
    def of(cls, measured: Measured) -> "Holder":
        """The holder of a release."""
        own = {name: getattr(measured, name) for name in ("ledger", "strategy", "date")}
        rows = estimate_total(measured.domain, measured.answers)
        return cls(name=measured.holder, rows=rows, **own)
