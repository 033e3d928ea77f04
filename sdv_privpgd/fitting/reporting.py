"""The description of a fit that its report, its texts and its registry entry begin with. Public."""

from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.report.about import About


def about_of(fitted: Fitted, settings: Settings, *, table: str, date: str) -> About:
    """Describes a fit of a table of this name, on this date."""
    description = fitted.description
    usual = {"num_bins": description.num_bins, "seed": settings.seed}
    return About(
        table=table,
        date=date,
        method=settings.method,
        columns=description.columns,
        keys=tuple(description.keys),
        declared=description.facts,
        discovered=description.discovered,
        settings=usual if fitted.told is None else fitted.told,
        visits=description.visits,
        prior=() if description.public is None else description.public.said,
        constraints=tuple(map(_in_words, description.constraints.declared)),
    )


def _in_words(constraint: Constraint) -> str:
    of = ", ".join(map(repr, constraint.columns))
    return f"{type(constraint).__name__} of {of}" if of else type(constraint).__name__
