"""What the arguments of ``fit_table`` say: how much may be spent, and what is public of a table."""

from collections.abc import Mapping, Sequence

from sdv_privpgd.columns.keys import keys_of
from sdv_privpgd.columns.vocabulary import MODELLED
from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.constraints.limits import Constraints
from sdv_privpgd.fitting.checks import check
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.settings import People, Settings, usual_delta
from sdv_privpgd.methods.method import Method, method_of
from sdv_privpgd.methods.workload import Target, importance_of, weighed


def asked(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    adjacency: str = "replace_one",
    people: People | None = None,
    discovery_share: float = 0.2,
    method: Method | str = "privpgd",
    target: Target = None,
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
    for each in constraints:
        if not isinstance(each, Constraint):
            raise ValueError(
                "constraints takes those of sdv_privpgd.constraints, such as Inequality('low', "
                f"'high'), got {each!r}."
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
        constraints=Constraints(tuple(constraints)),
        num_bins=settings.method.num_bins,
        discovers=bool(settings.discovery_share),
        visits=visits,
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
    found = {name: others[name] for name in kinds if kinds[name]["sdtype"] == "id"}
    for name, facts in found.items():
        if facts.keys() - {"regex_format", "repeats"} or name == person:
            raise ValueError(
                f"columns[{name!r}] is a key, got {facts!r}: it has a regex_format alone, and "
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
                f"dictionary with an sdtype, got {facts!r}."
            )
        own = {"sdtype": getattr(facts, "sdtype", None), **facts}
        sdtype = own.pop("sdtype")
        if sdtype not in sdtypes:
            raise ValueError(
                f"columns[{str(name)!r}] needs one of the sdtypes {list(sdtypes)!r}, got "
                f"{sdtype!r}. Leave out what is not modelled, such as personal data."
            )
        kinds[str(name)], others[str(name)] = {"sdtype": sdtype}, own
    return kinds, others
