"""Files of sdv-privpgd 0.1 are refused by a message that names the version to install.

They name modules that are elsewhere now. Python looks for them last here, and is told why.
"""

import sys
from importlib.abc import MetaPathFinder

from sdv.errors import VersionError

_FORMER = frozenset(
    f"sdv_privpgd.{name}"
    for name in (
        "_lifecycle", "_synthesizer", "between", "cells", "dataset", "dates", "declaring",
        "differences", "grouping", "keys", "measure", "merging", "ordered", "orders", "queries",
        "repair", "rules", "sampler", "schema", "synthesize.conditioning", "synthesize.filling",
        "synthesize.stream", "transformers", "unfinished", "zeros",
    )
)  # fmt: skip


class _FormerModules(MetaPathFinder):
    """Finds nothing, and says what a file needs that names a module of version 0.1."""

    def find_spec(self, fullname, path=None, target=None):
        del path, target
        if fullname in _FORMER:
            raise VersionError(
                f"{fullname} is a part of sdv-privpgd 0.1, and this is a later version. To read a "
                "model that was saved with it, install sdv-privpgd<0.2."
            )


def refuse_old_files() -> None:
    """Makes reading such a file a ``VersionError``."""
    if not any(isinstance(finder, _FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(_FormerModules())
