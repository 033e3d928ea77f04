"""What a page says of rows of a person in order: what is added to rows, and what it cannot do."""

from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.report.page import Items, Section, Text


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
        f"Other columns than {[visits.by, *visits.previous, *visits.per_person]!r} know nothing of "
        "the row before, and may jump from row to row.",
    ]


def visits_sections(visits: Visits | None) -> list[Section]:
    """The section on rows in order, if they are."""
    if visits is None:
        return []
    first, *rest = on_visits(visits)
    return [Section("Rows of a person in order", [Text(first), Items(rest)])]
