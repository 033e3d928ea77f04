"""Templates of a public domain: facts to fill in, column by column, without a look at a value."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from sdv_privpgd._lazy import need
from sdv_privpgd.columns.declarations import TimeOfDay
from sdv_privpgd.columns.dtypes import chosen, is_decimal, is_of_times, is_whole, on_unreadable
from sdv_privpgd.columns.vocabulary import modelled
from sdv_privpgd.drafting.codebook import read_codebook

if TYPE_CHECKING:
    from sdv.metadata import Metadata

_BLANKS = {
    "numerical": ("range_min", "range_max", "decimal_places"),
    "datetime": ("range_min", "range_max"),
    "categorical": ("range_values", "other_value"),
    "ordinal": ("range_values", "other_value"),
    "boolean": (),
}
"""The facts to fill in for each sdtype, besides whether values may be missing."""

_OF_SCHEMAS = "polars.", "pyarrow."

_OF_ANY = {key: None for keys in _BLANKS.values() for key in keys}
_OF_ANY |= {"datetime_format": None, "range_is_nullable": None}
"""The facts to fill in where the sdtype is not known: those that apply."""


def draft_domain(source: "Metadata | Mapping | pd.Series | pd.DataFrame") -> dict[str, dict]:
    """A template of a public domain, which ``public_domain`` takes, and ``fit_table``'s columns.

    Fill in what is ``None`` from documentation. What stays ``None`` counts as not declared: it is
    found privately, or is SDV's default. No value of the table is looked at.

    Args:
        source: One of

            - SDV's ``Metadata`` of one table, or its dict. Ranges and categories in it are left
              out: detection may have read them off the table. Keys and personal data are left out,
              because they are generated.
            - the dtypes of a table's columns: ``table.dtypes``, a mapping of names to dtypes, or
              ``table.schema`` of Polars or Arrow.
              Categories that a dtype holds are not read. Where a dtype is ``None``, because it is
              not known, the template has the facts of all kinds of columns: fill in those that
              apply.
            - a codebook: a DataFrame with a row for each column of the table, described at
              ``sdv_privpgd.drafting.codebook.read_codebook``.

    Raises:
        ValueError: For other sources, a table of data among them.

    >>> draft_domain({"age": "float64", "smokes": "bool"})["smokes"]
    {'sdtype': 'boolean', 'range_is_nullable': None}
    >>> list(draft_domain({"age": "float64"})["age"])
    ['sdtype', 'range_min', 'range_max', 'decimal_places', 'range_is_nullable']
    >>> "range_values" in draft_domain({"age": None})["age"]
    True
    """
    if isinstance(source, pd.DataFrame):
        found = read_codebook(source)
        return {name: _draft(facts.pop("sdtype"), facts) for name, facts in found.items()}
    source = _dtypes_in(source)
    facts = source if isinstance(source, Mapping | pd.Series) else _as_dict(source)
    if isinstance(facts, Mapping) and {"tables", "columns"} & set(facts):
        columns, keys = table_of(facts)
        return {
            name: _draft(columns[name]["sdtype"], format_of(columns[name]))
            for name in modelled(columns, keys)
        }
    known = listed({name: dtype for name, dtype in facts.items() if dtype is not None})
    drafts = {name: _draft(sdtype_of(name, own), facts_of(own)) for name, own in known.items()}
    return {name: drafts.get(name, dict(_OF_ANY)) for name in map(str, facts.keys())}


def table_of(metadata: "Metadata | Mapping") -> tuple[dict[str, dict], list[str]]:
    """SDV's description of each column of the only table, and its keys."""
    facts = metadata if isinstance(metadata, Mapping) else _as_dict(metadata)
    tables = facts.get("tables", {"table": facts})
    if not isinstance(tables, Mapping) or len(tables) != 1:
        raise ValueError(f"The metadata must be of one table, got {list(tables)!r}.")
    (table,) = tables.values()
    keys = [table.get("primary_key"), *(table.get("alternate_keys") or [])]
    columns = {str(name): dict(known) for name, known in table.get("columns", {}).items()}
    return columns, [key for key in keys if isinstance(key, str)]


def _as_dict(metadata: Any) -> Mapping:
    to_dict = getattr(metadata, "to_dict", None)
    if to_dict is None:
        raise ValueError(
            "A draft is made from SDV's metadata, from table.dtypes or from a codebook, got "
            f"{type(metadata).__name__}."
        )
    return to_dict()


def _draft(sdtype: str, known: Mapping) -> dict:
    """The template of a column, with the facts that are already known."""
    blanks = dict.fromkeys((*_BLANKS[sdtype], "range_is_nullable"))
    return {"sdtype": sdtype, **blanks, **known}


def format_of(known: Mapping) -> dict:
    """The metadata's date format, since a blank in its place would mean that there is none."""
    keys = ("datetime_format",) if known["sdtype"] == "datetime" else ()
    return {key: known.get(key) for key in keys}


_SDTYPE_OF_KIND = {**dict.fromkeys("iuf", "numerical"), "b": "boolean", "M": "datetime"}


def draft_metadata(dtypes: Mapping | pd.Series, *, table_name: str = "table") -> "Metadata":
    """SDV's metadata of a table with these dtypes, as in ``draft_metadata(table.dtypes)``.

    Integers and floats are numerical, booleans boolean, dates datetime, and all else is
    categorical. No cell is looked at. SDV's detection reads cells, so a single row can change what
    it finds. Ids, personal data, keys and orders cannot be recognized by their dtype: set them in
    the metadata. Dtypes that pandas has inferred from a file may depend on a single cell; name them
    when you read the file.

    Args:
        dtypes: Columns and their dtypes, or the schema of a table of Polars or Arrow.
        table_name: The name that SDV gives the table.

    Raises:
        ValueError: For anything but a mapping of columns to dtypes, and for dtypes without an
            sdtype, such as timedeltas.

    >>> metadata = draft_metadata({"age": "int8", "ward": "object"})
    >>> metadata.tables["table"].columns["age"]
    {'sdtype': 'numerical'}
    """
    need("draft_metadata", "sdv")
    from sdv.metadata import Metadata

    columns = {name: {"sdtype": sdtype_of(name, kind)} for name, kind in listed(dtypes).items()}
    return Metadata.load_from_dict({"tables": {table_name: {"columns": columns}}})


def listed(dtypes: Mapping | pd.Series) -> dict[str, Any]:
    """The dtype of each column, under SDV's names, which are text."""
    dtypes = _dtypes_in(dtypes)
    if isinstance(dtypes, pd.DataFrame):
        raise ValueError("A table has values, which are private: pass table.dtypes instead.")
    if not isinstance(dtypes, Mapping | pd.Series):
        raise ValueError(
            f"dtypes must map columns to dtypes, as table.dtypes does, got {type(dtypes).__name__}."
        )
    found = {str(name): _dtype(str(name), dtype) for name, dtype in dtypes.items()}
    if len(found) < len(dtypes):
        raise ValueError("Two columns have the same name. Rename one of them.")
    return found


def _dtypes_in(source: Any) -> Any:
    """The dtypes of a schema of Polars or Arrow. Anything else stays what it is."""
    if type(source).__name__ != "Schema" or not type(source).__module__.startswith(_OF_SCHEMAS):
        return source
    from sdv_privpgd.columns.arrow_dtypes import typed

    return typed(source).dtypes


def _dtype(name: str, dtype: Any) -> Any:
    try:
        return pd.api.types.pandas_dtype(dtype)
    except Exception:  # noqa: BLE001 - its text may hold cells
        # Anything else than a dtype may be a cell, so it is not repeated.
        raise ValueError(
            f"Column {name!r} has a {type(dtype).__name__} in place of a dtype. Pass table.dtypes, "
            "or table.schema of Polars or Arrow."
        ) from None


def sdtype_of(name: str, dtype: Any) -> str:
    """SDV's word for what a column of the dtype holds. Categories of the dtype are not read."""
    if isinstance(dtype, pd.CategoricalDtype):
        return "categorical"
    for sentence in on_unreadable({name: dtype}):
        raise ValueError(sentence)
    if is_decimal(dtype):
        return "numerical"
    if is_of_times(dtype):
        return "datetime"
    return _SDTYPE_OF_KIND.get(dtype.kind, "categorical")


def facts_of(dtype: Any) -> dict[str, Any]:
    """What the dtype says of values: whole numbers, or times of the day."""
    if is_of_times(dtype):
        return dict(TimeOfDay())
    # NumPy's int64 is not chosen: pandas infers it, or float64 if a cell is missing.
    is_chosen = is_whole(dtype) and chosen(dtype) is not None
    return {"decimal_places": 0} if is_chosen else {}
