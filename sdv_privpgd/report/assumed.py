"""The head of the public page: what was fitted, and which facts were taken to be public."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from sdv_privpgd.base.words import listed, number
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.page import Details, Facts, Items, Part, Section, Text, long_table
from sdv_privpgd.synthesize.engine import Engine

CONFIDENT = 1.96
"""The truth lies within so many standard deviations of an answer in 95 of 100 cases."""


@dataclass(frozen=True, kw_only=True)
class About:
    """A description of a fit. Public.

    Attributes:
        table: The table's name.
        date: The date of the fit.
        method: What chose the questions and made rows of the answers; an engine made rows alone.
        columns: SDV's facts on each column, in order.
        keys: The names of its keys.
        declared: What is declared of the modelled ones.
        discovered: What was found of them privately.
        settings: The other settings of the fit, by name.
        visits: The order of a person's rows, if they are in order.
        prior: Whose public rows the fit leaned on, a sentence each.
        constraints: What rows are declared to meet, in words.
    """

    table: str
    date: str
    method: Engine
    columns: Mapping[str, Mapping]
    keys: Sequence[str]
    declared: Mapping[str, ColumnFacts]
    discovered: Mapping[str, ColumnFacts]
    settings: Mapping[str, Any]
    visits: Visits | None = None
    prior: Sequence[str] = ()
    constraints: Sequence[str] = ()


def subject(about: About, release: Release | None, adjacency: Adjacency) -> Facts:
    """The fit at a glance: the table, the date and the method."""
    return Facts(
        [
            ("table", about.table),
            ("fitted on", about.date),
            ("rows", _rows(release, adjacency)),
            ("columns", f"{len(about.columns):,}"),
            ("method: questions + rows", " + ".join(about.method.parts)),
            ("program", f"sdv-privpgd {version('sdv-privpgd')}"),
        ]
    )


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
    if use is None:
        return {"rows": list(about.prior)}
    moved = [{"columns": list(clique), "share": share} for clique, share in use.moved.items()]
    return {
        "rows": list(about.prior),
        "is_used": use.is_used,
        "num_rows": use.num_rows,
        "effective_rows": use.effective_rows,
        "trust": use.trust,
        "moved": moved,
    }


def _rows(release: Release | None, adjacency: Adjacency) -> str:
    """The number of rows, as far as it is public."""
    if release is None:
        return "not asked"
    total = estimate_total(release.domain, release.measurements)
    if adjacency is Adjacency.REPLACE_ONE:
        return f"{total.value:,.0f}"
    return f"about {total.value:,.0f} ± {CONFIDENT * total.stddev:,.0f} (noisy)"


def assumed_section(about: About, adjacency: Adjacency) -> Section:
    """The facts that were taken to be public, so that no noise protects them."""
    rows = [column_words(name, about) for name in about.columns]
    shown: list[Part] = [
        Text("Nothing protects these facts. Were one of them secret, the promise would not hold."),
        Items(assumed_facts(adjacency, about.prior)),
        *long_table(
            "Columns: what was declared, and what was found with noise",
            ("column", "kind", "declared: taken as public", "found privately"),
            rows,
            texts=4,
        ),
        Details("The settings, as the program has them", _settings(about)),
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


def facts_in_words(facts: Mapping[str, Any]) -> str:
    """SDV's facts on a column's values, in a few words."""
    parts = []
    if facts.get("range_min") is not None or facts.get("range_max") is not None:
        parts.append(f"{_end(facts.get('range_min'))} to {_end(facts.get('range_max'))}")
    places, increment = facts.get("decimal_places"), facts.get("increment")
    if increment is not None:
        parts.append(f"multiples of {increment}")
    elif places is not None:
        parts.append("whole numbers" if places == 0 else f"{places} decimal places")
    if facts.get("range_values") is not None and len(facts["range_values"]):
        values = [str(value) for value in facts["range_values"]]
        count = f"{len(values):,} values" if len(values) > 1 else "one value"
        parts.append(f"{count}: {listed(values)}")
    if facts.get("other_value") is not None:
        parts.append(f"all others are {facts['other_value']!r}")
    if facts.get("range_is_nullable") is not None:
        parts.append("may be missing" if facts["range_is_nullable"] else "never missing")
    if facts.get("cut_points") is not None:
        parts.append(f"where values lie, in {len(facts['cut_points']) + 1:,} steps")
    if facts.get("true_value") is not None:
        parts.append(f"true is {facts['true_value']!r}, false {facts['false_value']!r}")
    if facts.get("groups") is not None:
        parts.append(f"groups of {len(facts['groups']):,} codes")
    if facts.get("prefix") is not None:
        parts.append(f"by the first {facts['prefix']} characters")
    if facts.get("missing_codes") is not None:
        parts.append(f"missing is {listed([*map(repr, facts['missing_codes'])])}")
    formats = map(facts.get, ("datetime_format", "number_format"))
    parts += [f"written {written}" for written in formats if written is not None]
    return "; ".join(parts) or "nothing"


def column_words(name: str, about: About) -> tuple[str, str, str, str]:
    """A column in words: its name, its kind, what was declared of it, and what was found."""
    declared, found = (words_of(facts.get(name)) for facts in (about.declared, about.discovered))
    found = {key: fact for key, fact in found.items() if declared.get(key) is None}
    return (
        name,
        _kind(name, about.columns[name], about.keys),
        facts_in_words(declared or about.columns[name]),
        facts_in_words(found) if found else "–",
    )


def _kind(name: str, known: Mapping, keys: Sequence[str]) -> str:
    sdtype = str(known.get("sdtype", "unknown"))
    return f"{sdtype}, key" if name in keys else sdtype


def _end(value: Any) -> str:
    if value is None:
        return "anything"
    return number(value) if isinstance(value, int | float) else str(value)


def _settings(about: About) -> str:
    lines = [f"{name} = {value!r}" for name, value in about.settings.items()]
    return "\n".join([*lines, f"method: {about.method!r}"])
