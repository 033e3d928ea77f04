"""The entry of a fit in the public registry of differentially private deployments. Public.

The fields are those of ``deployments-registry-data`` (OpenDP and NIST), as they were in July 2026,
at tier 3. What a fit knows is filled in, exactly; all else is a blank that is named.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scipy.special import ndtr

from sdv_privpgd.base.files import write_tree
from sdv_privpgd.base.words import listed
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.assumed import About, assumed_facts, column_words
from sdv_privpgd.report.privacy import (
    ledger_table,
    neighbors_in_words,
    not_covered,
    of_several_rows,
    other_adjacency,
    what_counts,
)
from sdv_privpgd.report.release import fitted_by, methods_of

_PARTLY = {
    "preprocessing_and_hyperparameter_tuning": (
        "add whether settings or declared facts were chosen by looking at the table"
    ),
    "mechanisms": "add who may see the table, and how it is secured",
}
"""What is to be added to fields of which the fit knows a part."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RegistryEntry:
    """A record for the public registry of deployments, as far as a fit can fill it in. Public.

    ``print`` shows what is left to be said.

    Attributes:
        facts: The record.
        blanks: The paths of what is left to be said. A blank is an empty text, but for two fields
            of which the fit knows a part.
    """

    facts: Mapping[str, Any]
    blanks: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns the record in dictionaries, lists, text and numbers."""
        return json.loads(json.dumps(self.facts))

    def save(self, path: str | Path) -> Path:
        """Writes the record to a file and returns where it lies.

        Args:
            path: A file that ends in ``.yaml`` or ``.yml``, as the registry has it, which needs
                PyYAML (it comes with SDV), or in ``.json``.

        Raises:
            ValueError: For another ending.
            ImportError: For YAML without PyYAML.
        """
        return write_tree(self.to_dict(), Path(path))

    def __str__(self) -> str:
        filled = len([*_leaves(self.facts)]) - len(self.blanks) + len(_PARTLY)
        more = {path: _PARTLY.get(path.rpartition(".")[2]) for path in self.blanks}
        left = [f"- {path}" + (f": {asked}" if asked else "") for path, asked in more.items()]
        return "\n".join([f"{filled} fields are filled in. Left to be said:", *left])

    def __repr__(self) -> str:
        return str(self)


def registry_entry(
    release: Release | None, ledger: PrivacyLedger, about: About, said: Mapping[str, Any]
) -> RegistryEntry:
    """Returns the record of a fit. Empty texts are blanks.

    Args:
        release: The fit's own answers; ``None`` where no column was modelled.
        ledger: All that was spent, with earlier releases.
        about: What was fitted.
        said: What ``FittedTable.registry_entry`` takes, by name.
    """
    methods = methods_of(about, release, ledger)
    facts = {
        "url_slug": re.sub("[^a-z0-9]+", "_", said["name"].lower()).strip("_"),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": said["name"],
                "data_curators": _several(said["curators"]),
                "description": "",
                "intended_use": said["use"],
                "data_product_type": "Synthetic data",
                "data_product_region": said["region"],
                "publication_date": about.date,
                "data_product_sector": "",
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": _data_domain(about),
                "unprotected_quantities": _unprotected(ledger, about),
            },
            "privacy_loss": _privacy_loss(ledger),
            "deployment_model": _deployment_model(release, ledger),
            "accounting": {
                "post_processing": _post_processing(about),
                "composition": _composition(ledger),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _preprocessing(about),
                "mechanisms": _mechanisms(ledger),
                "justification": "",
            },
            "administrative": {
                "sources": " ".join(methods.references),
                "notes": "",
                "registry_authors": _several(said["authors"]),
            },
        },
    }
    blanks = [path for path, key, fact in _leaves(facts) if fact in ("", [""]) or key in _PARTLY]
    return RegistryEntry(facts=facts, blanks=blanks)


def _several(names: Sequence[str] | str) -> list[str]:
    return ([names] if isinstance(names, str) else [*names]) or [""]


def _leaves(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str, Any]]:
    """The paths of a record, their last parts, and what stands there."""
    for key, fact in facts.items():
        if isinstance(fact, Mapping):
            yield from _leaves(fact, f"{above}{key}.")
        else:
            yield f"{above}{key}", key, fact


def _data_domain(about: About) -> str:
    columns = [column_words(name, about) for name in about.columns]
    words = [
        f"{name!r} ({kind}; declared: {declared}"
        + f"; found with noise: {found}" * (found != "–")
        + ")"
        for name, kind, declared, found in columns
    ]
    return f"All tables of {len(words):,} columns: {', '.join(words)}."


def _unprotected(ledger: PrivacyLedger, about: About) -> str:
    facts = " ".join(assumed_facts(ledger.adjacency, about.prior))
    exact = [charge.what for charge in ledger.exact_releases]
    said = f" Answered without noise: {listed(list(dict.fromkeys(exact)))}." if exact else ""
    return f"{facts[0].upper()}{facts[1:]}{said}"


def _privacy_loss(ledger: PrivacyLedger) -> dict[str, Any]:
    advantage = 2 * ndtr(math.sqrt(ledger.mu_squared) / 2) - 1
    mu, other = math.sqrt(ledger.mu_squared), other_adjacency(ledger.adjacency)
    own = sum((charge.delta for charge in ledger.charges), Fraction(0))
    but = f", but for events of probability {float(own):.2g}" if ledger.reserved else ""
    exact = " given the answers without noise" if ledger.exact_releases else ""
    several = "" if ledger.says_whose else f" For more rows of a person: {of_several_rows(ledger)}."
    apart = (
        f" People are told apart by the column {ledger.people!r}; all rows without a value there "
        "count as one person's, and a person's further rows were not read."
        if ledger.people is not None
        else ""
    )
    return {
        "privacy_unit": ledger.unit if ledger.says_whose else f"{ledger.unit}, not one person",
        "privacy_unit_details": " ".join(
            f"{neighbors_in_words(ledger)}{apart}{several} {what_counts(ledger)}".split()
        ),
        "privacy_parameters": {
            "epsilon": ledger.spent(),
            "delta": ledger.delta,
            "rho": float(ledger.mu_squared / 2),
        },
        "privacy_parameters_details": (
            f"The release is {mu:.6g}-Gaussian differentially private (mu), from which epsilon at "
            f"this delta is computed exactly; rho is mu² / 2{but}. Asked for was epsilon "
            f"{ledger.epsilon:g} at delta {ledger.delta:g}. If tables are neighbors by "
            f"{other.value.replace('_', '-')} instead, epsilon is "
            f"{ledger.spent(adjacency=other):.6g}{exact}. The best attacker who decides between "
            f"two neighbors has an advantage of at most "
            f"{math.ceil(1_000 * (advantage + float(own))) / 1_000:.3f}."
        ),
    }


def _deployment_model(release: Release | None, ledger: PrivacyLedger) -> dict[str, str]:
    own = ledger if release is None else release.ledger
    begun = len(ledger.charges) - len(own.charges)
    several = (
        "The ledger holds earlier releases of the same people's rows: epsilon, delta and rho are "
        f"of all together. This release alone has epsilon {own.spent():.6g} at delta {own.delta:g}."
    )
    one = (
        "All that the ledger holds was spent on this release. More may be asked of the same table "
        "later: it would be added to the same ledger."
    )
    return {
        "model_name": "Central",
        "model_name_details": (
            "One curator holds the table. Noisy answers, and what follows from them, are all that "
            "left the fit."
        ),
        "actors": "",
        "release_type": "Many releases" if begun else "One release",
        "release_type_details": several if begun else one,
        "data_source_type": "",
        "data_source_type_details": "",
        "access_type": "Non-interactive",
        "access_type_details": (
            "The questions were asked once. Any number of rows and estimates follow from the same "
            "noisy answers, at no further cost."
        ),
    }


def _post_processing(about: About) -> str:
    visits = "" if about.visits is None else " Rows are sampled person by person, in order."
    return (
        f"{fitted_by(about, lambda work: f'({work[:-1]})')} Cells became values within them, in "
        f"the ranges and categories that were declared or found.{visits} Estimates and intervals "
        "are computed from the noisy answers."
    )


def _composition(ledger: PrivacyLedger) -> str:
    entries = [
        f"{what} ({mechanism}{_noise(scale)}, {shared})"
        for what, mechanism, _, _, _, scale, _, shared in ledger_table(ledger).rows
    ]
    return (
        "Gaussian differential privacy: mu² adds up over questions, also where later ones depend "
        "on earlier answers, in exact fractions; deltas add up. The questions with their mechanism "
        f"and their share of the budget: {listed(entries, 20)}."
    )


def _noise(scale: str) -> str:
    """The noise of a question, as the ledger's table has it, in words."""
    if scale == "none":
        return ""
    return f", {'range ' * scale.startswith('eps')}{'noise sd ' * scale[0].isdigit()}{scale}"


def _preprocessing(about: About) -> str:
    found = [name for name, facts in about.discovered.items() if facts]
    looked = (
        f"What was not declared of {listed(found)} was found with noise, charged to the same "
        "ledger."
        if found
        else "All values of columns were declared, and none was looked for."
    )
    return (
        f"{looked} Values outside the declared or found domain were clipped or counted as missing, "
        "cell by cell. The method and its settings were fixed before the fit; where the method "
        "chooses questions or sizes of cells, it does so by noisy answers of the same ledger."
    )


def _mechanisms(ledger: PrivacyLedger) -> str:
    used = list(dict.fromkeys(charge.mechanism for charge in ledger.charges))
    return (
        f"Mechanisms: {'; '.join(used) or 'none'}. Counts are whole numbers, and so is the noise: "
        "a Gaussian, rounded, drawn exactly from the operating system's randomness and no seed, so "
        "that no count leaks by floating point. Each question is charged before the table is "
        f"read. {not_covered(ledger)} Software: sdv-privpgd "
        f"{version('sdv-privpgd')}."
    )
