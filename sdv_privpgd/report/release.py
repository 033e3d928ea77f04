"""The public page of a fit: columns and pairs in pictures, what is promised, and all tables.

Nothing here is private: all of it follows from a release and the public description of the columns.
The noisy tables are files inside the page.
"""

import gzip
import io
import math
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from fractions import Fraction
from html import escape
from importlib.metadata import version

import pandas as pd

from sdv_privpgd.base.words import in_rows, listed, share
from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.inference.intervals import Total
from sdv_privpgd.inference.tables import CONSISTENT, MEASURED, noisy_tables
from sdv_privpgd.methods.method import Method
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.report.assumed import (
    CONFIDENT,
    About,
    assumed_section,
    facts_about,
    prior_facts,
    subject,
)
from sdv_privpgd.report.fit import ColumnEstimate, column_estimates, fit_sections
from sdv_privpgd.report.page import Facts, Items, Page, Part, Report, Section, Text, long_table
from sdv_privpgd.report.privacy import (
    guarantee_facts,
    ledger_section,
    meaning_section,
    privacy_report,
    protected,
    what_counts,
)
from sdv_privpgd.report.warnings import OPENING, usable
from sdv_privpgd.synthesize.engine import Engine


def release_page(
    release: Release | None,
    ledger: PrivacyLedger,
    schema: Schema,
    about: About,
    *,
    notes: Sequence[str] = (),
) -> Page:
    """The page of a fit; ``release`` is None where no column was modelled.

    ``notes`` are public sentences on what is worth a look. Users call ``FittedTable.report`` or a
    synthesizer's ``report``, which write the page.
    """
    shown, folded = model_sections(release, schema)
    if release is not None:
        folded.append(methods_section(about, release, ledger))
    line, worth = opening(schema, about, notes)
    facts = subject(about, release, ledger.adjacency).facts
    return Page(
        title=f"Synthetic rows of {about.table!r}",
        lead=[
            Text(line),
            Text(protected(ledger)),
            Facts([*facts, *guarantee_facts(ledger)]),
        ],
        sections=[
            *shown,
            *worth,
            *visits_sections(about.visits),
            *prior_sections(about, release),
            meaning_section(ledger),
            assumed_section(about, ledger.adjacency),
            ledger_section(ledger),
            *folded,
        ],
    )


def opening(schema: Schema, about: About, notes: Sequence[str]) -> tuple[str, list[Section]]:
    """The first line of a page, on how many columns are usable, and the list of what is noted.

    The line says how many notes there are, since the list stands below the pictures.
    """
    line, rest = usable(notes, sum(column.name in about.columns for column in schema.columns))
    if not rest:
        return line, []
    are = "is 1 note" if len(rest) == 1 else f"are {len(rest):,} notes"
    return f"{line} There {are} below the pictures.", noted(rest)


def noted(notes: Sequence[str]) -> list[Section]:
    """The list of what is worth a look, if there is something."""
    return [Section(OPENING.rstrip(":"), [Items(notes)])] if notes else []


def model_sections(release: Release | None, schema: Schema) -> tuple[list[Section], list[Section]]:
    """The sections with a model's pictures, and those that are folded at the end of a page."""
    if release is None:
        return [], []
    estimates = column_estimates(release, schema)
    shown, folded = fit_sections(release, schema, estimates)
    if estimates:
        hidden = hidden_section(release, schema, estimates)
        folded = [hidden, *folded, download_section(release, schema, estimates)]
    return shown, folded


def release_report(
    release: Release | None,
    ledger: PrivacyLedger,
    schema: Schema,
    about: About,
    *,
    notes: Sequence[str] = (),
) -> Report:
    """What a fit is of, what was spent and how well its rows fit the noisy answers. Public."""
    return Report(
        text=privacy_report(ledger, notes=notes),
        page=release_page(release, ledger, schema, about, notes=notes),
        facts={
            "report": "privacy",
            "public": True,
            **facts_about(about, release),
            "epsilon_spent": ledger.spent(),
            "ledger": ledger.to_dict(),
            "warnings": list(notes),
        },
    )


def on_visits(visits: Visits) -> list[str]:
    """Sentences on rows in order: how persons are made, and what is not to be read from them."""
    told = [f"what it had in {list(visits.previous)!r}"] if visits.previous else []
    said = " and ".join([f"how long ago it was ({visits.since!r})", *told])
    return [
        f"The rows of a person are in order by {visits.by!r}. At most {visits.most} rows of a "
        "person were used, which follow each other, from one on that is drawn by chance.",
        f"Each row is told of the row before it {said}, and how many rows of its person were used. "
        "These columns were counted as others were, and are not in the synthetic rows.",
        f"Synthetic persons have rows in order. {visits.person!r} is made up, and tells them "
        "apart; who is called what means nothing.",
        "A row depends on the row just before it, and on no earlier one: what takes three rows to "
        "be seen, such as a third visit that is due to the first, is not in the synthetic rows.",
        f"Persons with more than {visits.most} rows look shorter: their other rows were left out, "
        "and the first of those that were used counts as their first. So numbers of rows beyond "
        f"{visits.most}, whole histories and the time that they take cannot be read from these "
        "rows.",
        "The time between rows is counted in cells that grow with it: short times are told "
        "apart, and long ones are coarse; within a cell all times are as likely. A row "
        "whose time is missing comes last, with no time between.",
        f"Other columns than {[visits.by, *visits.previous, *visits.context_columns]!r} know "
        "nothing of the row before, and may jump from row to row.",
    ]


def visits_sections(visits: Visits | None) -> list[Section]:
    """The section on rows in order, if they are."""
    if visits is None:
        return []
    first, *rest = on_visits(visits)
    return [Section("Rows of a person in order", [Text(first), Items(rest)])]


def prior_sections(about: About, release: Release | None) -> list[Section]:
    """The section on the public rows that a fit leaned on, if there are any."""
    if not about.prior:
        return []
    facts = prior_facts(about, release)
    if not facts.get("is_used"):
        said = (
            "They say what the columns' values are. Their relations were left out: without them "
            "the rows come nearer to the noisy answers."
        )
        return [Section("Public rows", [Items(about.prior), Text(said)])]
    moved = {each: [m for m in facts["moved"] if len(m["columns"]) == each] for each in (1, 2)}
    said = (
        f"The rows start from these, weighted until they fit the noisy answers: the weighted ones "
        f"tell as much as {facts['effective_rows']:,.0f} of the {facts['num_rows']:,}. Where noise "
        f"hides more, what they say is believed; an answer of the private table counted as "
        f"{1 / facts['trust']:,.3g} rows for each row of it. Noisy answers alone decided that, and "
        "it cost nothing. Intervals of answers do not use the public rows."
    )
    rows = [
        [" x ".join(each["columns"]), f"{100 * each['share']:.3g} %"]
        for number in moved
        for each in moved[number][:10]
    ]
    caption = "Where the believed tables are farthest from the public rows"
    table = long_table(caption, ["columns", "rows that would have to move"], rows)
    return [Section("Public rows", [Items(about.prior), Text(said), *table])]


@dataclass(frozen=True, kw_only=True)
class HiddenValue:
    """A value that noise hides, or that the synthetic rows have far too rarely. Public.

    Attributes:
        column: Its column.
        label: The value, or the values that share a code.
        synthetic: Rows that have it among as many synthetic rows as there are rows.
        estimate: The unbiased estimate of how many rows have it.
        low: The least of the interval that holds that number in 95 of 100 cases.
        high: The most.
    """

    column: str
    label: str
    synthetic: float
    estimate: float
    low: float
    high: float

    @property
    def is_lost(self) -> bool:
        """Whether rows surely have it, and the synthetic rows far fewer."""
        # Synthetic rows have lost a value if they have it less often than this part of the least
        # that is likely.
        fewer = 0.5
        return self.low > 0 and self.synthetic < fewer * self.low


def hidden_values(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> list[HiddenValue]:
    """The values of all categories that may have no rows, or that the synthetic rows have lost.

    Lost ones are first, then those that most rows may have.
    """
    level = 0.95
    total = estimate_total(release.domain, release.measurements).value
    found = []
    for column in schema.columns:
        if not isinstance(column.cells, Categories) or column.name not in estimates:
            continue
        own, labels = estimates[column.name], code_labels(column)
        synthetic = release.model.marginal((column.name,)) * total
        for code in range(column.num_values):
            count = Total(
                float(own.counts[code]),
                float(own.variances[code]),
                num_rows=total,
                low=0.0,
                high=max(total, 0.0),
            )
            low, high = count.interval("table", level)
            value = HiddenValue(
                column=column.name,
                label=labels[code],
                synthetic=float(synthetic[code]),
                estimate=count.value,
                low=low,
                high=high,
            )
            if low <= 0 or value.is_lost:
                found.append(value)
    return sorted(found, key=lambda value: (not value.is_lost, -value.high))


def hidden_section(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> Section:
    """The values that noise hides, with the intervals of how many rows have them."""
    values, heading = hidden_values(release, schema, estimates), "Values that the noise hides"
    if not values:
        said = "There are none: all values of all categories stand out from the noise."
        return Section(heading, [Text(said)], folded=True)
    columns = len({value.column for value in values})
    lost = sum(value.is_lost for value in values)
    sentences = (
        f"{_number(len(values), 'value')} of {_number(columns, 'column')} cannot be told from "
        "values that no row has, or the synthetic rows have lost them. That the synthetic rows "
        "have none or few of a value does not say that nobody has it. Each interval holds the true "
        "number of rows in 95 of 100 cases; up to so many rows may have the value."
    )
    if lost:
        sentences += (
            f" {_number(lost, 'value')}, listed first, surely {'has' if lost == 1 else 'have'} "
            "rows, but the synthetic rows have too few: use the interval."
        )
    parts: list[Part] = [
        Text(sentences),
        *long_table(
            "Values, those that most rows may have first",
            ("value", "column", "synthetic rows", "estimate, rows", "interval, rows"),
            [
                (
                    value.label,
                    value.column,
                    f"{value.synthetic:,.0f}",
                    f"{value.estimate:,.0f}".replace("-", "−"),
                    f"{value.low:,.0f} to {value.high:,.0f}",
                )
                for value in values
            ],
            texts=2,
        ),
    ]
    return Section(heading, parts, folded=True)


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


@dataclass(frozen=True)
class Download:
    """A link to a file that lies in the page. It is made when the page is written."""

    words: str
    name: str
    kind: str
    make: Callable[[], bytes]

    def html(self) -> str:
        """The link, with the size of the file."""
        content = self.make()
        size = (
            f"{len(content) / 1e3:,.0f} kB"
            if len(content) < 1e6
            else f"{len(content) / 1e6:.1f} MB"
        )
        return (
            f'<p class=download><a download="{escape(self.name)}" '
            f'href="data:{self.kind};base64,{b64encode(content).decode()}">'
            f"{escape(self.words)}</a> <span class=quiet>{escape(self.name)}, {size}</span></p>"
        )


def download_section(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> Section:
    """The estimates of all columns, and the noisy tables of columns and pairs, as files."""
    kinds = _kinds(release)
    parts: list[Part] = [
        Text(
            "The noisy tables are what was measured; all else on this page follows from them. They "
            "are as public as the synthetic rows."
        ),
        Download(
            "How many rows have each value of each column, with 95 % intervals",
            "columns.csv",
            "text/csv",
            lambda: columns_csv(schema, estimates),
        ),
    ]
    if kinds:
        parts.append(
            Download(
                f"The {' and the '.join(kinds)} tables of columns and pairs, packed with gzip",
                "noisy_tables.csv.gz",
                "application/gzip",
                lambda: tables_csv(release, schema, kinds),
            )
        )
    lacking = [kind for kind in (MEASURED, CONSISTENT) if kind not in kinds]
    said = (
        f"the {' and '.join(lacking)} tables of pairs, which are too large, and " if lacking else ""
    )
    parts.append(
        Text(
            f"Left out are {said}tables of three columns: the program's "
            'noisy_tables("tables.csv") writes everything.',
            quiet=True,
        )
    )
    return Section("Download the noisy tables", parts, folded=True)


def columns_csv(schema: Schema, estimates: Mapping[str, ColumnEstimate]) -> bytes:
    """One line for each value: the estimated rows, the noise's standard deviation, the interval."""
    parts = []
    for column in schema.attributes:
        if column.name in estimates:
            own = estimates[column.name]
            stddev = own.variances**0.5
            low, high = own.counts - CONFIDENT * stddev, own.counts + CONFIDENT * stddev
            rows = {"column": column.name, "label": code_labels(column), "estimate": own.counts}
            ends = {"low": low.clip(min=0), "high": high.clip(min=0)}
            parts.append(pd.DataFrame({**rows, "stddev": stddev, **ends}))
    return _csv(pd.concat(parts, ignore_index=True))


def tables_csv(release: Release, schema: Schema, kinds: list[str]) -> bytes:
    """The noisy tables of at most two columns, as ``noisy_tables`` writes them, packed."""
    frame = noisy_tables(release, schema, kinds=kinds, most=2)
    # Without a time of packing: pages of the same answers are the same.
    return gzip.compress(_csv(frame), mtime=0)


def _csv(frame: pd.DataFrame) -> bytes:
    rounded = frame.round({"estimate": 2, "stddev": 4, "low": 2, "high": 2})
    text = io.StringIO()
    rounded.to_csv(text, index=False, float_format="%.12g", lineterminator="\n")
    return text.getvalue().encode()


_MOST_CELLS = 40_000
"""Cells in a file of pairs: at most half a megabyte in a page."""


def _kinds(release: Release) -> list[str]:
    """The kinds of tables whose cells are few enough together, those that were measured first."""
    tables = [
        each
        for each in release.measurements
        if isinstance(each.query, MarginalQuery | GroupedMarginalQuery)
        and len(each.query.clique) <= 2
    ]
    asked = [each.query.clique for each in tables if isinstance(each.query, MarginalQuery)]
    cells = {
        MEASURED: sum(each.answer.size for each in tables),
        CONSISTENT: sum(
            map(release.domain.size, {frozenset(clique): clique for clique in asked}.values())
        ),
    }
    found, left = [], _MOST_CELLS
    for kind, number in cells.items():
        if asked and number <= left:
            found.append(kind)
            left -= number
    return found


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
    """A text for a methods section. Public.

    Attributes:
        paragraphs: The text, which names references by number.
        references: The works, in the order of their numbers.
    """

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
        done = _made(about, release, ledger), _asked(about, release, cited), fitted_by(about, cited)
        paragraphs.append(" ".join(done))
    paragraphs.append(f"{_promise(ledger, cited)}{_spent_on(ledger)}")
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
    rows = in_rows(total.value)
    if ledger.adjacency is Adjacency.ADD_REMOVE:
        rows = (
            f"about {total.value:,.0f} rows (a noisy count; ± {CONFIDENT * total.stddev:,.0f} with "
            "95 % confidence)"
        )
    return (
        f"We used synthetic rows that were generated with sdv-privpgd {version('sdv-privpgd')} on "
        f"{about.date} from a confidential table of {rows} and "
        f"{_number(len(about.columns), 'column')}."
    )


def _asked(about: About, release: Release, cited: Callable[[str], str]) -> str:
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
    found = [name for name, facts in about.discovered.items() if facts]
    if found:
        said.append(
            f"What was not declared of the values of {_number(len(found), 'column')} "
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
    parts: dict[str, Fraction] = {}
    for charge in ledger.charges:
        what = charge.what.split(":")[0]
        parts[what] = parts.get(what, Fraction(0)) + charge.mu_squared
    total = sum(parts.values())
    most = sorted(parts, key=lambda what: -parts[what])[:3]
    shares = [f"{what} ({share(float(parts[what] / total))})" for what in most if parts[what]]
    said = (
        f" Of the privacy loss, measured by μ², most went to: {', '.join(shares)}."
        if shares
        else ""
    )
    return f"{said} {' '.join(what_counts(ledger).split())}".rstrip()


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
