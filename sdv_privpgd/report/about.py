"""What a fit is of, what was taken to be public, and what its rows say of themselves. Public."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sdv_privpgd.base.files import DamagedFileError, undamaged
from sdv_privpgd.base.words import listed, number
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.estimate.noisy_tables import Total, estimate_total
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, Measurement
from sdv_privpgd.report.page import Details, Items, Part, Section, Text, long_table
from sdv_privpgd.synthesize.engine import Engine

CONFIDENT = 1.96
"""The truth lies within so many standard deviations of an answer in 95 of 100 cases."""


@dataclass(frozen=True, kw_only=True)
class About:
    """A description of a fit. Public."""

    table: str
    date: str
    method: Engine  # which chose the questions, too, if it is more than an engine
    columns: Mapping[str, Mapping]  # SDV's facts on each, in order
    keys: Sequence[str]
    declared: Mapping[str, ColumnFacts]
    discovered: Mapping[str, ColumnFacts]  # what was found privately
    settings: Mapping[str, Any]  # the others
    visits: Visits | None = None  # the order of a person's rows, if they are in order
    prior: Sequence[str] = ()  # whose public rows the fit leaned on, a sentence each
    doubted: Sequence[str] = ()  # columns of which it forgot where these lie
    constraints: Sequence[str] = ()  # in words


def subject(about: About, release: Release | None) -> list[tuple[str, str]]:
    """The fit at a glance: the table, the date and the method, each fact with its name."""
    rows = release and rows_in_words(estimate_total(release.domain, release.measurements))
    return [
        ("table", about.table),
        ("fitted on", about.date),
        ("rows", rows or "not asked"),
        ("columns", f"{len(about.columns):,}"),
        ("method: questions + rows", " + ".join(about.method.parts)),
        ("program", f"sdv-privpgd {version('sdv-privpgd')}"),
    ]


def facts_about(about: About, release: Release | None) -> dict[str, Any]:
    """What a fit is of, by name."""
    rows = None if release is None else estimate_total(release.domain, release.measurements).value
    columns = {
        name: {
            "sdtype": facts.get("sdtype"),
            "is_key": name in about.keys,
            "declared": words_of(about.declared.get(name)),
            "found": words_of(about.discovered.get(name)),
        }
        for name, facts in about.columns.items()
    }
    return {
        "table": about.table,
        "date": about.date,
        "program": f"sdv-privpgd {version('sdv-privpgd')}",
        "method": repr(about.method),
        "num_rows": rows,
        "columns": columns,
        "settings": about.settings,
        **({} if about.visits is None else {"visits": asdict(about.visits)}),
        **({"prior": prior_facts(about, release)} if about.prior else {}),
    }


def prior_facts(about: About, release: Release | None) -> dict[str, Any]:
    """Whose public rows a fit leaned on, and what became of them, by name."""
    use = getattr(getattr(release, "model", None), "prior", None)
    said = {"rows": list(about.prior), "doubted": list(about.doubted)}
    if use is None:
        return said
    moved = [{"columns": list(clique), "share": share} for clique, share in use.moved.items()]
    return {
        **said,
        "is_used": use.is_used,
        "num_rows": use.num_rows,
        "effective_rows": use.effective_rows,
        "trust": use.trust,
        "moved": moved,
    }


def rows_in_words(rows: Total) -> str:
    """The number of rows, as far as it is public."""
    said = f"{rows.value:,.0f}"
    return f"about {said} ± {CONFIDENT * rows.stddev:,.0f} (noisy)" if rows.stddev else said


def assumed_section(about: About, adjacency: Adjacency) -> Section:
    """The facts that were taken to be public, so that no noise protects them."""
    rows = [column_words(name, about) for name in about.columns]
    settings = [f"{name} = {value!r}" for name, value in about.settings.items()]
    settings.append(f"method: {about.method!r}")
    shown: list[Part] = [
        Text("Nothing protects these facts. Were one of them secret, the promise would not hold."),
        Items(assumed_facts(adjacency, about.prior)),
        *long_table(
            "Columns: what was declared, and what was found with noise",
            ("column", "kind", "declared: taken as public", "found privately"),
            rows,
            texts=4,
        ),
        Details("The settings, as the program has them", "\n".join(settings)),
    ]
    return Section("What was taken to be public", shown, folded=True)


def assumed_facts(adjacency: Adjacency, prior: Sequence[str] = ()) -> list[str]:
    """The kinds of facts that were taken to be public, and each cell of a prior."""
    facts = [
        "the names of the table and of its columns;",
        "each column's sdtype and dtype, format, and which columns are keys. They may have been "
        "detected from the table, and a single value can decide what is detected: they count as "
        "public all the same;",
        "the declared ranges, categories and precisions, and declared constraints;",
        *(f"all cells of the prior: {said};" for said in prior),
        "the settings of the fit.",
    ]
    if adjacency is Adjacency.REPLACE_ONE:
        facts.insert(0, "the number of rows;")
    return facts


def on_visits(visits: Visits) -> list[str]:
    """Sentences on rows in order: how persons are made, and what is not to be read from them."""
    carried = [f"what it had in {list(visits.previous)!r}"] if visits.previous else []
    said = " and ".join([f"how long ago it was ({visits.since!r})", *carried])
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


def facts_in_words(facts: Mapping[str, Any]) -> str:
    """SDV's facts on a column's values, in a few words."""
    known = {key: fact for key, fact in facts.items() if fact is not None}
    values = [str(value) for value in known.get("range_values", ())]
    count = f"{len(values):,} values" if len(values) > 1 else "one value"
    ends = " to ".join(_end(known.get(key)) for key in ("range_min", "range_max"))
    places = known.get("decimal_places")
    said: dict[str, Callable[[Any], str]] = {
        "range_values": lambda _: f"{count}: {listed(values)}",
        "other_value": lambda fact: f"all others are {fact!r}",
        "range_is_nullable": lambda fact: "may be missing" if fact else "never missing",
        "cut_points": lambda fact: f"where values lie, in {len(fact) + 1:,} steps",
        "true_value": lambda fact: f"true is {fact!r}, false {facts['false_value']!r}",
        "groups": lambda fact: f"groups of {len(fact):,} codes",
        "prefix": lambda fact: f"by the first {fact} characters",
        "missing_codes": lambda fact: f"missing is {listed([*map(repr, fact)])}",
        "datetime_format": lambda fact: f"written {fact}",
        "number_format": lambda fact: f"written {fact}",
        "rounding": lambda fact: f"often rounded to {listed([f'{step:,}' for step, _ in fact])}",
    }
    parts = [ends] if known.keys() & {"range_min", "range_max"} else []
    if "increment" in known:
        parts.append(f"multiples of {known['increment']}")
    elif places is not None:
        parts.append("whole numbers" if places == 0 else f"{places} decimal places")
    if not values:
        known.pop("range_values", None)
    parts += [words(known[key]) for key, words in said.items() if key in known]
    return "; ".join(parts) or "nothing"


def column_words(name: str, about: About) -> tuple[str, str, str, str]:
    """A column in words: its name, its kind, what was declared of it, and what was found."""
    declared, found = (words_of(facts.get(name)) for facts in (about.declared, about.discovered))
    found = {key: fact for key, fact in found.items() if declared.get(key) is None}
    return (
        name,
        about.columns[name].get("sdtype", "unknown") + ", key" * (name in about.keys),
        facts_in_words(declared or about.columns[name]),
        facts_in_words(found) if found else "–",
    )


def _end(value: Any) -> str:
    if value is None:
        return "anything"
    return number(value) if isinstance(value, int | float) else str(value)


KEY = b"sdv-privpgd"
"""Of the facts in the metadata of a Parquet file, as JSON."""


def card_facts(release: str, date: str, promise: Mapping[str, Any]) -> dict[str, Any]:
    """What rows of a release, fitted on a date, say of themselves; ``release`` is its id."""
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

    ``first_rows`` gives the first rows, as text, of models whose answers were not kept.
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
    promised = f"made of tables of {facts.get('publisher', 'others')}"
    if "epsilon" in facts:
        promised = f"epsilon {facts['epsilon']:.4g} at delta {facts['delta']:g} for {facts['unit']}"
    return (
        f"Synthetic rows of release {facts['release']}, by {facts['generator']} "
        f"{facts['version']}, fitted on {facts['date']}: {promised}."
    )
