"""The arguments of a fit, checked before a row is read, and the table they describe. Public."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sdv_privpgd.base.arguments import check_known, check_names, shown
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.words import listed
from sdv_privpgd.columns.cuts import USUAL_BINS
from sdv_privpgd.columns.facts import NumberFacts, without_domain
from sdv_privpgd.columns.keys import keys_of, on_patterns
from sdv_privpgd.columns.names import on_names
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.vocabulary import MODELLED, misplaced
from sdv_privpgd.constraints.kinds import Constraint, Constraints
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.settings import People, Settings, usual_delta
from sdv_privpgd.inference.question_list import Question, listed_questions, require_questions
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.method import Method, Target, importance_of, method_of, weighed
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.counting import Bound
from sdv_privpgd.synthesize.engine import TABLES


def parse_options(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    adjacency: str = "replace_one",
    people: People | None = None,
    discovery_share: float = 0.2,
    method: Method | str = "privpgd",
    target: Target = None,
    questions: Sequence[Question] = (),
    seed: int = 0,
    constraints: Sequence[Constraint] = (),
) -> tuple[Settings, Description]:
    """The settings and the description that these arguments make, as ``fit_table`` takes them.

    Raises ``ValueError`` for what no fit can ask of such columns.
    """
    if not isinstance(columns, Mapping):
        raise ValueError(
            "columns must be a dictionary from names to declarations, got "
            f"{type(columns).__name__}."
        )
    if not columns:
        raise ValueError(
            "columns names no column: declare those that are to be modelled, as in "
            "columns={'age': Numerical(0, 120)}."
        )
    kinds, others = require_sdtypes(columns, (*MODELLED, "id"))
    rules: Any = constraints if isinstance(constraints, list | tuple) else (constraints,)
    wrong = [each for each in rules if not isinstance(each, Constraint)]
    if wrong:
        raise ValueError(
            "constraints takes those of sdv_privpgd.constraints, such as Inequality('low', "
            f"'high'), got {shown(wrong[0])}."
        )
    settings = Settings(
        epsilon=epsilon,
        delta=usual_delta(adjacency) if delta is None else delta,
        delta_is_usual=delta is None,
        adjacency=adjacency,  # pyright: ignore[reportArgumentType]  (it is parsed)
        people=people,  # pyright: ignore[reportArgumentType]  (it is checked)
        discovery_share=discovery_share,
        seed=seed,
        method=weighed(method_of(method, seed=seed), importance_of(target)),
    )
    visits = settings.people.visits
    patterns = _patterns(kinds, others, None if visits is None else visits.person)
    description = Description.of(
        kinds,
        {name: facts for name, facts in others.items() if name not in patterns},
        keys=tuple(name for name in patterns if not others[name].get("repeats")),
        patterns=patterns,
        constraints=Constraints(tuple(rules)),
        num_bins=settings.method.num_bins,
        discovers=bool(settings.discovery_share),
        visits=visits,
        questions=listed_questions(questions),
    )
    check(settings, description)
    if not description.discovers:
        _ = description.schema  # what is not declared cannot be found
    return settings, description


def _patterns(
    kinds: Mapping[str, Mapping], others: Mapping[str, Mapping], person: str | None
) -> dict[str, str | None]:
    """Returns the patterns of the keys. Raises ``ValueError`` for one that cannot be counted up.

    The ``person`` is the column of those whose rows are in order, which are numbered.
    """
    found = {name: own for name, own in others.items() if kinds[name]["sdtype"] == "id"}
    for name, facts in found.items():
        if facts.keys() - {"regex_format", "repeats"} or name == person:
            raise ValueError(
                f"columns[{name!r}] is a key, got {shown(facts)}: it has a regex_format alone, and "
                "whether it repeats, and is no column of People beside sequence_index, which "
                "numbers the persons."
            )
        _ = keys_of(name, facts.get("regex_format"))
    return {name: facts.get("regex_format") for name, facts in found.items()}


def require_sdtypes(
    columns: Mapping[str, Mapping], sdtypes: Sequence[str] = MODELLED
) -> tuple[dict[str, dict], dict[str, dict]]:
    """The sdtype of each column and the other facts on it, both in SDV's words.

    Raises ``ValueError`` where no sdtype is declared, or one that is not modelled.
    """
    kinds, others = {}, {}
    for name, facts in columns.items():
        if not isinstance(facts, Mapping):
            raise ValueError(
                f"columns[{str(name)!r}] must be a declaration such as Numerical(0, 120) or a "
                f"dictionary with an sdtype, got {shown(facts)}."
            )
        own = {"sdtype": getattr(facts, "sdtype", None), **facts}
        sdtype = own.pop("sdtype")
        if sdtype not in sdtypes:
            raise ValueError(
                f"columns[{str(name)!r}] needs one of the sdtypes {list(sdtypes)!r}, got "
                f"{sdtype!r}. A declaration such as Categorical() has one, and a dictionary names "
                "it. Leave out what is not modelled, such as personal data."
            )
        for said in misplaced(str(name), sdtype, own, "columns") if sdtype in MODELLED else ():
            raise ValueError(said)
        kinds[str(name)], others[str(name)] = {"sdtype": sdtype}, own
    return kinds, others


def check(settings: Settings, description: Description) -> None:
    """Raises for what no fit can ask of these columns, before a row is read."""
    description.require_possible()
    names = list(description.measured)
    codes = Domain(tuple(names), (1,) * len(names))
    pipeline.require_room(settings.method.statistics(codes))
    settings.method.require_settings(codes)
    if settings.people.column in names:
        raise ValueError(
            f"people.column={settings.people.column!r} is a modelled column: rows would name "
            "people. Make it an id in the metadata, or leave it out of the columns."
        )
    weights = settings.people.weight_column
    declared = None if weights is None else description.facts.get(weights)
    require_plain_weights(weights, declared and getattr(declared, "number_format", ""))
    if description.questions:
        known = description.declared_schema.named
        require_questions(description.questions, description.measured, known)
        if getattr(settings.method, "asks", None) != TABLES:
            raise ValueError(
                f"{settings.method.called} asks for no tables of counts, so it takes no questions."
            )
    check_known("target", getattr(settings.method, "importance", ()), names)


def require_plain_weights(name: str | None, declared: Any) -> None:
    """Raises ``ValueError`` if weights are known to be written otherwise than they are read."""
    if declared is not None:
        raise ValueError(
            f"weight_column={name!r} must hold plain numbers such as 1234.5, and its type or "
            "declaration says otherwise. Convert it, name the decimal sign of a CSV file with "
            "CsvFiles(decimal=...), or take its declaration back."
        )


def on_undeclared(settings: Settings, description: Description) -> list[str]:
    """A sentence on columns whose domain is found privately, if there are any."""
    unknown = without_domain(description.undeclared)
    said = (
        f"The ranges or categories of {listed([*map(repr, unknown)])} are not declared: "
        f"{settings.discovery_share:.3g} of the budget finds them privately. Declare them with "
        "public_domain={column: {...}} to save it, or pass public_metadata=True if the metadata "
        "has them from documentation and not from the data."
    )
    return [said] if unknown else []


def notes_on(settings: Settings, description: Description, names: Collection[str]) -> list[str]:
    """Sentences on what is worth a look in columns with these names, by declarations alone."""
    own, is_said = settings.people, settings.people.is_said
    facts = {name: each for name, each in description.facts.items() if name in names}
    said = (
        *description.on_ids(own.column, says_whose=is_said),
        *on_names(facts, says_whose=is_said),
        *description.on_dates,
        *description.on_prior,
        *description.on_wide,
        *description.on_constraints,
        *on_match(settings, description),
        *on_time(settings, description),
    )
    return list(dict.fromkeys(said))


def check_match(settings: Settings, description: Description) -> None:
    """Raises ``MatchError`` where the method cannot model what it will ask.

    Categories that are to be found are taken to be few: a fit looks again once it has found them.
    Numbers and dates that are to be found are taken to have many values.
    """
    sizes, found = _likely_sizes(description, categories=4), without_domain(description.undeclared)
    if sizes:
        many = dict.fromkeys(set(found) - {*description.uncategorized}, NumberFacts(low=0, high=1))
        columns = [*description.declared_schema.columns, *Schema.of(many, USUAL_BINS).columns]
        method = settings.method.for_table(columns, {})
        method.require(Domain(tuple(sizes), tuple(sizes.values())))


def on_match(settings: Settings, description: Description) -> list[str]:
    """A sentence if more than a few categories, once they are found, would end the fit."""
    found, sizes = description.uncategorized, _likely_sizes(description, categories=USUAL_BINS)
    domain = Domain(tuple(sizes), tuple(sizes.values()))
    if not found or settings.method.refusal(domain, settings.method.cliques(domain)) is None:
        return []
    return [
        f"If many categories of {listed([*map(repr, found)])} are found, the fit ends, and what it "
        f"has spent is gone: {' and '.join(settings.method.parts)} may not model so many. Declare "
        "their range_values, or choose a method that measures few pairs, such as 'mst' or 'aim'."
    ]


def on_time(settings: Settings, description: Description) -> list[str]:
    """A sentence if a fit may take minutes, with as many codes as its columns can have."""
    sizes = _likely_sizes(description, categories=4)
    domain = Domain(tuple(sizes), tuple(sizes.values()))
    minutes = math.ceil(settings.method.seconds(domain) / 60)
    if minutes < 2:
        return []
    return [
        f"A fit by {' and '.join(settings.method.parts)} may take up to about {minutes:,} minutes "
        "of one core. The default method is far quicker."
    ]


def _likely_sizes(description: Description, categories: int) -> dict[str, int]:
    """The numbers of codes of columns; of those that are looked into, as many as are worth a fit.

    Of numbers and dates of which nobody says how many a fit has no more than it can model.
    """
    sizes = {column.name: column.size for column in description.declared_schema.columns}
    for name, facts in description.undeclared.items():
        bins = getattr(facts, "num_bins", None) or description.num_bins
        of_numbers = bins + 1 if bins else 16  # one for missing values
        most = categories if name in description.uncategorized else of_numbers
        sizes[name] = min(sizes.get(name, most), most)
    return {name: sizes[name] for name in description.measured if name in sizes}


def opened(
    table: Any,
    description: Description,
    people: Bound,
    objections: Callable[[PrivateTable, Mapping[str, str | None]], list[str]] | None = None,
) -> PrivateTable:
    """The described columns of a table, with ``Settings.people.limit``. No cell is looked at.

    Raises:
        ValueError: If columns are not as described, in one sentence each, or if ``objections``
            to the opened table are raised.
    """
    private, errors = PrivateTable.opened(
        table,
        description.words,
        description.facts,
        has_others=True,
        people=people,
        visits=description.ordered,
    )
    if description.patterns and not errors:
        kept = description.dtypes_kept(private.dtypes)
        errors = on_patterns(description.patterns, kept)
    if objections is not None:
        unique = {name: description.patterns.get(name) for name in description.keys}
        errors = errors or objections(private, unique)
    if errors:
        raise ValueError(" ".join(errors))
    return private


def checked_lost(allow_lost: Collection[str], description: Description) -> tuple[str, ...]:
    """Returns the columns that may be lost. Raises ``ValueError`` for names of no column."""
    names = check_names("allow_lost", allow_lost)
    check_known("allow_lost", names, description.columns, "columns")
    return names
