"""Engines turn noisy measurements into a model that rows can be sampled from.

``engine`` has the two protocols. ``particles`` is PrivPGD, ``pgm`` is Private-PGM, ``gum`` is
PrivSyn's, ``rap_plus_plus`` is RAP++, ``relaxed_projection`` has RAP and GEM, ``genetic`` is
Private-GSD, and ``generator`` is DP-MERF's network. No engine sees the table, so everything here is
post-processing.
"""

import os
import sys


def _compute_on_one_core() -> None:
    """A forked process waits for ever for torch's threads, which only its parent has."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_compute_on_one_core)
