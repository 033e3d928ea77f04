"""Starts the command line: the first imports take seconds, and Ctrl-C may come before they end."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line and returns the exit status."""
    try:
        from sdv_privpgd.cli.program import main as run
    except KeyboardInterrupt:
        print("sdv-privpgd: Nothing was spent.\nsdv-privpgd: interrupted", file=sys.stderr)
        return 130
    return run(arguments)
