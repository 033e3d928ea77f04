"""What the arguments of ``fit_table`` say: how much may be spent, and what is public of a table."""

from collections.abc import Mapping

from sdv_privpgd.columns.vocabulary import MODELLED
from sdv_privpgd.fitting.checks import check
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.settings import People, Settings
from sdv_privpgd.methods.importance import Target, importance_of, weighed
from sdv_privpgd.methods.method import Method
from sdv_privpgd.methods.names import method_of


def asked(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float = 1e-5,
    *,
    adjacency: str = "replace_one",
    people: People | None = None,
    discovery_share: float = 0.2,
    method: Method | str = "privpgd",
    target: Target = None,
    seed: int = 0,
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
    described = {str(name): require_sdtype(str(name), facts) for name, facts in columns.items()}
    settings = Settings(
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,  # pyright: ignore[reportArgumentType]  (it is parsed)
        people=people,  # pyright: ignore[reportArgumentType]  (it is checked)
        discovery_share=discovery_share,
        seed=seed,
        method=weighed(method_of(method, seed=seed), importance_of(target)),
    )
    description = Description(
        columns={name: {"sdtype": facts["sdtype"]} for name, facts in described.items()},
        public_domain={
            name: {key: fact for key, fact in facts.items() if key != "sdtype"}
            for name, facts in described.items()
        },
        num_bins=settings.method.num_bins,
        discovers=bool(settings.discovery_share),
        visits=settings.people.visits,
    )
    check(settings, description)
    if not description.discovers:
        _ = description.schema  # what is not declared cannot be found
    return settings, description


def require_sdtype(name: str, facts: Mapping) -> dict:
    """The facts on a column with its sdtype. Raises ``ValueError`` where it is not declared."""
    if not isinstance(facts, Mapping):
        raise ValueError(
            f"columns[{name!r}] must be a declaration such as Numerical(0, 120) or a dictionary "
            f"with an sdtype, got {facts!r}."
        )
    found = {"sdtype": getattr(facts, "sdtype", None), **facts}
    if found["sdtype"] not in MODELLED:
        raise ValueError(
            f"columns[{name!r}] needs one of the sdtypes {list(MODELLED)!r}, got "
            f"{found['sdtype']!r}. Leave out keys, ids and personal data: they are not modelled."
        )
    return found
