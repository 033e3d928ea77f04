"""Loads kept synthesizers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd.base.damage import DamagedFileError, require_sealed, undamaged
from sdv_privpgd.cli.saying import PROGRAM, CommandError, in_options

if TYPE_CHECKING:
    from sdv_privpgd.plugin.base import PrivateSynthesizer


def fitted(path: Path) -> "PrivateSynthesizer":
    """Loads a synthesizer that can make rows. Raises ``CommandError`` for any other file."""
    synthesizer = paid_for(path)
    if synthesizer.get_info()["is_fit"]:
        return synthesizer
    raise CommandError(
        f"{path} holds a fit that was interrupted after it had paid: {PROGRAM} finish makes a "
        "model of it."
    )


def paid_for(path: Path) -> "PrivateSynthesizer":
    """Loads a synthesizer whose fit has paid for something, finished or not."""
    synthesizer = _loaded(path)
    if synthesizer.get_info()["is_fit"] or synthesizer.unfinished is not None:
        return synthesizer
    raise CommandError(f"{path} holds a synthesizer that was not fitted.")


def unfinished(path: Path) -> "PrivateSynthesizer":
    """Loads a synthesizer whose fit can be finished."""
    synthesizer = _loaded(path)
    if synthesizer.unfinished is not None:
        return synthesizer
    if synthesizer.get_info()["is_fit"]:
        raise CommandError(f"{path} is finished: {PROGRAM} sample writes rows of it.")
    raise CommandError(f"{path} holds no answers to finish a fit with.")


def require_file(path: Path) -> None:
    """Raises ``CommandError`` if there is no file of a synthesizer."""
    if not path.is_file():
        raise CommandError(f"There is no file {path}.")


def _loaded(path: Path) -> "PrivateSynthesizer":
    from sdv.errors import VersionError
    from sdv.utils import load_synthesizer

    from sdv_privpgd.plugin.base import PrivateSynthesizer

    require_file(path)
    try:
        with undamaged(path, "synthesizer", VersionError):
            require_sealed(path)
            synthesizer: Any = load_synthesizer(path)
    except (VersionError, DamagedFileError) as error:
        raise CommandError(in_options(error)) from None
    if not isinstance(synthesizer, PrivateSynthesizer):
        raise CommandError(f"{path} holds no synthesizer of this package.")
    return synthesizer
