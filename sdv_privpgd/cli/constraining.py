"""Reads SDV's constraints from JSON. Public: no constraint learns from the table."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd.cli.documents import read_json
from sdv_privpgd.cli.saying import CommandError, in_options

if TYPE_CHECKING:
    from sdv_privpgd.plugin.base import PrivateSynthesizer

_NAMES = ("Inequality", "Range", "FixedIncrements", "OneHotEncoding", "FixedCombinations")


def add_constraints(synthesizer: "PrivateSynthesizer", path: Path) -> None:
    """Adds the constraints of a file. Raises ``CommandError`` for what no fit can take in.

    The file has SDV's form: a list of ``{"class_name": ..., "parameters": {...}}``.
    """
    from sdv.cag._errors import ConstraintNotMetError
    from sdv.errors import SynthesizerInputError

    listed = read_json(path)
    if not isinstance(listed, list):
        raise CommandError(f"--constraints {path} must hold a list of constraints.")
    constraints = [_constraint(each, path, place) for place, each in enumerate(listed, start=1)]
    try:
        synthesizer.add_constraints(constraints)
    except (SynthesizerInputError, ConstraintNotMetError, ValueError) as error:
        raise CommandError(f"--constraints {path}: {in_options(error)}") from None


def _constraint(written: Any, path: Path, place: int) -> Any:
    from sdv import cag

    from sdv_privpgd import FixedCombinations

    where = f"--constraints {path}, number {place}"
    if not isinstance(written, Mapping) or set(written) != {"class_name", "parameters"}:
        raise CommandError(f'{where} must be {{"class_name": ..., "parameters": {{...}}}}.')
    name, parameters = written["class_name"], written["parameters"]
    if name not in _NAMES:
        raise CommandError(f"{where}: class_name must be one of {', '.join(_NAMES)}.")
    if not isinstance(parameters, Mapping):
        raise CommandError(f"{where}: parameters must be a mapping of names to values.")
    kind = FixedCombinations if name == "FixedCombinations" else getattr(cag, name)
    try:
        return kind(**parameters)
    except Exception as error:  # noqa: BLE001 - public, whatever SDV raises: it is documentation
        raise CommandError(f"{where}: {name}: {' '.join(str(error).split())}") from None
