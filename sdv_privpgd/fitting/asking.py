"""What the arguments of ``fit_table`` say: how much may be spent, and what is public of a table."""

from collections.abc import Mapping, Sequence

from sdv_privpgd.columns.keys import keys_of
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.columns.vocabulary import MODELLED
from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.constraints.limits import Constraints
from sdv_privpgd.fitting.checks import check
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.importance import importance_of, weighed
from sdv_privpgd.methods.method import Method
from sdv_privpgd.methods.names import method_of


def asked(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float = 1e-5,
    *,
    adjacency: str = "replace_one",
    rows_per_person: int = 1,
    person_column: str | None = None,
    weigh_people: bool = False,
    discovery_share: float = 0.2,
    num_bins: int | None = None,
    method: Method | str = "privpgd",
    target: str | Sequence[str] | None = None,
    importance: Mapping[str, float] | None = None,
    seed: int = 0,
    sequence_by: str | None = None,
    previous: Sequence[str] | str = (),
    per_person: Sequence[str] | str = (),
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
    described = {
        str(name): require_sdtype(str(name), facts, (*MODELLED, "id"))
        for name, facts in columns.items()
    }
    patterns = _patterns(described, sequence_by and person_column)
    for each in constraints:
        if not isinstance(each, Constraint):
            raise ValueError(
                "constraints takes those of sdv_privpgd.constraints, such as Inequality('low', "
                f"'high'), got {each!r}."
            )
    settings = Settings(
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,  # pyright: ignore[reportArgumentType]  (it is parsed)
        rows_per_person=rows_per_person,
        person_column=person_column,
        weigh_people=weigh_people,
        discovery_share=discovery_share,
        seed=seed,
        method=weighed(method_of(method, seed=seed), importance_of(target, importance)),
    )
    description = Description(
        columns={name: {"sdtype": facts["sdtype"]} for name, facts in described.items()},
        keys=tuple(patterns),
        patterns=patterns,
        constraints=Constraints(tuple(constraints)),
        public_domain={
            name: {key: fact for key, fact in facts.items() if key != "sdtype"}
            for name, facts in described.items()
            if name not in patterns
        },
        num_bins=settings.method.num_bins if num_bins is None else num_bins,
        discovers=bool(settings.discovery_share),
        visits=Visits.asked(
            person_column, settings.rows_per_person, sequence_by, previous, per_person
        ),
    )
    check(settings, description)
    if not description.discovers:
        _ = description.schema  # what is not declared cannot be found
    return settings, description


def _patterns(described: Mapping[str, Mapping], person: str | None) -> dict[str, str | None]:
    """Returns the patterns of the keys. Raises ``ValueError`` for one that cannot be counted up.

    The ``person`` is the column of those whose rows are in order, which are numbered.
    """
    found = {name: facts for name, facts in described.items() if facts["sdtype"] == "id"}
    for name, facts in found.items():
        if facts.keys() - {"sdtype", "regex_format"} or name == person:
            raise ValueError(
                f"columns[{name!r}] is a key, got {facts!r}: it has a regex_format alone, and is "
                "no person_column beside sequence_by, which numbers the persons."
            )
        _ = keys_of(name, facts.get("regex_format"))
    return {name: facts.get("regex_format") for name, facts in found.items()}


def require_sdtype(name: str, facts: Mapping, sdtypes: Sequence[str] = MODELLED) -> dict:
    """The facts on a column with its sdtype. Raises ``ValueError`` where it is not declared."""
    if not isinstance(facts, Mapping):
        raise ValueError(
            f"columns[{name!r}] must be a declaration such as Numerical(0, 120) or a dictionary "
            f"with an sdtype, got {facts!r}."
        )
    found = {"sdtype": getattr(facts, "sdtype", None), **facts}
    if found["sdtype"] not in sdtypes:
        raise ValueError(
            f"columns[{name!r}] needs one of the sdtypes {list(sdtypes)!r}, got "
            f"{found['sdtype']!r}. Leave out what is not modelled, such as personal data."
        )
    return found
