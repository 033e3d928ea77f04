"""Columns of dates whose declared range leaves no room for times of the day. Public.

It follows from declarations alone, so it is said before anything is spent.
"""

from collections.abc import Mapping

from sdv_privpgd.columns.facts import ColumnFacts, DateFacts


def on_days(facts: Mapping[str, ColumnFacts]) -> list[str]:
    """A sentence on columns of dates that are counted in days because their ends are days.

    Nothing is said where a format is declared, which says what is written, where both ends are
    Python's ``date``, which has no time, nor of what an earlier fit found (``frequencies``).
    """
    named = [
        name
        for name, each in facts.items()
        if isinstance(each, DateFacts)
        and not (each.lacks_domain or each.of_days or each.datetime_format or each.frequencies)
        and each.unit == "D"
    ]
    if not named:
        return []
    return [
        f"The dates of {named!r} are counted in days, as their declared ends are: times of the day "
        "would be lost. If they have some, declare an end with one, such as '2024-12-31 23:59:59'; "
        "if not, ends that are datetime.date say so, or, where dates are text, their "
        "datetime_format."
    ]
