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
    described = require_sdtypes(columns)
    settings = Settings(
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,  # pyright: ignore[reportArgumentType]  (it is parsed)
        people=people,  # pyright: ignore[reportArgumentType]  (it is checked)
        discovery_share=discovery_share,
        seed=seed,
        method=weighed(method_of(method, seed=seed), importance_of(target)),
    )
    description = Description.of(
        *described,
        num_bins=settings.method.num_bins,
        discovers=bool(settings.discovery_share),
        visits=settings.people.visits,
    )
    check(settings, description)
    if not description.discovers:
        _ = description.schema  # what is not declared cannot be found
    return settings, description


def require_sdtypes(columns: Mapping[str, Mapping]) -> tuple[dict[str, dict], dict[str, dict]]:
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
        if sdtype not in MODELLED:
            raise ValueError(
                f"columns[{str(name)!r}] needs one of the sdtypes {list(MODELLED)!r}, got "
                f"{sdtype!r}. Leave out keys, ids and personal data: they are not modelled."
            )
        kinds[str(name)], others[str(name)] = {"sdtype": sdtype}, own
    return kinds, others
