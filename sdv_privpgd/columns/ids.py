"""Ids that are no keys: several rows may have the same, so a row is protected and not its person.

It follows from the metadata alone, so it is said before a fit as well as after it.
"""

from collections.abc import Collection, Mapping

from sdv_privpgd.columns.naming import WHOSE, is_id


def repeated_ids(columns: Mapping[str, Mapping], keys: Collection[str]) -> tuple[str, ...]:
    """The columns of ids that are no keys of the table. Public."""
    ids = (name for name, facts in columns.items() if facts.get("sdtype") == "id")
    return tuple(name for name in ids if name not in keys)


def on_repeated_ids(names: Collection[str], *, says_whose: bool) -> list[str]:
    """Sentences on ids that are no keys: whether they are ids, and whose rows are protected.

    The latter is not said where somebody has said whose the rows are.
    """
    said = []
    kinds = [name for name in names if not is_id(name)]
    if kinds:
        said.append(
            f"{kinds!r} are ids by their sdtype, perhaps because it was detected, and not by their "
            "names: ids are made up anew, and what the table says in them is lost. If they say of "
            "what kind a row is, give them the sdtype categorical."
        )
    if names and not says_whose:
        said.append(f"The ids {list(names)!r} are no keys of the table. {WHOSE}")
    return said
