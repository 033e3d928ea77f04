"""What experiments share: options, fresh processes, means over draws, and the table they print.

An experiment is a module with a function ``rows``, marked with ``options``, that yields the lines
of its table. Its docstring says what is measured; ``--help`` prints it.
"""

import argparse
import csv
import json
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from sdv_privpgd.benchmark.fits import FOLDER, PeakMemory, Stopwatch, fit_dataset, print_table
from sdv_privpgd.methods import Method, PrivPGD
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.dataset import Dataset

HERE = Path(__file__).parent
NAMES = sorted(
    path.stem for path in HERE.glob("*.py") if "\n@options(" in path.read_text()
)  # fmt: skip


def options(**defaults: Any) -> Callable[[Callable], Callable]:
    """Marks the function that yields an experiment's lines, with its options' defaults.

    A default tells the type: a list takes several values, ``False`` is a switch, and a type is an
    option without a default, which is then ``None``. All have ``--data`` and ``--out``.
    """

    def marked(function: Callable) -> Callable:
        function.options = {**defaults, "data": FOLDER, "out": Path}
        return function

    return marked


def main(arguments: list[str]) -> None:
    """Runs an experiment and prints its lines as they come; ``--out`` keeps them in a CSV file."""
    if arguments[:1] == ["--call"]:
        module, name = arguments[1].split(":")
        print(json.dumps(getattr(import_module(module), name)(**json.loads(arguments[2]))))
        return
    module, given = parse(arguments)
    lines, shape = [], []
    for line in module.rows(given):
        lines.append(line)
        print_table([line], header=list(line) != shape)
        shape = list(line)
        if given.out is not None:  # after each line: large ones take minutes
            _write(lines, given.out / f"{module.__name__.split('.')[-1]}.csv")


def parse(arguments: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    """The module of the experiment that is named, and its options."""
    chosen = argparse.ArgumentParser(prog="python tests/benchmarks")
    chosen.add_argument("name", choices=NAMES)
    name = chosen.parse_args(arguments[:1] or ["--help"]).name
    module = import_module(f"benchmarks.{name}")
    parser = argparse.ArgumentParser(
        prog=f"python tests/benchmarks {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for option, default in module.rows.options.items():
        _add_option(parser, f"--{option.replace('_', '-')}", default)
    return module, parser.parse_args(arguments[1:])


def _add_option(parser: argparse.ArgumentParser, name: str, default: Any) -> None:
    if default is False:
        parser.add_argument(name, action="store_true")
    elif isinstance(default, type):
        parser.add_argument(name, type=default)
    elif isinstance(default, list | tuple):
        kind = type(default[0])
        said = f"default: {' '.join(map(str, default))}".replace("%", "%%")
        parser.add_argument(name, type=kind, nargs="+", default=list(default), help=said)
    else:
        kind = Path if isinstance(default, Path) else type(default)
        parser.add_argument(name, type=kind, default=default, help="default: %(default)s")


def _write(lines: list[dict], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for line in lines for key in line)))
        writer.writeheader()
        writer.writerows(lines)


def apart(function: Callable, **given: Any) -> dict:
    """What a function of an experiment returns in a new interpreter."""
    named = f"{function.__module__}:{function.__name__}"
    command = [sys.executable, str(HERE), "--call", named, json.dumps(given, default=str)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def means(runs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each score over draws, and of several draws the standard error of the first."""
    runs = list(runs)
    found = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    if len(runs) > 1:
        first = [run[next(iter(found))] for run in runs]
        found["+-"] = float(np.std(first, ddof=1) / np.sqrt(len(first)))
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings and logs of fits, which say that rows are few or little is declared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def met(rows: Any, where: Mapping[str, Any] | None) -> np.ndarray:
    """Whether each row of a table has these values, or lies in these ranges."""
    from sdv_privpgd import Between  # the machine with a device has no pandas

    found = np.ones(len(rows), dtype=bool)
    for name, wish in (where or {}).items():
        own = rows[name]
        if isinstance(wish, Between):
            low = -np.inf if wish.low is None else wish.low
            own, wish = own.between(low, np.inf if wish.high is None else wish.high), True
        found &= (own == wish).to_numpy(bool)
    return found


def values_of(rows: Any, what: str, of: str | None = None, where=None, among=None) -> np.ndarray:
    """The values of rows whose mean a share or a mean is."""
    if what == "share":
        return met(rows[met(rows, among)], where).astype(float)
    return rows[of].to_numpy(float)[met(rows, where)]


def parts_of(facts: Mapping[str, Mapping]) -> tuple[dict[str, dict], dict[str, dict]]:
    """The sdtypes of declared columns, and their public domain."""
    columns = {name: {"sdtype": own["sdtype"]} for name, own in facts.items()}
    domain = {
        name: {key: fact for key, fact in own.items() if key != "sdtype"}
        for name, own in facts.items()
    }
    return columns, domain


def metadata_of(columns: Mapping[str, Mapping], **more: Any) -> Any:
    """SDV's metadata of one table."""
    from sdv.metadata import Metadata

    return Metadata.load_from_dict({"tables": {"table": {"columns": dict(columns), **more}}})


def particles(num_particles: int | None, **changes: Any) -> Any:
    """The default engine, with another number of particles if one is given."""
    from sdv_privpgd.methods import ParticleGradientDescent

    return ParticleGradientDescent(num_particles=num_particles, **changes)


def metered_fit(
    dataset: Callable[[], Dataset], epsilon: float, method: Method
) -> tuple[Release, dict[str, float]]:
    """A fit with everything compiled before: its seconds by stage, and its peak memory.

    The dataset is made as the stage "encode". ``cpu`` is the processor's seconds over all cores.
    """
    from benchmarks.simulated import simulated_table

    compiling = PrivPGD(engine=particles(None))
    fit_dataset(Dataset(*simulated_table(1_000, 3)), epsilon, compiling)
    memory, watch, cpu = PeakMemory(), Stopwatch(), Stopwatch(time.process_time)
    made = dataset()
    watch.lap("encode")
    release = fit_dataset(made, epsilon, method, progress=watch)
    watch.lap("local_search")
    cpu.lap("cpu")
    found = {**watch.seconds, "fit": sum(watch.seconds.values()), **cpu.seconds}
    return release, {**found, "peak_MiB": memory.mebibytes()}
