"""Constraints: the errors with and without them, and the rows that break them. Not private.

Real tables (the rows that meet a constraint, which are nearly all) and a simulated one are fitted
with and without it. The error is half the mean L1 distance over all pairs of columns, on the cells
of the fit without it. Columns in order have another error, in values: the mean distance of the
quantiles of their differences from the real ones, divided by the real mean; and ``peaks`` is how
far the shares of their most frequent values are from the real ones. The settings are those
of the synthesizers (``--methods``: PrivPGD, MST or AIM), and every fit has new noise. ``--checked``
is the number of sampled rows.
"""

import time

import numpy as np
import pandas as pd
import sdv  # noqa: F401 - first: it loads the classes
from encoding import Codec

import sdv_privpgd
from benchmarks.experiment import metadata_of, options
from sdv_privpgd.benchmark.tables import TABLES, columns_of, rows_and_facts
from sdv_privpgd.columns.differences import differences_of
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.kinds import Constraints
from sdv_privpgd.metrics.pairs import average, l1_by_pair
from sdv_privpgd.plugin.arguments import translated, valid_rows

_NAMES = (
    "Inequality: bedrooms, rooms", "Range: open dates", "OneHotEncoding: relationship",
    "FixedCombinations: education",
)  # fmt: skip
"""A case each for the kinds of constraints that rows of tables at hand meet."""


@options(cases=_NAMES, methods=["PrivPGD"], epsilon=1.0, seeds=3, rows=int, checked=100_000)
def rows(given):
    for name in given.cases:
        table, facts, constraint = _case(name, given.data)
        if given.rows is not None and given.rows < len(table):
            table = table.sample(given.rows, random_state=0)
        table = table.reset_index(drop=True)
        for method in given.methods:
            found = _measured(table, facts, constraint, method, given)
            yield {"case": name, "method": method, **found}


def _measured(table, columns, constraint, method, given):
    """The errors without and with the constraint, seconds, and rows that break it."""
    metadata = metadata_of(columns)
    table = table.loc[valid_rows(constraint, table, metadata)].reset_index(drop=True)
    schema = Schema.from_sdv(columns)
    real = encode_table(columns_of(table), schema)
    between = _differences(constraint, schema, table)
    found, apart, broken = {"without": [], "with": [], "fit": [], "sample": []}, {}, 0
    for _ in range(given.seeds):
        for kind in ("without", "with"):
            made = getattr(sdv_privpgd, f"{method}Synthesizer")
            synthesizer = made(metadata, given.epsilon, public_metadata=True)
            if kind == "with":
                synthesizer.add_constraints([constraint])
            start = time.perf_counter()
            synthesizer.fit(table)
            fitted = time.perf_counter()
            rows = synthesizer.sample(given.checked)
            if kind == "with":
                found["fit"].append(fitted - start)
                found["sample"].append(time.perf_counter() - fitted)
                broken += int((~valid_rows(constraint, rows, metadata)).sum())
            codes = encode_table(columns_of(rows), schema)
            found[kind].append(average(l1_by_pair(schema.domain(), real, codes)) / 2)
            apart.setdefault(f"peaks, {kind}", []).append(_peak_error(table, rows, constraint))
            for pair in zip(between, _differences(constraint, schema, rows), strict=True):
                apart.setdefault(f"between, {kind}", []).append(_quantile_error(*pair))
    mean = {kind: float(np.mean(each)) for kind, each in {**found, **apart}.items()}
    return {**mean, "ratio": mean["with"] / mean["without"], "broken": broken}


def _differences(constraint, schema, rows):
    """The differences between columns in order, in their own steps, for each pair."""
    pairs, found = Constraints((translated(constraint),)).pairs(), []
    for each in differences_of(pairs, schema.columns, num_bins=32, shapes={}):
        (low, no_low), (high, no_high) = (
            Codec(column).read(rows.loc[:, column.name]) for column in (each.low, each.high)
        )
        found.append(each.between(low, high)[~(no_low | no_high)])
    return found


def _peak_error(real, synthetic, constraint):
    """The mean distance of the shares of the columns' most frequent values from the real ones."""
    modes = {name: real[name].mode()[0] for name in translated(constraint).columns}
    shares = [[(each[name] == modes[name]).mean() for name in modes] for each in (real, synthetic)]
    return float(np.abs(np.subtract(*shares)).sum() / max(len(modes), 1))


def _quantile_error(real, synthetic):
    """The mean distance of the quantiles from the real ones, divided by the real mean."""
    levels = np.linspace(0.005, 0.995, 100)
    apart = np.abs(np.quantile(real, levels) - np.quantile(synthetic, levels))
    return float(apart.mean() / real.mean())


_STAYS = {
    name: {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}
    | {"range_min": "2020-01-01", "range_max": "2022-12-31"}
    for name in ("admitted", "treated", "left")
}


_FLAG = {"sdtype": "numerical", "range_min": 0, "range_max": 1, "decimal_places": 0}
_AGE = {"sdtype": "numerical", "range_min": 18, "range_max": 95, "decimal_places": 0}


def _case(name, folder):
    """The table, what is declared of it and the constraint of a case."""
    from sdv import cag

    if name == "Inequality: bedrooms, rooms":
        housing = rows_and_facts("california_housing", folder)
        return *housing, cag.Inequality("total_bedrooms", "total_rooms")
    if name == "Range: open dates":
        stays, last = _simulated_stays(), {"range_max": "2099-12-31"}
        still = np.random.default_rng(1).random(len(stays)) < 0.4
        stays.loc[still, "left"] = "2099-12-31"
        known = {each: facts | last for each, facts in _STAYS.items()}
        known |= {"ward": {"sdtype": "categorical", "range_values": list("012345")}, "age": _AGE}
        return stays, known, cag.Range(*_STAYS, strict_boundaries=False)
    adult, facts = rows_and_facts("adult", folder)
    if name == "FixedCombinations: education":
        names, schools = ["education", "education-num"], TABLES["adult"].orders["education"]
        numbers = [str(number) for number, _ in enumerate(schools, start=1)]
        adult[names[1]] = adult[names[1]].astype(int).astype(str)
        facts[names[1]] = {"sdtype": "categorical", "range_values": numbers}
        pairs = list(zip(schools, numbers, strict=True))
        return adult, facts, sdv_privpgd.FixedCombinations(names, pairs)
    # Adult's six relationships in six columns.
    hot = pd.get_dummies(adult.pop("relationship"), prefix="is", dtype=int)
    del facts["relationship"]
    return adult.join(hot), facts | dict.fromkeys(hot, _FLAG), cag.OneHotEncoding(list(hot))


def _simulated_stays():
    """Simulated stays in a hospital: three dates in order, which depend on a ward and an age."""
    generator, count = np.random.default_rng(0), 50_000
    age, ward = generator.integers(18, 95, count), generator.integers(0, 6, count)
    waits = generator.gamma(1.5, 3.0 + 2.0 * ward)
    stays = generator.gamma(2.0, 2.0 + age / 10)
    start = generator.integers(0, 900, count)
    days = np.stack([start, start + waits, start + waits + stays]).astype(int)
    dates = np.datetime64("2020-01-01") + np.minimum(days, 1_095).astype("m8[D]")
    columns = {name: pd.Series(own.astype(str)) for name, own in zip(_STAYS, dates, strict=True)}
    return pd.DataFrame({**columns, "ward": ward.astype(str), "age": age})
