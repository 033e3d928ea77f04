"""Constraints: the errors with and without them, and the rows that break them. Not private.

Real tables (the rows that meet a constraint, which are nearly all) and a simulated one are fitted
with and without it. The error is half the mean L1 distance over all pairs of columns, on the cells
of the fit without it. Columns in order have another error, in values: the mean distance of the
quantiles of their differences from the real ones, divided by the real mean. The settings are those
of the synthesizers, and every fit has new noise.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.benchmark.fits import FOLDER, columns_of
from sdv_privpgd.benchmark.meters import print_table
from sdv_privpgd.metrics.pairs import mean_l1

if TYPE_CHECKING:
    import pandas as pd


def add_command(commands) -> None:
    """Adds ``constraints`` to the command line."""
    parser = commands.add_parser("constraints", help="error with and without constraints")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--methods", nargs="+", default=["PrivPGD"], help="PrivPGD, MST or AIM")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3, help="repetitions with fresh noise")
    parser.add_argument("--rows", type=int, help="so many rows of each table, at random")
    parser.add_argument("--checked", type=int, default=100_000, help="sampled rows")
    parser.set_defaults(run=_constraints)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table with a constraint that its rows meet.

    Attributes:
        table: The function that makes it, given the folder of the tables.
        columns: SDV's description of each column, with ranges.
        constraint: The function that makes the constraint.

    >>> sorted(CASES)[2]
    'Inequality: bedrooms, rooms'
    """

    table: "Callable[[Path], pd.DataFrame]"
    columns: "Callable[[pd.DataFrame], dict[str, dict]]"
    constraint: Callable[[], Any]


def _constraints(arguments: argparse.Namespace) -> None:
    header = True
    for name in arguments.cases:
        for method in arguments.methods:
            row = {"case": name, "method": method, **_measured(CASES[name], method, arguments)}
            print_table([row], header=header)
            header = False


def _measured(case: Case, method: str, arguments: argparse.Namespace) -> dict[str, float]:
    """The errors without and with the constraint, seconds, and rows that break it."""
    from sdv.metadata import Metadata

    import sdv_privpgd
    from sdv_privpgd.columns.encoding import encode_table
    from sdv_privpgd.columns.schema import Schema
    from sdv_privpgd.plugin.constraints import valid_rows

    table = case.table(arguments.data)
    if arguments.rows is not None and arguments.rows < len(table):
        table = table.sample(arguments.rows, random_state=0)
    table = table.reset_index(drop=True)
    columns = case.columns(table)
    constraint = case.constraint()
    metadata = Metadata.load_from_dict({"tables": {"table": {"columns": columns}}})
    table = table.loc[valid_rows(constraint, table, metadata)].reset_index(drop=True)
    schema = Schema.from_sdv(columns)
    real = encode_table(columns_of(table), schema)
    between = _differences(constraint, schema, table)
    found: dict[str, list[float]] = {"without": [], "with": [], "fit": [], "sample": []}
    apart: dict[str, list[float]] = {"between, without": [], "between, with": []}
    broken = 0
    for _ in range(arguments.seeds):
        for kind in ("without", "with"):
            synthesizer = getattr(sdv_privpgd, f"{method}Synthesizer")(
                metadata, arguments.epsilon, public_metadata=True
            )
            if kind == "with":
                synthesizer.add_constraints([constraint])
            start = time.perf_counter()
            synthesizer.fit(table)
            fitted = time.perf_counter()
            rows = synthesizer.sample(arguments.checked)
            if kind == "with":
                found["fit"].append(fitted - start)
                found["sample"].append(time.perf_counter() - fitted)
                broken += int((~valid_rows(constraint, rows, metadata)).sum())
            codes = encode_table(columns_of(rows), schema)
            found[kind].append(mean_l1(schema.domain(), real, codes) / 2)
            errors = zip(between, _differences(constraint, schema, rows), strict=True)
            apart[f"between, {kind}"] += [_quantile_error(*pair) for pair in errors]
    means = {kind: float(np.mean(each)) for kind, each in found.items()}
    means |= {kind: float(np.mean(each)) for kind, each in apart.items() if each}
    return {**means, "ratio": means["with"] / means["without"], "broken": broken}


def _differences(constraint: Any, schema: Any, rows: "pd.DataFrame") -> list[np.ndarray]:
    """The differences between columns in order, in their own steps, for each pair."""
    from sdv_privpgd.columns.encoders import encoder_for
    from sdv_privpgd.columns.ordered import differences_of
    from sdv_privpgd.plugin.constraint_facts import ordered_pairs

    pairs = ordered_pairs([constraint])
    found = []
    for each in differences_of(pairs, schema.columns, num_bins=32, shapes={}):
        (low, no_low), (high, no_high) = (
            encoder_for(column).read(rows.loc[:, column.name]) for column in (each.low, each.high)
        )
        found.append(each.between(low, high)[~(no_low | no_high)])
    return found


def _quantile_error(real: np.ndarray, synthetic: np.ndarray) -> float:
    """The mean distance of the quantiles from the real ones, divided by the real mean."""
    levels = np.linspace(0.005, 0.995, 100)
    apart = np.abs(np.quantile(real, levels) - np.quantile(synthetic, levels))
    return float(apart.mean() / real.mean())


def _described(
    frame: "pd.DataFrame", ranges: Mapping[str, Sequence[float]], **facts: Mapping
) -> dict[str, dict]:
    """SDV's facts: numbers in these ranges, integers as such, categories as they occur."""
    found = {}
    for name, column in frame.items():
        nullable = bool(column.isna().any())
        if name in facts:
            found[name] = dict(facts[str(name)])
        elif name in ranges:
            low, high = ranges[str(name)]
            found[name] = {"sdtype": "numerical", "range_min": low, "range_max": high}
            if column.dtype.kind in "iu":
                found[name]["decimal_places"] = 0
        else:
            values = sorted(column.dropna().astype(str).unique())
            found[name] = {"sdtype": "categorical", "range_values": values}
        found[name]["range_is_nullable"] = nullable
    return found


_HOUSING = {
    "longitude": (-124.5, -114), "latitude": (32.5, 42), "housing_median_age": (0, 52),
    "total_rooms": (0, 40_000), "total_bedrooms": (0, 7_000), "population": (0, 40_000),
    "households": (0, 7_000), "median_income": (0, 15.0001), "median_house_value": (0, 500_001),
}  # fmt: skip

_DIAMONDS = {
    "carat": (0, 6), "depth": (40, 80), "table": (40, 100), "x": (0, 15), "y": (0, 60),
    "z": (0, 40), "price": (0, 20_000),
}  # fmt: skip

_ADULT = {
    "age": (17, 90), "capital-gain": (0, 99_999), "capital-loss": (0, 5_000),
    "hours-per-week": (1, 99),
}  # fmt: skip

_WORKERS = {"Income": (0, 1_500_000), "Age": (16, 99), "Travel time to work": (0, 200)}

_STAYS = {
    name: {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}
    | {"range_min": "2020-01-01", "range_max": "2022-12-31"}
    for name in ("admitted", "treated", "left")
}


def _read(name: str, columns: list[str] | None = None) -> "Callable[[Path], pd.DataFrame]":
    def table(folder: Path) -> "pd.DataFrame":
        import pandas as pd

        return pd.read_parquet(folder / f"{name}.parquet", columns=columns)

    return table


def _adult(folder: Path) -> "pd.DataFrame":
    table = _read("adult")(folder).drop(columns=["fnlwgt"])
    table["education-num"] = table["education-num"].astype(str)
    return table


def _households(folder: Path) -> "pd.DataFrame":
    """Adult with its six relationships in six columns."""
    import pandas as pd

    table = _adult(folder).drop(columns="education-num")
    hot = pd.get_dummies(table.pop("relationship"), prefix="is", dtype=int)
    return table.join(hot)


def _stays(folder: Path) -> "pd.DataFrame":
    """Simulated stays in a hospital: three dates in order, which depend on a ward and an age."""
    import pandas as pd

    del folder
    generator, count = np.random.default_rng(0), 50_000
    age, ward = generator.integers(18, 95, count), generator.integers(0, 6, count)
    waits = generator.gamma(1.5, 3.0 + 2.0 * ward)
    stays = generator.gamma(2.0, 2.0 + age / 10)
    start = generator.integers(0, 900, count)
    days = np.stack([start, start + waits, start + waits + stays]).astype(int)
    dates = np.minimum(days, 1_095).astype("M8[D]") + (
        np.datetime64("2020-01-01") - np.datetime64(0, "D")
    )
    columns = {name: pd.Series(own.astype(str)) for name, own in zip(_STAYS, dates, strict=True)}
    return pd.DataFrame({**columns, "ward": ward.astype(str), "age": age})


def _cag(name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    def constraint() -> Any:
        from sdv import cag

        return getattr(cag, name)(*arguments, **options)

    return constraint


def _combinations() -> Any:
    from sdv_privpgd import FixedCombinations

    names = ["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"]
    names += ["HS-grad", "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters"]
    names += ["Prof-school", "Doctorate"]
    pairs = [(name, str(number)) for number, name in enumerate(names, start=1)]
    return FixedCombinations(["education", "education-num"], pairs)


def _predicate() -> Any:
    from sdv.cag import SingleTableProgrammableConstraint

    class Flat(SingleTableProgrammableConstraint):
        """A diamond is at most three quarters as high as it is long and wide on average."""

        def is_valid(self, synthetic_data: Any) -> Any:
            rows = synthetic_data
            return rows["z"] <= 0.375 * (rows["x"] + rows["y"])

    return Flat()


CASES: Mapping[str, Case] = {
    "Inequality: bedrooms, rooms": Case(
        table=_read("california_housing"),
        columns=lambda frame: _described(frame, _HOUSING),
        constraint=_cag("Inequality", "total_bedrooms", "total_rooms"),
    ),
    "Inequality: z, x": Case(
        table=_read("diamonds"),
        columns=lambda frame: _described(frame, _DIAMONDS),
        constraint=_cag("Inequality", "z", "x"),
    ),
    "Range: three dates": Case(
        table=_stays,
        columns=lambda frame: _described(frame, {"age": (18, 95)}, **_STAYS),
        constraint=_cag("Range", *_STAYS, strict_boundaries=False),
    ),
    "FixedIncrements: income": Case(
        table=_read("acs_workers_us_2018", [*_WORKERS, "Education", "Gender", "Workclass", "Race"]),
        columns=lambda frame: _described(frame, _WORKERS),
        constraint=_cag("FixedIncrements", "Income", 10),
    ),
    "OneHotEncoding: relationship": Case(
        table=_households,
        columns=lambda frame: _described(
            frame, {**_ADULT, **{name: (0, 1) for name in frame if name.startswith("is_")}}
        ),
        constraint=lambda: _cag(
            "OneHotEncoding",
            [
                f"is_{name}"
                for name in (
                    "Husband",
                    "Not-in-family",
                    "Other-relative",
                    "Own-child",
                    "Unmarried",
                    "Wife",
                )
            ],
        )(),
    ),
    "FixedCombinations: education": Case(
        table=_adult, columns=lambda frame: _described(frame, _ADULT), constraint=_combinations
    ),
    "programmable: z, x and y": Case(
        table=_read("diamonds"),
        columns=lambda frame: _described(frame, _DIAMONDS),
        constraint=_predicate,
    ),
}
"""One case for each kind of constraint, by name."""
