"""One visit after another: what it costs to be told of the row before, and what it gives.

The table is made of the diabetes table (71,518 patients, 101,766 visits), which has visits in
order, whether a patient came back within 30 days, and no dates: each first visit gets a date by
chance, and each that follows comes 1 to 30, or 31 to 365, days after the one before, by its
``readmitted``, and later after a "NO".

``alone``: people are protected, and rows know nothing of each other: the row before is any row.
``in order``: with ``sequence_index``. ``real, bounded``: real visits of which no more than k of a
patient are left, without any noise: what the bound alone costs.

``insulin`` and ``illness`` are half the L1 distance of the shares of pairs (before, now) from those
of all real visits, ``days`` that of the time between, in eight spans. ``pairs`` is the mean of it
over pairs of the table's own columns within a row, where the real rows are all visits. Not private.
"""

from dataclasses import replace
from datetime import date
from itertools import combinations

import numpy as np
import pandas as pd

from benchmarks.experiment import means, options, particles, quiet
from sdv_privpgd import Categorical, Datetime, Numerical, Ordinal, People, fit_table
from sdv_privpgd.methods import PrivPGD

_DELTA, _PERSON, _TIME = 1e-6, "patient_nbr", "admitted"
_PREVIOUS, _CONSTANT = ("insulin", "illness"), ("gender", "race")
_SPANS = (0, 8, 15, 31, 91, 181, 366, 731, np.inf)
_ILLNESSES = ("circulatory", "respiratory", "digestive", "diabetes", "other")
_DAYS_IN_ALL = 5_113  # to 2012-12-31


@options(epsilon=1.0, bounds=[2, 3, 5], seeds=3, num_particles=int)
def rows(given):
    table = with_dates(pd.read_parquet(given.data / "diabetes_130us.parquet"))
    columns, truth = _declared(table), _measured(table)
    for k in given.bounds:
        for name in ("real, bounded", "alone", "in order"):
            drawn = (_rows(name, table, columns, k, given, seed) for seed in range(given.seeds))
            errors = (_errors(_measured(each, name != "alone"), truth) for each in drawn)
            yield {"k": k, "rows": name, **means(errors)}


def with_dates(table, seed=0):
    """The visits of the diabetes table in order, with dates that are made up."""
    rng = np.random.default_rng(seed)
    rows = table.sort_values([_PERSON, "encounter_id"]).reset_index(drop=True)
    first = ~rows[_PERSON].duplicated()
    came = rows["readmitted"].shift().to_numpy()
    least = np.select([came == "<30", came == ">30"], [1, 31], 366)
    most = np.select([came == "<30", came == ">30"], [30, 365], 1_000)
    since = np.floor(least + rng.random(len(rows)) * (most - least + 1))
    days = pd.Series(np.where(first, rng.integers(0, 1_500, len(rows)), since))
    total = days.groupby(rows[_PERSON]).cumsum().clip(upper=_DAYS_IN_ALL)
    return pd.DataFrame(
        {
            _PERSON: rows[_PERSON],
            _TIME: pd.Timestamp("1999-01-01") + pd.to_timedelta(total, unit="D"),
            "illness": rows["diag_1"].map(_illness).astype(object),
            **{name: rows[name] for name in ("gender", "race", "insulin", "age")},
            "days_in_bed": rows["time_in_hospital"],
            "readmitted": rows["readmitted"],
        }
    )


def _illness(code):
    """The kind of a first diagnosis by its code of ICD-9 (Strack et al. 2014, Table 2)."""
    text = str(code)
    number = int(text[:3]) if text[:3].isdigit() else 0
    kinds = {
        "diabetes": number == 250,
        "circulatory": 390 <= number <= 459 or number == 785,
        "respiratory": 460 <= number <= 519 or number == 786,
        "digestive": 520 <= number <= 579 or number == 787,
    }
    return next((name for name, is_one in kinds.items() if is_one), "other")


def _declared(rows):
    named = {name: sorted(rows[name].unique()) for name in ("gender", "race", "insulin")}
    return {
        _TIME: Datetime(date(1999, 1, 1), date(2012, 12, 31), nullable=False),
        "illness": Categorical(_ILLNESSES, nullable=False),
        **{name: Categorical(values, nullable=False) for name, values in named.items()},
        "age": Ordinal(sorted(rows["age"].unique()), nullable=False),
        "days_in_bed": Numerical(1, 14, decimal_places=0, nullable=False),
        "readmitted": Categorical(["NO", "<30", ">30"], nullable=False),
    }


def _rows(name, rows, columns, most, given, seed):
    """Rows of one arm, as many as the table has."""
    if name == "real, bounded":
        return _bounded(rows, most, seed)
    people = People(_PERSON, max_rows=most)
    if name == "in order":
        order = {"previous": list(_PREVIOUS), "context_columns": list(_CONSTANT)}
        people = replace(people, sequence_index=_TIME, **order)
    more = {"adjacency": "add_remove", "people": people}
    engine = particles(given.num_particles, seed=seed)
    with quiet():
        fitted = fit_table(
            rows, columns, given.epsilon, _DELTA, method=PrivPGD(engine=engine), seed=seed, **more
        )
    return fitted.sample(len(rows))


def _bounded(rows, most, seed):
    """As many visits of each patient that follow each other, from one on that chance draws."""
    _, first, which, number = np.unique(
        rows[_PERSON], return_index=True, return_inverse=True, return_counts=True
    )
    drawn = np.random.default_rng(seed).random(len(first))
    start = first + np.floor(drawn * np.maximum(number - most + 1, 1)).astype(np.int64)
    rank = np.arange(len(rows)) - start[which]
    return rows.loc[(rank >= 0) & (rank < most)]


def _measured(rows, has_order=True):
    """Shares of what was before and is now, of the time between, and of pairs within rows."""
    found = {"days": None}
    if has_order:
        before = rows.groupby(_PERSON).shift()
        follows = before[_TIME].notna()
        days = (rows[_TIME] - before[_TIME]).dt.days[follows]
        found |= {
            name: pd.crosstab(before.loc[follows, name], rows.loc[follows, name], normalize=True)
            for name in _PREVIOUS
        }
        spans = np.histogram(days, _SPANS)[0]
        found["days"] = pd.Series(spans / max(spans.sum(), 1))
    else:  # any row may be before any other
        shares = {name: rows[name].value_counts(normalize=True) for name in _PREVIOUS}
        found |= {
            name: pd.DataFrame(np.outer(own, own), index=own.index, columns=own.index)
            for name, own in shares.items()
        }
    own = rows.drop(columns=[_PERSON, _TIME], errors="ignore")
    pairs = combinations(own.columns, 2)
    return found | {"pairs": [pd.crosstab(own[a], own[b], normalize=True) for a, b in pairs]}


def _errors(found, truth):
    errors = {name: _distance(found[name], truth[name]) for name in (*_PREVIOUS, "days")}
    pairs = zip(found["pairs"], truth["pairs"], strict=True)
    return errors | {"pairs": float(np.mean([_distance(one, two) for one, two in pairs]))}


def _distance(one, two):
    """Half the L1 distance of shares; not a number where there are none."""
    if one is None:
        return np.nan
    first, second = one.align(two, fill_value=0.0)
    return float(np.abs(first.to_numpy() - second.to_numpy()).sum() / 2)
