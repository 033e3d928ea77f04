"""Columns of dates whose declared range leaves no room for times of the day. Public.

It follows from declarations alone, so it is said before anything is spent.
"""

import datetime
from collections.abc import Mapping

from sdv_privpgd.columns.facts import DateFacts
from sdv_privpgd.columns.parsing import read_facts


def on_days(facts: Mapping[str, Mapping]) -> list[str]:
    """A sentence on columns of dates that are counted in days because their ends are days.

    Nothing is said where a format is declared, which says what is written, where both ends are
    Python's ``date``, which has no time, nor of what an earlier fit found (``frequencies``).
    ``facts`` are what is declared of each modelled column, its sdtype among them.
    """
    named = [name for name, each in facts.items() if _is_of_days(name, each)]
    if not named:
        return []
    return [
        f"The dates of {named!r} are counted in days, as their declared ends are: times of the day "
        "would be lost. If they have some, declare an end with one, such as '2024-12-31 23:59:59'; "
        "if not, ends that are datetime.date say so, or, where dates are text, their "
        "datetime_format."
    ]


def _is_of_days(name: str, facts: Mapping) -> bool:
    ends = [facts.get("range_min"), facts.get("range_max")]
    known = facts.get("datetime_format"), facts.get("frequencies")
    if facts["sdtype"] != "datetime" or known != (None, None) or None in ends:
        return False
    if all(
        isinstance(end, datetime.date) and not isinstance(end, datetime.datetime) for end in ends
    ):
        return False
    try:
        read = read_facts(name, facts)
    except ValueError:  # it is refused elsewhere, with its reason
        return False
    return isinstance(read, DateFacts) and read.unit == "D"
