"""Tables with SDV's detected metadata and nothing declared: seconds, memory and error.

    python -m sdv_privpgd.benchmark undeclared --tables acs_workers_us_2018 nyc_flights13

A Parquet file goes in, as many synthetic rows come out, at the settings of ``PrivPGDSynthesizer``.
Columns must keep their names, their order and their kind. ``structure`` and ``validity`` are
SDMetrics' diagnostic scores, 1 at best. ``structure`` counts the columns of the same dtype. The
error is half the L1 distance between 2-way tables, averaged over all pairs of columns, in cells of
the ranges and categories that SDV's detection read off the table. That is not private, nor is the
comparison with the real table.
"""

import argparse
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sdv_privpgd.benchmark.fits import FOLDER, fit_dataset
from sdv_privpgd.benchmark.meters import PeakMemory, Stopwatch, print_table
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.privacy.dataset import Dataset

if TYPE_CHECKING:
    import pandas as pd

_LARGEST = ("acs_workers_us_2018", "nyc_flights13")
"""The files with the most cells, rows times columns."""


def add_command(commands) -> None:
    """Adds ``undeclared`` to the command line."""
    parser = commands.add_parser("undeclared", help="whole tables with nothing declared")
    parser.add_argument("--tables", nargs="+", default=_LARGEST, help="names of Parquet files")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=None, help="of each table; default: all")
    parser.add_argument("--num-particles", type=int, default=None)
    parser.set_defaults(run=_undeclared)


def _undeclared(arguments: argparse.Namespace) -> None:
    from sdv_privpgd import ParticleGradientDescent

    fit_dataset(Dataset(*simulated_table(1_000, 3)), 1.0, ParticleGradientDescent())  # compiles
    for name in arguments.tables:
        measured = _measured(arguments, name)
        print_table([{"table": name[:13], **measured}], header=name == arguments.tables[0])


def _measured(arguments: argparse.Namespace, name: str) -> dict[str, float | str]:
    """The cost and the results of one table."""
    import pandas as pd
    from sdv.evaluation import run_diagnostic
    from sdv.metadata import Metadata

    from sdv_privpgd import PrivPGDSynthesizer
    from sdv_privpgd.metrics import mean_l1
    from sdv_privpgd.metrics._frames import cells_of

    real = pd.read_parquet(arguments.data / f"{name}.parquet").iloc[: arguments.rows]
    memory, watch = PeakMemory(), Stopwatch()
    metadata = Metadata.detect_from_dataframes({"table": real})
    watch.lap("detect")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is declared
        synthesizer = PrivPGDSynthesizer(
            metadata, arguments.epsilon, num_particles=arguments.num_particles
        )
        synthesizer.fit(real)
        watch.lap("fit")
    rows = synthesizer.sample(len(real))
    watch.lap("sample")
    peak = memory.mebibytes()
    assert isinstance(rows, pd.DataFrame)  # as the table was
    facts = metadata.to_dict()["tables"]["table"]
    _check_structure(real, rows, facts["columns"])
    report = run_diagnostic({"table": real}, {"table": rows}, metadata, verbose=False)
    scores = dict(report.get_properties()[["Property", "Score"]].to_numpy())
    for column, known in facts["columns"].items():
        known["range_is_nullable"] = True  # the code of values that the real column does not have
        if known["sdtype"] == "categorical" and not known.get("range_values"):
            # Detection keeps none where they are very many.
            known["range_values"] = real[column].dropna().unique().tolist()
    cells = cells_of(real, rows, facts, None, public_domain=None, num_bins=32)
    return {
        "size": f"{len(rows):,}x{len(rows.columns)}",
        **watch.seconds,
        "peak_MiB": peak,
        "structure": scores["Data Structure"],
        "validity": scores["Data Validity"],
        "half L1": mean_l1(cells.domain, cells.real, cells.synthetic) / 2,
    }


def _check_structure(
    real: "pd.DataFrame", rows: "pd.DataFrame", columns: Mapping[str, Mapping]
) -> None:
    """Raises ``ValueError`` for synthetic rows of another number, names or kinds of columns."""
    from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

    wrong = [
        name
        for name, facts in columns.items()
        if (facts["sdtype"] == "numerical" and not is_numeric_dtype(rows[name]))
        or is_datetime64_any_dtype(rows[name]) != is_datetime64_any_dtype(real[name])
    ]
    if wrong or len(rows) != len(real) or list(rows.columns) != list(real.columns):
        raise ValueError(
            f"{rows.shape} rows and columns came out of {real.shape}; of another kind are {wrong}."
        )
