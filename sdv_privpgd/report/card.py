"""What rows say of themselves, beside a file or inside it: synthetic, of which release. Public."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sdv_privpgd.base.files import DamagedFileError, undamaged
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Measurement

KEY = b"sdv-privpgd"
"""Of the facts in the metadata of a Parquet file, as JSON."""


def card_facts(release: str, date: str, promise: Mapping[str, Any]) -> dict[str, Any]:
    """What rows of a release say of themselves.

    Args:
        release: What tells it from all others, by ``release_id``.
        date: Of the fit.
        promise: What is promised to whom.
    """
    return {
        "synthetic": True,
        "generator": "sdv-privpgd",
        "version": version("sdv-privpgd"),
        "release": release,
        "date": date,
        **promise,
    }


def promise_of(ledger: PrivacyLedger) -> dict[str, Any]:
    """What a ledger promises, in a few facts."""
    return {
        "epsilon": ledger.spent(),
        "delta": ledger.delta,
        "adjacency": ledger.adjacency.value,
        "unit": ledger.unit if ledger.says_whose else f"{ledger.unit}, not one person",
    }


def release_id(measurements: Sequence[Measurement], first_rows: Callable[[], str]) -> str:
    """Digits that no other release has: a digest of its noisy answers, or else of its rows.

    Args:
        measurements: What was kept of the answers.
        first_rows: The first rows, as text, for models whose answers were not kept.
    """
    noisy = [each.answer for each in measurements if each.stddev]
    found = hashlib.sha256(b"" if noisy else first_rows().encode())
    for answer in noisy:
        found.update(answer.astype("<f8").tobytes())
    return found.hexdigest()[:32]


def card_path(path: Path) -> Path:
    """The place of the card of a file of rows."""
    return path.with_name(f"{path.name}.about.json")


def write_card(path: Path, rows: Path, facts: Mapping[str, Any]) -> None:
    """Writes the card of a file of rows, with the digest of the file."""
    facts = {**facts, "sha256": digest_of_file(rows)}
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_card(path: Path) -> dict[str, Any]:
    """The facts of a card. Raises ``DamagedFileError`` for a file that is none."""
    with undamaged(path, "card of rows"):
        facts = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(facts, dict) or not isinstance(facts.get("release"), str):
            raise ValueError("it names no release.")
    return facts


def is_card(path: Path) -> bool:
    """Whether a file is a card."""
    try:
        return bool(read_card(path))
    except DamagedFileError:
        return False


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            found.update(block)
    return found.hexdigest()


def in_words(facts: Mapping[str, Any]) -> str:
    """A card in a sentence."""
    promised = (
        f"epsilon {facts['epsilon']:.4g} at delta {facts['delta']:g} for {facts['unit']}"
        if "epsilon" in facts
        else f"made of tables of {facts.get('publisher', 'others')}"
    )
    return (
        f"Synthetic rows of release {facts['release']}, by {facts['generator']} "
        f"{facts['version']}, fitted on {facts['date']}: {promised}."
    )
