"""The gain of declaring, in decoded values: nothing, ranges alone, or ranges with shapes.

    python -m sdv_privpgd.benchmark declaring --tables adult california_housing --seeds 3
    python -m sdv_privpgd.benchmark declaring --tables adult --by-column

A Parquet file goes in, as many synthetic rows come out. The arms: ``undeclared``; ``width``, where
the ranges and categories are declared and cells have equal width (``discovery_share=0``);
``declared``, where they also get a private shape; and SDV's GaussianCopula, which is not private.
Ranges are those of the JSON file beside the table; categories, and ranges that the file lacks, are
those that occur: the tables are public, and no model for a private one may be declared like this.

``shapes``, ``trends`` and ``quality`` are SDMetrics' scores, 1 at best. ``KS`` is the mean over
numerical columns of the largest difference of the distribution functions, and ``tail`` that of the
relative error of the 99 % quantile, 0 at best. Compared with the real table: the numbers that it
prints are not private.
"""

import argparse
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.benchmark.fits import FOLDER
from sdv_privpgd.benchmark.meters import Stopwatch, print_table

if TYPE_CHECKING:
    import pandas as pd

_ARMS = ("GaussianCopula", "undeclared", "width", "declared")


def add_command(commands) -> None:
    """Adds ``declaring`` to the command line."""
    parser = commands.add_parser("declaring", help="decoded values by what is declared")
    parser.add_argument("--tables", nargs="+", default=["adult"], help="names of Parquet files")
    parser.add_argument("--arms", nargs="+", choices=_ARMS, default=_ARMS)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=0.2, help="of the budget, for discovery")
    parser.add_argument("--rows", type=int, default=None, help="of each table; default: all")
    parser.add_argument("--seeds", type=int, default=1, help="repetitions with fresh noise")
    parser.add_argument("--by-column", action="store_true")
    parser.set_defaults(run=_declaring)


def _declaring(arguments: argparse.Namespace) -> None:
    import pandas as pd

    is_first = True
    for name in arguments.tables:
        real = pd.read_parquet(arguments.data / f"{name}.parquet").iloc[: arguments.rows]
        bounds = json.loads((arguments.data / f"{name}.json").read_text())["public_bounds"]
        metadata, domain = _described(real, bounds)
        for arm in arguments.arms:
            seeds = range(1 if arm == "GaussianCopula" else arguments.seeds)
            try:
                runs = [_run(arm, real, metadata, domain, arguments, each) for each in seeds]
            except Exception as error:
                if arm != "GaussianCopula":
                    raise
                print(f"{name[:20]:>14} {arm:>14} cannot fit it: {type(error).__name__}")
                continue
            means = {key: float(np.mean([run[key] for run, _ in runs])) for key in runs[0][0]}
            print_table([{"table": name[:20], "arm": arm, **means}], header=is_first)
            is_first = False
            if arguments.by_column:
                _print_columns([columns for _, columns in runs])


def _described(real: "pd.DataFrame", bounds: Mapping) -> tuple[Any, dict[str, dict]]:
    """Metadata that follows from the dtypes, and the public domain of the columns."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype
    from sdv.metadata import Metadata

    columns, domain = {}, {}
    for name, column in real.items():
        if is_bool_dtype(column):
            columns[name] = {"sdtype": "boolean"}
        elif is_numeric_dtype(column) and (name in bounds or column.nunique() > 60):
            low, high = bounds.get(name, (column.min(), column.max()))
            columns[name] = {"sdtype": "numerical"}
            domain[name] = {"range_min": float(low), "range_max": float(high)}
        else:
            columns[name] = {"sdtype": "categorical"}
            values = column.dropna().drop_duplicates()
            domain[name] = {"range_values": sorted(values.tolist(), key=str)}
    table = {"columns": columns}
    return Metadata.load_from_dict({"tables": {"table": table}}), domain


def _run(
    arm: str,
    real: "pd.DataFrame",
    metadata: Any,
    domain: dict,
    arguments: argparse.Namespace,
    seed: int,
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """The scores of one fit, and those of its numerical columns."""
    from sdv.single_table import GaussianCopulaSynthesizer

    from sdv_privpgd import PrivPGDSynthesizer

    watch = Stopwatch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that little is declared
        if arm == "GaussianCopula":
            synthesizer = GaussianCopulaSynthesizer(metadata)
        else:
            synthesizer = PrivPGDSynthesizer(
                metadata,
                arguments.epsilon,
                public_domain=None if arm == "undeclared" else domain,
                discovery_share=0.0 if arm == "width" else arguments.share,
                seed=seed,
            )
        synthesizer.fit({"table": real})
        watch.lap("fit")
        rows: Any = synthesizer.sample(len(real))["table"]
        columns = {
            name: _column(real.loc[:, name].dropna(), rows[name].dropna())
            for name, facts in metadata.tables["table"].columns.items()
            if facts["sdtype"] == "numerical"
        }
        scores = _sdmetrics(real, rows, metadata)
    means = {
        key: float(np.mean([each[key] for each in columns.values()])) if columns else 0.0
        for key in ("KS", "tail")
    }
    return {**scores, **means, **watch.seconds}, columns


def _column(real: Any, synthetic: Any) -> dict[str, float]:
    """The distances of a column's numbers from the real ones."""
    own, theirs = (np.sort(each.to_numpy(dtype=np.float64)) for each in (real, synthetic))
    if not own.size or not theirs.size:
        return {"KS": 1.0, "tail": 1.0, "mean": float("nan"), "real mean": float("nan")}
    values = np.union1d(own, theirs)
    below = [np.searchsorted(each, values, side="right") / each.size for each in (own, theirs)]
    high, found = (float(np.quantile(each, 0.99)) for each in (own, theirs))
    return {
        "KS": float(np.abs(below[0] - below[1]).max()),
        "tail": abs(high - found) / max(abs(high), float(own.std()), 1e-300),
        "mean": float(theirs.mean()),
        "real mean": float(own.mean()),
    }


def _sdmetrics(real: "pd.DataFrame", rows: "pd.DataFrame", metadata: Any) -> dict[str, float]:
    from sdmetrics.reports import QualityReport

    report = QualityReport()
    report.generate({"table": real}, {"table": rows}, metadata.to_dict(), verbose=False)
    properties = report.get_properties()
    parts = dict(zip(properties["Property"], properties["Score"], strict=True))
    return {
        "shapes": float(parts["Column Shapes"]),
        "trends": float(parts["Column Pair Trends"]),
        "quality": float(report.get_score() or 0.0),
    }


def _print_columns(runs: list[dict[str, dict[str, float]]]) -> None:
    for name in runs[0]:
        means = {key: float(np.mean([run[name][key] for run in runs])) for key in runs[0][name]}
        print(
            f"    {name[:30]:<30}" + "".join(f"{key} {each:<12.5g}" for key, each in means.items())
        )
