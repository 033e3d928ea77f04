"""Loads kept synthesizers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd.cli.saying import PROGRAM, CommandError, in_options
from sdv_privpgd.damage import DamagedFileError, require_sealed, undamaged

if TYPE_CHECKING:
    from sdv_privpgd.plugin.base import PrivateSynthesizer


def fitted(path: Path) -> "PrivateSynthesizer":
    """Loads a synthesizer that can make rows. Raises ``CommandError`` for any other file.

    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from sdv.metadata import Metadata
    >>> from sdv_privpgd import PrivPGDSynthesizer
    >>> facts = {"tables": {"people": {"columns": {"ill": {"sdtype": "boolean"}}}}}
    >>> metadata = Metadata.load_from_dict(facts)
    >>> own = {"epsilon": 1.0, "engine": "pgm", "verbose": False}
    >>> synthesizer = PrivPGDSynthesizer(metadata, **own)
    >>> synthesizer.fit(pd.DataFrame({"ill": [True, False] * 500}))
    >>> with TemporaryDirectory() as folder:
    ...     synthesizer.save(Path(folder, "model.pkl"))
    ...     fitted(Path(folder, "model.pkl")).sample(3).shape
    (3, 1)
    """
    synthesizer = paid_for(path)
    if synthesizer.get_info()["is_fit"]:
        return synthesizer
    raise CommandError(
        f"{path} holds a fit that was interrupted after it had paid: {PROGRAM} finish makes a "
        "model of it."
    )


def paid_for(path: Path) -> "PrivateSynthesizer":
    """Loads a synthesizer whose fit has paid for something, finished or not.

    >>> paid_for(Path("none.pkl"))
    Traceback (most recent call last):
    sdv_privpgd.cli.saying.CommandError: There is no file none.pkl.
    """
    synthesizer = _loaded(path)
    if synthesizer.get_info()["is_fit"] or synthesizer.unfinished is not None:
        return synthesizer
    raise CommandError(f"{path} holds a synthesizer that was not fitted.")


def unfinished(path: Path) -> "PrivateSynthesizer":
    """Loads a synthesizer whose fit can be finished.

    >>> unfinished(Path("none.pkl"))
    Traceback (most recent call last):
    sdv_privpgd.cli.saying.CommandError: There is no file none.pkl.
    """
    synthesizer = _loaded(path)
    if synthesizer.unfinished is not None:
        return synthesizer
    if synthesizer.get_info()["is_fit"]:
        raise CommandError(f"{path} is finished: {PROGRAM} sample writes rows of it.")
    raise CommandError(f"{path} holds no answers to finish a fit with.")


def require_file(path: Path) -> None:
    """Raises ``CommandError`` if there is no file of a synthesizer.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile(suffix=".pkl") as file:
    ...     require_file(Path(file.name))
    """
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
