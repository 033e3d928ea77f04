"""What others ask for in writing: a methods text, and the public registry's entry. Public.

The entry's fields are those of ``deployments-registry-data`` (OpenDP and NIST), as they were in
July 2026, at tier 3. What a fit knows is filled in, exactly; all else is a blank that is named.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scipy.special import ndtr

from sdv_privpgd.base.files import write_tree
from sdv_privpgd.base.words import listed, number_of, share
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.method import Method
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery
from sdv_privpgd.report.about import (
    CONFIDENT,
    About,
    assumed_facts,
    column_words,
    on_visits,
    prior_facts,
)
from sdv_privpgd.report.page import Items, Section, Text
from sdv_privpgd.report.privacy import (
    ledger_table,
    neighbors_in_words,
    not_covered,
    of_several_rows,
    own_delta,
    under_other,
    what_counts,
)
from sdv_privpgd.synthesize.engine import Engine

_GAUSSIAN = (
    "Dong, J., Roth, A. & Su, W. J. (2022). Gaussian differential privacy. Journal of the Royal "
    "Statistical Society B 84(1), 3–37."
)
_DEFINITION = (
    "Dwork, C., McSherry, F., Nissim, K. & Smith, A. (2006). Calibrating noise to sensitivity in "
    "private data analysis. Theory of Cryptography, 265–284."
)


_INTERVALS = (
    "Where counts, shares and means have intervals, these were not computed from the synthetic "
    "rows, as if they were real. They come from all noisy counts by generalized least squares; the "
    "variance of the noise is known. Intervals for the table account for the noise, those for the "
    "population for sampling as well."
)


@dataclass(frozen=True)
class Methods:
    """A text for a methods section, whose paragraphs name references by number. Public."""

    paragraphs: Sequence[str]
    references: Sequence[str]

    def __str__(self) -> str:
        return "\n\n".join([*self.paragraphs, "\n".join(self.references)])


def methods_of(about: About, release: Release | None, ledger: PrivacyLedger) -> Methods:
    """The text of what was done; where no column was modelled, of what was promised alone."""
    references: list[str] = []

    def cited(work: str) -> str:
        if work not in references:
            references.append(work)
        return f"[{references.index(work) + 1}]"

    paragraphs = []
    if release is not None:
        done = (
            _made(about, release, ledger),
            _questions(about, release, cited),
            fitted_by(about, cited),
        )
        paragraphs.append(" ".join(done))
    own = ledger if release is None else release.ledger
    paragraphs.append(f"{_promise(ledger, own, cited)}{_spent_on(ledger)}")
    if release is not None and any(
        isinstance(each.query, MarginalQuery) for each in release.measurements
    ):
        paragraphs.append(_INTERVALS)
    works = [f"[{place}] {work}" for place, work in enumerate(references, start=1)]
    return Methods(paragraphs, works)


def methods_section(about: About, release: Release, ledger: PrivacyLedger) -> Section:
    """The text, and the references that it names by number."""
    methods = methods_of(about, release, ledger)
    return Section(
        "For a methods section",
        [
            Text("The facts of this fit, in sentences to be pasted and shortened.", quiet=True),
            *map(Text, methods.paragraphs),
            Items(methods.references),
        ],
        folded=True,
    )


def _made(about: About, release: Release, ledger: PrivacyLedger) -> str:
    total = estimate_total(release.domain, release.measurements)
    rows = number_of(total.value)
    if ledger.adjacency is Adjacency.ADD_REMOVE:
        rows = (
            f"about {total.value:,.0f} rows (a noisy count; ± {CONFIDENT * total.stddev:,.0f} with "
            "95 % confidence)"
        )
    return (
        f"We used synthetic rows that were generated with sdv-privpgd {version('sdv-privpgd')} on "
        f"{about.date} from a confidential table of {rows} and "
        f"{number_of(len(about.columns), 'column')}."
    )


def _questions(about: About, release: Release, cited: Callable[[str], str]) -> str:
    """What was asked, by the method."""
    method = about.method
    assert isinstance(method, Method)
    counted = method.counted(release.measurements)
    if method.citation:
        counted += f" {cited(method.citation)}"
    said = [
        f"From the table we measured {counted}, and added Gaussian noise, rounded to whole "
        f"numbers, to every answer {cited(_GAUSSIAN)}."
    ]
    if about.visits is not None:
        said.append(on_visits(about.visits)[0])
    if changed := changed_settings(method):
        said.append(f"Settings other than the program's defaults were {changed}.")
    if found := [name for name, facts in about.discovered.items() if facts]:
        said.append(
            f"What was not declared of the values of {number_of(len(found), 'column')} "
            f"({listed(found)}) was found by noisy answers under the same budget."
        )
    said.append("All other facts on columns (types, declared ranges and categories) were public.")
    if about.prior:
        said.append(f"What nobody declared of them is that of {'; '.join(about.prior)}.")
        if prior_facts(about, release).get("is_used"):
            said.append("These rows, weighted to fit the noisy counts, were the prior of the fit.")
    return " ".join(said)


def changed_settings(method: Engine) -> str:
    """The settings of a method that are not its defaults, as Python writes them."""
    engine = getattr(method, "made", None)
    known = {
        each.name: (each.default, getattr(method, each.name))
        for each in (fields(method) if is_dataclass(method) else ())
        if each.default is not MISSING and each.name != "engine" and each.compare
    }
    said = [f"{name} = {value!r}" for name, (usual, value) in known.items() if value != usual]
    return ", ".join(filter(None, [*said, "" if engine is None else changed_settings(engine)]))


def fitted_by(about: About, cited: Callable[[str], str]) -> str:
    """What made rows of the answers, by the engine, and what they were made to meet."""
    engine = getattr(about.method, "made", about.method)
    said = f"{engine.title} {cited(engine.citation)}." if engine.citation else f"{engine.title}."
    if about.constraints:
        said += (
            f" The rows were made to meet declared constraints ({listed(about.constraints)}), "
            "which were not learned from the table."
        )
    return said


def _spent_on(ledger: PrivacyLedger) -> str:
    """The questions that cost most, and what a row counts as, if it is not one."""
    parts: Any = Counter()
    for charge in ledger.charges:
        parts[charge.what.split(":")[0]] += charge.mu_squared
    most = [(what, float(part / parts.total())) for what, part in parts.most_common(3) if part]
    shares = ", ".join(f"{what} ({share(part)})" for what, part in most)
    said = f" Of the privacy loss, measured by μ², most went to: {shares}." if shares else ""
    return f"{said} {what_counts(ledger)}".rstrip()


def _promise(ledger: PrivacyLedger, own: PrivacyLedger, cited: Callable[[str], str]) -> str:
    """What is promised of all that a ledger holds, and of its ``own`` part for this release."""
    unit, is_all = ledger.unit, len(own.charges) == len(ledger.charges)
    others = "" if is_all else ", with the other releases in its ledger,"
    differ = {
        Adjacency.REPLACE_ONE: f"{unit} replaced by any others; the number of rows is public",
        Adjacency.ADD_REMOVE: f"{unit} added or removed; the number of rows is private",
    }[ledger.adjacency]
    return (
        f"All that was released of the table{others} satisfies (ε, δ)-differential privacy "
        f"{cited(_DEFINITION)} with ε = {ledger.spent():.4g} and δ = {ledger.delta:g}, where two "
        f"tables are neighbors if one is the other with {differ}. It was accounted for exactly, as "
        f"{math.sqrt(ledger.mu_squared):.4g}-Gaussian differential privacy {cited(_GAUSSIAN)} over "
        f"{len(ledger.charges):,} sets of questions."
    ) + ("" if is_all else f" This release alone has ε = {own.spent():.4g}.")


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

    __repr__ = __str__


def registry_entry(
    release: Release | None, ledger: PrivacyLedger, about: About, said: Mapping[str, Any]
) -> RegistryEntry:
    """Returns the record of a fit. Empty texts are blanks.

    ``release`` is None where no column was modelled, ``ledger`` of all that was spent, with earlier
    releases, and ``said`` what ``FittedTable.registry_entry`` takes, by name.
    """
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
                "sources": " ".join(methods_of(about, release, ledger).references),
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
    words = []
    for name in about.columns:
        _, kind, declared, found = column_words(name, about)
        looked = "" if found == "–" else f"; found with noise: {found}"
        words.append(f"{name!r} ({kind}; declared: {declared}{looked})")
    return f"All tables of {len(words):,} columns: {', '.join(words)}."


def _unprotected(ledger: PrivacyLedger, about: About) -> str:
    facts = " ".join(assumed_facts(ledger.adjacency, about.prior))
    exact = [charge.what for charge in ledger.exact_releases]
    said = f" Answered without noise: {listed(list(dict.fromkeys(exact)))}." if exact else ""
    return f"{facts[0].upper()}{facts[1:]}{said}"


def _privacy_loss(ledger: PrivacyLedger) -> dict[str, Any]:
    advantage = 2 * ndtr(math.sqrt(ledger.mu_squared) / 2) - 1
    mu, own = math.sqrt(ledger.mu_squared), float(own_delta(ledger))
    but = f", but for events of probability {own:.2g}" if ledger.reserved else ""
    several = "" if ledger.says_whose else f" For more rows of a person: {of_several_rows(ledger)}."
    apart = (
        f" People are told apart by the column {ledger.people!r}; all rows without a value there "
        "count as one person's, and a person's further rows were not read."
    )
    apart = "" if ledger.people is None else apart
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
            f"{ledger.epsilon:g} at delta {ledger.delta:g}. {under_other(ledger)} The best "
            "attacker who decides between two neighbors has an advantage of at most "
            f"{math.ceil(1_000 * (advantage + own)) / 1_000:.3f}."
        ),
    }


def _deployment_model(release: Release | None, ledger: PrivacyLedger) -> dict[str, str]:
    own = ledger if release is None else release.ledger
    kind, details = (
        "One release",
        "All that the ledger holds was spent on this release. More may be asked of the same table "
        "later: it would be added to the same ledger.",
    )
    if len(ledger.charges) > len(own.charges):
        kind, details = (
            "Many releases",
            "The ledger holds earlier releases of the same people's rows: epsilon, delta and rho "
            f"are of all together. This release alone has epsilon {own.spent():.6g} at delta "
            f"{own.delta:g}.",
        )
    return {
        "model_name": "Central",
        "model_name_details": (
            "One curator holds the table. Noisy answers, and what follows from them, are all that "
            "left the fit."
        ),
        "actors": "",
        "release_type": kind,
        "release_type_details": details,
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
    entries = []
    for what, mechanism, _, _, _, scale, shared in ledger_table(ledger).rows:
        kind = "range " if scale.startswith("eps") else "noise sd " if scale[0].isdigit() else ""
        noise = "" if scale == "none" else f", {kind}{scale}"
        entries.append(f"{what} ({mechanism}{noise}, {shared})")
    return (
        "Gaussian differential privacy: mu² adds up over questions, also where later ones depend "
        "on earlier answers, in exact fractions; deltas add up. The questions with their mechanism "
        f"and their share of the budget: {listed(entries, 20)}."
    )


def _preprocessing(about: About) -> str:
    looked = "All values of columns were declared, and none was looked for."
    if found := [name for name, facts in about.discovered.items() if facts]:
        looked = (
            f"What was not declared of {listed(found)} was found with noise, charged to the same "
            "ledger."
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
