"""The command line, with one subcommand for each benchmark."""

import argparse
import sys
from importlib import import_module

_MODULES = (
    "scale",
    "columns",
    "stages",
    "adult",
    "acs",
    "diabetes",
    "discovery",
    "undeclared",
    "declaring",
    "shapes",
    "curves",
    "kernels",
    "gpu",
    "projection",
    "conditions",
    "intervals",
    "forecast",
    "conclusions",
    "compare",
    "learning",
    "half_spaces",
    "thresholds",
    "holders",
    "people",
    "sequences",
    "external",
    "rivals",
    "show",
    "protect",
    "constraints",
)


def main() -> None:
    """Runs the subcommand that was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m sdv_privpgd.benchmark",
        description="Times fits and compares synthetic rows with real ones. Not private.",
    )
    commands = parser.add_subparsers(required=True)
    # A machine may have what one benchmark needs, and not what another does.
    asked = [name.removesuffix("-once") for name in sys.argv[1:2]]
    named = [name for name in _MODULES if name in asked]
    for name in named or _MODULES:
        import_module(f"sdv_privpgd.benchmark.{name}").add_command(commands)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
