"""Layer 5: a fitted object, or the file it was loaded from.

A model is made anew of its noisy answers and of what is public, and without any table. Whatever
text or number the object holds that the new one has not came from somewhere else.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from sdv_privpgd.audit.checks import Check, check_of
from sdv_privpgd.audit.outputs import Leaf, unlike
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.accounting import mu_squared_of
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import CountQuery

LAYER = "the fitted object"


class Kept(Protocol):
    """A fitted object and how it would be made anew."""

    @property
    def settings(self) -> Settings:
        """Those that it has."""
        ...

    @property
    def ledger(self) -> PrivacyLedger:
        """Of all its fits."""
        ...

    @property
    def release(self) -> Release | None:
        """The noisy answers and the model; ``None`` where no column is modelled."""
        ...

    @property
    def num_rows(self) -> int | None:
        """As far as it is known."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """Versions and the like."""
        ...

    def leaves(self) -> dict[str, Leaf]:
        """All that its file holds."""
        ...

    def leaves_made_anew(self) -> dict[str, Leaf]:
        """All that a file would hold that was made of the noisy answers and public facts alone."""
        ...


def file_checks(kept: Kept) -> list[Check]:
    """Whether all that is kept is public or noisy, and whether the books add up."""
    return [_contents(kept), _books(kept), _delta(kept)]


def _contents(kept: Kept) -> Check:
    name, looked_at = "kept contents", "all texts and numbers that the object holds"
    release = kept.release
    if release is None or all(isinstance(each.query, CountQuery) for each in release.measurements):
        return _unseen(
            name, looked_at, "No noisy tables are kept, so that no model can be made of them anew."
        )
    own = kept.leaves()
    places = unlike(own, kept.leaves_made_anew())
    model = [place for place in places if ".model" in place]
    others = [place for place in places if ".model" not in place]
    if model and not others:
        return _unseen(
            name,
            looked_at,
            "A model made anew of the same noisy answers is another one. That can be so on another "
            "machine or with other versions of NumPy and torch; all else is the same.",
        )
    faults = [
        f"At {place} stands what neither the noisy answers nor the public facts give."
        for place in others
    ]
    return check_of(
        LAYER,
        name,
        f"{len(own):,} texts, numbers and arrays",
        faults,
        "Made anew of the noisy answers and of what is declared or was found, all are the same.",
        places=others,
    )


def _unseen(name: str, looked_at: str, why: str) -> Check:
    return Check(layer=LAYER, name=name, looked_at=looked_at, passed=None, found=why)


def _books(kept: Kept) -> Check:
    rounding = 1 + 1e-9
    ledger, release, settings = kept.ledger, kept.release, kept.settings
    faults = []
    try:
        if read_ledger(ledger.to_json()) != ledger:
            faults.append("The ledger cannot be read back as it is.")
    except ValueError as error:
        faults.append(str(error))
    if ledger.mu_squared > ledger.budget:
        faults.append("More was spent than the budget allows.")
    if ledger.spent() > ledger.epsilon * rounding:
        faults.append(f"Epsilon {ledger.spent():.4g} was spent of {ledger.epsilon:.4g}.")
    if release is not None:
        faults += _release_faults(release, settings)
    return check_of(
        LAYER,
        "kept ledger",
        f"{len(ledger.charges)} charges",
        faults,
        f"They add up to epsilon {ledger.spent():.4g} at delta {ledger.delta:g}, "
        f"{ledger.adjacency.value.replace('_', '-')}, for {ledger.unit}, and pay for every answer "
        "that is kept.",
        epsilon=ledger.spent(),
        **kept.facts,
    )


def _release_faults(release: Release, settings: Settings) -> list[str]:
    """What the last fit's books say against its answers and the settings."""
    books, faults = release.ledger, []
    if books.budget > mu_squared_of(books.epsilon, float(Fraction(books.delta) - books.reserved)):
        faults.append("The budget of the fit is larger than its epsilon and delta allow.")
    own = settings.ledger()
    said, kept = (
        (each.adjacency, each.rows_per_person, each.weighed, each.people, each.rows_are_people)
        + (each.weights, each.epsilon, each.delta)
        for each in (own, books)
    )
    if said != kept:
        faults.append("The settings are not those that the last fit was charged for.")
    for stddev in {each.stddev for each in release.measurements}:
        answers = [each for each in release.measurements if each.stddev == stddev]
        paid = sum(
            charge.num_queries for charge in books.charges if charge.stddev / books.units == stddev
        )
        if len(answers) > paid:
            faults.append(
                f"{len(answers)} answers have noise of {stddev:.4g}, and {paid} were paid for."
            )
        needed = sum(each.query.l2_sensitivity_squared(books.adjacency) for each in answers)
        if not stddev and needed:
            faults.append("An answer that is not public has no noise.")
    return faults


def _delta(kept: Kept) -> Check:
    rows, delta = kept.num_rows, kept.ledger.delta
    if rows is None:
        return _unseen("kept delta", "delta beside the number of rows", "No rows were counted.")
    faults = [f"Delta is {delta:g}, and not below 1 / {rows:,}, one by the number of rows."]
    return check_of(
        LAYER,
        "kept delta",
        "delta beside the number of rows",
        faults if rows > 0 and delta >= 1 / rows else [],
        f"Delta is {delta:g}, below 1 / {max(rows, 1):,}.",
    )
