"""The command line, with one subcommand for each benchmark."""

import argparse
from importlib import import_module

_MODULES = ("compare", "show")


def main() -> None:
    """Runs the subcommand that was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m sdv_privpgd.benchmark",
        description="Compares methods on real tables. Not private.",
    )
    commands = parser.add_subparsers(required=True)
    for name in _MODULES:
        import_module(f"sdv_privpgd.benchmark.{name}").add_command(commands)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
