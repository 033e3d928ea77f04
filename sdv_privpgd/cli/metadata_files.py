"""Reads the documents that options name: metadata, declarations and constraints. Public."""

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from sdv_privpgd._lazy import is_there
from sdv_privpgd.base.files import DamagedFileError, undamaged
from sdv_privpgd.cli.messages import CommandError, own_errors, reason
from sdv_privpgd.columns.vocabulary import KEYS, MODELLED
from sdv_privpgd.constraints import kinds
from sdv_privpgd.drafting.files import read_domain
from sdv_privpgd.drafting.template import table_of

_TABLE = "table"

_CONSTRAINTS = ("Inequality", "Range", "FixedIncrements", "OneHotEncoding", "FixedCombinations")

_OF_SDV = ("table_name", "learning_strategy")
"""Parameters in SDV's files that say nothing about a table's rows."""

_OF_TYPES = [(key, kind) for kind in MODELLED if kind != "ordinal" for key in KEYS[kind]]
_TYPE_OF_KEY = {k: kind for k, kind in _OF_TYPES if sum(k == key for key, _ in _OF_TYPES) == 1}
"""What each fact says a column holds that is of one type alone, but for ordered categories."""

_ISO = re.compile(r"\d{4}-\d\d?(-|$)")


def read_metadata(path: Path) -> dict[str, Any]:
    """SDV's metadata of one table as a dictionary. SDV checks it where it is installed."""
    facts = read_json(path)
    if isinstance(facts, dict) and "tables" not in facts:
        facts = {"tables": {_TABLE: facts}}
    _require_sdtypes(path, facts)
    if is_there("sdv"):
        from sdv.metadata import Metadata

        try:
            facts = Metadata.load_from_dict(facts).to_dict()
        except Exception as error:  # noqa: BLE001 - public as well, whatever SDV raises
            text = " ".join(str(error).split())
            raise CommandError(f"{path} is not SDV's metadata: {text}") from None
    try:
        table_of(facts)
    except (AttributeError, TypeError, ValueError) as error:
        raise CommandError(f"{path} is not SDV's metadata: {error}") from None
    return facts


def _require_sdtypes(path: Path, facts: Any) -> None:
    """Raises ``CommandError`` for columns whose sdtype a draft has left to be filled in."""
    with suppress(AttributeError, KeyError, TypeError):  # no metadata, which is said later
        described = [
            each for table in facts["tables"].values() for each in table["columns"].items()
        ]
        if blank := [name for name, known in described if known.get("sdtype", "") is None]:
            raise CommandError(
                f"{path}: fill in the sdtype of {blank!r}: numerical, categorical, ordinal, "
                "boolean, datetime or, where a column is not to be modelled, id."
            )


def metadata_of(sdtypes: Mapping[str, str | None]) -> dict[str, Any]:
    """SDV's metadata of a table with columns of these sdtypes."""
    columns = {name: {"sdtype": sdtype} for name, sdtype in sdtypes.items()}
    return {"tables": {_TABLE: {"columns": columns}}, "METADATA_SPEC_VERSION": "V1"}


def read_facts(path: Path | None, decimal: str) -> dict[str, dict]:
    """Reads the public domain, a mapping from columns to facts, from JSON or YAML."""
    try:
        with own_errors(ValueError, ImportError):  # public: it is documentation
            return {} if path is None else read_domain(path, decimal=decimal)
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {reason(error)}.") from None


def read_constraints(
    path: Path | None, tables: Collection[str] = ()
) -> dict[str, list[kinds.Constraint]]:
    """Reads constraints in SDV's form: a list of ``{"class_name": ..., "parameters": {...}}``.

    They are by the ``table_name`` among their parameters, which must be one of several ``tables``.
    """
    listed = [] if path is None else read_json(path)
    if not isinstance(listed, list):
        raise CommandError(f"--constraints {path} must hold a list of constraints.")
    found: dict[str, list[kinds.Constraint]] = {}
    for number, each in enumerate(listed, 1):
        where = f"--constraints {path}, number {number}"
        constraint = _constraint(each, where)
        table = each["parameters"].get("table_name") if tables else ""
        if tables and table not in tables:
            raise CommandError(
                f"{where}: parameters must have a table_name of {', '.join(sorted(tables))}."
            )
        found.setdefault(table, []).append(constraint)
    return found


def _constraint(written: Any, where: str) -> kinds.Constraint:
    if not isinstance(written, Mapping) or set(written) != {"class_name", "parameters"}:
        raise CommandError(f'{where} must be {{"class_name": ..., "parameters": {{...}}}}.')
    name, parameters = written["class_name"], written["parameters"]
    if name not in _CONSTRAINTS:
        raise CommandError(f"{where}: class_name must be one of {', '.join(_CONSTRAINTS)}.")
    if not isinstance(parameters, Mapping):
        raise CommandError(f"{where}: parameters must be a mapping of names to values.")
    try:
        return getattr(kinds, name)(**{k: v for k, v in parameters.items() if k not in _OF_SDV})
    except (TypeError, ValueError) as error:
        raise CommandError(f"{where}: {name}: {' '.join(str(error).split())}") from None


def declared_type(facts: Any) -> str | None:
    """The type that facts on a column say it has; ``None`` if they say none, or several."""
    if not isinstance(facts, Mapping):
        return None
    if facts.get("sdtype") is not None:
        return facts["sdtype"]
    said = {kind for key, kind in _TYPE_OF_KEY.items() if facts.get(key) is not None}
    for end in (facts.get("range_min"), facts.get("range_max")):
        if isinstance(end, int | float) and not isinstance(end, bool):
            said.add("numerical")
        # A date of YAML, or text that begins as one in ISO 8601.
        elif isinstance(end, date) or (isinstance(end, str) and _ISO.match(end)):
            said.add("datetime")
    return said.pop() if len(said) == 1 else None


def has_format(facts: Any) -> bool:
    """Whether facts on a column declare how its dates are written."""
    return isinstance(facts, Mapping) and isinstance(facts.get("datetime_format"), str)


def read_json(path: Path) -> Any:
    """Reads a document in JSON."""
    with own_errors(DamagedFileError), undamaged(path, "JSON"):  # public: it is documentation
        return json.loads(path.read_text(encoding="utf-8-sig"))
