"""The command line, with one subcommand for each benchmark."""

import argparse

from sdv_privpgd.benchmark import (
    acs,
    adult,
    compare,
    conclusions,
    conditions,
    constraints,
    curves,
    declaring,
    diabetes,
    discovery,
    external,
    forecast,
    gpu,
    intervals,
    kernels,
    learning,
    projection,
    protect,
    scale,
    show,
    stages,
    undeclared,
)


def main() -> None:
    """Runs the subcommand that was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m sdv_privpgd.benchmark",
        description="Times fits and compares synthetic rows with real ones. Not private.",
    )
    commands = parser.add_subparsers(required=True)
    for benchmark in (
        scale,
        stages,
        adult,
        acs,
        diabetes,
        discovery,
        undeclared,
        declaring,
        curves,
        kernels,
        gpu,
        projection,
        conditions,
        intervals,
        forecast,
        conclusions,
        compare,
        learning,
        external,
        show,
        protect,
        constraints,
    ):
        benchmark.add_command(commands)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
