"""Loads kept models."""

from pathlib import Path

from sdv_privpgd.base.files import DamagedFileError
from sdv_privpgd.cli.saying import PROGRAM, CommandError
from sdv_privpgd.fitting.fitted import FittedTable, UnfinishedTable
from sdv_privpgd.fitting.linked import FittedTables
from sdv_privpgd.fitting.sampled import SavedModel
from sdv_privpgd.sources.dialect import Facts

Model = FittedTable | UnfinishedTable
"""What a fit has paid for, finished or not."""


def kept_in(path: Path) -> SavedModel:
    """Loads any kept model. Raises ``CommandError`` for any other file."""
    require_file(path)
    try:
        return SavedModel.load(path)
    except DamagedFileError as error:
        raise CommandError(str(error)) from None


def paid_for(path: Path, model: SavedModel | None = None) -> Model:
    """Loads what a fit of a table has paid for. Raises ``CommandError`` for any other file."""
    model = kept_in(path) if model is None else model
    if isinstance(model, FittedTable | UnfinishedTable):
        return model
    if isinstance(model, FittedTables):
        raise CommandError(
            f"{path} holds several tables: {PROGRAM} describe takes them, and sample with a folder "
            "as --out."
        )
    raise CommandError(f"{path} holds a {type(model).__name__}, and no fitted table.")


def fitted(path: Path, model: Model | None = None) -> FittedTable:
    """The fitted table in a file, that before its refinement if this was interrupted."""
    found = paid_for(path) if model is None else model
    table = found.last if isinstance(found, UnfinishedTable) else found
    if table is None:
        raise CommandError(
            f"{path} holds a fit that was interrupted after it had paid: {PROGRAM} finish makes a "
            "model of it."
        )
    return table


def unfinished(path: Path) -> UnfinishedTable:
    """Loads a fit that can be finished."""
    found = paid_for(path)
    if isinstance(found, UnfinishedTable):
        return found
    raise CommandError(f"{path} is finished: {PROGRAM} sample writes rows of it.")


def finished(path: Path) -> FittedTable:
    """Loads a fitted table of which all is finished, refinements too."""
    found = paid_for(path)
    if isinstance(found, FittedTable):
        return found
    raise CommandError(
        f"{path} holds a fit that was interrupted after it had paid: {PROGRAM} finish makes a "
        "model of it, which can be refined."
    )


def facts_of(model: Model) -> Facts:
    """The public facts on each column of the model's table."""
    own = model.fitted if isinstance(model, FittedTable) else model.kept
    return {**model.notes.get("columns", {}), **own.description.words}


def require_file(path: Path) -> None:
    """Raises ``CommandError`` if there is no file of a model."""
    if not path.is_file():
        raise CommandError(f"There is no file {path}.")
