"""A short text for the methods section of a paper, of the facts of a fit. Public."""

import math
from collections.abc import Callable
from importlib.metadata import version

from sdv_privpgd.base.words import in_rows
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.method import Method
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery
from sdv_privpgd.report.assumed import CONFIDENT, About
from sdv_privpgd.report.page import Items, Section, Text

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


def methods_section(about: About, release: Release, ledger: PrivacyLedger) -> Section:
    """The text, and the references that it names by number."""
    references: list[str] = []

    def cited(work: str) -> str:
        if work not in references:
            references.append(work)
        return f"[{references.index(work) + 1}]"

    paragraphs = [
        f"{_made(about, release, ledger)} {_asked(about, release, cited)} {_fitted(about, cited)}",
        _promise(ledger, cited),
    ]
    if any(isinstance(each.query, MarginalQuery) for each in release.measurements):
        paragraphs.append(_INTERVALS)
    return Section(
        "For a methods section",
        [
            Text("The facts of this fit, in sentences to be pasted and shortened.", quiet=True),
            *map(Text, paragraphs),
            Items([f"[{place}] {work}" for place, work in enumerate(references, start=1)]),
        ],
    )


def _made(about: About, release: Release, ledger: PrivacyLedger) -> str:
    total = estimate_total(release.domain, release.measurements)
    rows = in_rows(total.value)
    if ledger.adjacency is Adjacency.ADD_REMOVE:
        rows = (
            f"about {total.value:,.0f} rows (a noisy count; ± {CONFIDENT * total.stddev:,.0f} with "
            "95 % confidence)"
        )
    columns = "column" if len(about.columns) == 1 else "columns"
    return (
        f"We used synthetic rows that were generated with sdv-privpgd {version('sdv-privpgd')} on "
        f"{about.date} from a confidential table of {rows} and {len(about.columns):,} {columns}."
    )


def _asked(about: About, release: Release, cited: Callable[[str], str]) -> str:
    """What was asked, by the method."""
    method = about.method
    assert isinstance(method, Method)
    counted = method.counted(release.measurements)
    if method.citation:
        counted += f" {cited(method.citation)}"
    found = [name for name, facts in about.discovered.items() if facts]
    said = (
        f"Of it were counted {counted}. Gaussian noise, rounded to whole numbers, was added to all "
        f"counts {cited(_GAUSSIAN)}."
    )
    if found:
        said += (
            f" What was not declared of the values of {len(found):,} of the columns was found by "
            "noisy counts as well."
        )
    return f"{said} The other facts on columns (types, declared ranges and categories) are public."


def _fitted(about: About, cited: Callable[[str], str]) -> str:
    """What made rows of the answers, by the engine."""
    engine = getattr(about.method, "made", about.method)
    return f"{engine.title} {cited(engine.citation)}." if engine.citation else f"{engine.title}."


def _promise(ledger: PrivacyLedger, cited: Callable[[str], str]) -> str:
    unit = ledger.unit
    differ = {
        Adjacency.REPLACE_ONE: f"{unit} replaced by any others; the number of rows is public",
        Adjacency.ADD_REMOVE: f"{unit} added or removed; the number of rows is private",
    }[ledger.adjacency]
    return (
        f"All that was released of the table satisfies (ε, δ)-differential privacy "
        f"{cited(_DEFINITION)} with ε = {ledger.spent():.4g} and δ = {ledger.delta:g}, where two "
        f"tables are neighbors if one is the other with {differ}. It was accounted for exactly, as "
        f"{math.sqrt(ledger.mu_squared):.4g}-Gaussian differential privacy {cited(_GAUSSIAN)} over "
        f"{len(ledger.charges):,} sets of questions."
    )
