"""One visit after another: what it costs to be told of the row before, and what it gives.

    python -m sdv_privpgd.benchmark sequences   # made of diabetes: 71,518 patients, 101,766 visits

The table is made of the diabetes table, which has visits in order, whether a patient came back
within 30 days, and no dates: each first visit gets a date by chance, and each that follows comes
1 to 30, or 31 to 365, days after the one before, by its ``readmitted``, and later after a "NO".

``alone``: people are protected, and rows know nothing of each other: the row before is any row.
``in order``: with ``sequence_by``. ``real, bounded``: real visits of which no more than k of a
patient are left, without any noise: what the bound alone costs.

``insulin`` and ``illness`` are half the L1 distance of the shares of pairs (before, now) from those
of all real visits, ``days`` that of the time between, in eight spans. ``pairs`` is the mean of it
over pairs of the table's own columns within a row, where the real rows are all visits. Compared
with real rows: not private.
"""

import argparse
import warnings
from collections.abc import Mapping
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.benchmark.fits import FOLDER
from sdv_privpgd.benchmark.meters import print_table

if TYPE_CHECKING:
    import pandas as pd

_DELTA, _PERSON, _TIME = 1e-6, "patient_nbr", "admitted"
_PREVIOUS, _CONSTANT = ("insulin", "illness"), ("gender", "race")
_SPANS = (0, 8, 15, 31, 91, 181, 366, 731, np.inf)
_ILLNESSES = ("circulatory", "respiratory", "digestive", "diabetes", "other")


def add_command(commands) -> None:
    """Adds ``sequences`` to the command line."""
    parser = commands.add_parser("sequences", help="visits in order, made of diabetes")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--bounds", nargs="+", type=int, default=[2, 3, 5])
    parser.add_argument("--seeds", type=int, default=3, help="repetitions with fresh noise")
    parser.add_argument("--num-particles", type=int)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.set_defaults(run=_sequences)


def _sequences(arguments: argparse.Namespace) -> None:
    import pandas as pd

    file = arguments.data / "diabetes_130us.parquet"
    rows = with_dates(pd.read_parquet(file))
    columns = _declared(rows)
    truth = _measured(rows)
    for place, (k, name) in enumerate(
        (k, name) for k in arguments.bounds for name in ("real, bounded", "alone", "in order")
    ):
        seeds = range(arguments.seeds)
        found = [_rows(name, rows, columns, k, arguments, seed) for seed in seeds]
        errors = [_errors(_measured(each, name != "alone"), truth) for each in found]
        means = {key: float(np.mean([each[key] for each in errors])) for key in truth_names()}
        print_table([{"k": k, "rows": name, **means}], header=place == 0)


def truth_names() -> list[str]:
    """What is compared, in the order of the table that is printed.

    >>> truth_names()
    ['insulin', 'illness', 'days', 'pairs']
    """
    return [*_PREVIOUS, "days", "pairs"]


def with_dates(table: "pd.DataFrame", seed: int = 0) -> "pd.DataFrame":
    """The visits of the diabetes table in order, with dates that are made up.

    >>> import pandas as pd
    >>> facts = {"encounter_id": [2, 1], "patient_nbr": [7, 7], "readmitted": ["NO", "<30"]}
    >>> facts |= {"gender": "F", "race": "A", "insulin": "No", "diag_1": ["250.8", "401"]}
    >>> facts |= {"time_in_hospital": 3, "age": "[0-10)"}
    >>> rows = with_dates(pd.DataFrame(facts))
    >>> rows["illness"].tolist(), bool(rows["admitted"].diff().dt.days[1] <= 30)
    (['circulatory', 'diabetes'], True)
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    rows = table.sort_values([_PERSON, "encounter_id"]).reset_index(drop=True)
    first = ~rows[_PERSON].duplicated()
    came = rows["readmitted"].shift().to_numpy()
    least = np.select([came == "<30", came == ">30"], [1, 31], 366)
    most = np.select([came == "<30", came == ">30"], [30, 365], 1_000)
    since = np.floor(least + rng.random(len(rows)) * (most - least + 1))
    days = pd.Series(np.where(first, rng.integers(0, 1_500, len(rows)), since))
    total = days.groupby(rows[_PERSON]).cumsum().clip(upper=_days_in_all())
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


def _days_in_all() -> int:
    return 5_113  # to 2012-12-31


def _illness(code: Any) -> str:
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


def _declared(rows: "pd.DataFrame") -> dict[str, Mapping]:
    from sdv_privpgd import Categorical, Datetime, Numerical, Ordinal

    named = {name: sorted(rows[name].unique()) for name in ("gender", "race", "insulin")}
    return {
        _TIME: Datetime(date(1999, 1, 1), date(2012, 12, 31), nullable=False),
        "illness": Categorical(_ILLNESSES, nullable=False),
        **{name: Categorical(values, nullable=False) for name, values in named.items()},
        "age": Ordinal(sorted(rows["age"].unique()), nullable=False),
        "days_in_bed": Numerical(1, 14, decimal_places=0, nullable=False),
        "readmitted": Categorical(["NO", "<30", ">30"], nullable=False),
    }


def _rows(
    name: str,
    rows: "pd.DataFrame",
    columns: Mapping[str, Mapping],
    most: int,
    arguments: argparse.Namespace,
    seed: int,
) -> "pd.DataFrame":
    """Rows of one arm, as many as the table has."""
    from sdv_privpgd import ParticleGradientDescent, fit_table

    if name == "real, bounded":
        return _bounded(rows, most, seed)
    order = {
        "sequence_by": _TIME,
        "previous": list(_PREVIOUS),
        "per_person": list(_CONSTANT),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fit_table(
            rows,
            columns,
            arguments.epsilon,
            _DELTA,
            adjacency="add_remove",
            person_column=_PERSON,
            rows_per_person=most,
            engine=ParticleGradientDescent(num_particles=arguments.num_particles, seed=seed),
            seed=seed,
            **(order if name == "in order" else {}),
        )
    return fitted.sample(len(rows))


def _bounded(rows: "pd.DataFrame", most: int, seed: int) -> "pd.DataFrame":
    """As many visits of each patient that follow each other, from one on that chance draws."""
    _, first, which, number = np.unique(
        rows[_PERSON], return_index=True, return_inverse=True, return_counts=True
    )
    drawn = np.random.default_rng(seed).random(len(first))
    start = first + np.floor(drawn * np.maximum(number - most + 1, 1)).astype(np.int64)
    rank = np.arange(len(rows)) - start[which]
    return rows.loc[(rank >= 0) & (rank < most)]


def _measured(rows: "pd.DataFrame", has_order: bool = True) -> dict[str, Any]:
    """Shares of what was before and is now, of the time between, and of pairs within rows."""
    import pandas as pd

    found: dict[str, Any] = {"days": None}
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
    found["pairs"] = [pd.crosstab(own[a], own[b], normalize=True) for a, b in pairs]
    return found


def _errors(found: Mapping[str, Any], truth: Mapping[str, Any]) -> dict[str, float]:
    errors = {name: _distance(found[name], truth[name]) for name in (*_PREVIOUS, "days")}
    pairs = zip(found["pairs"], truth["pairs"], strict=True)
    return errors | {"pairs": float(np.mean([_distance(one, two) for one, two in pairs]))}


def _distance(one: Any, two: Any) -> float:
    """Half the L1 distance of shares; not a number where there are none."""
    if one is None:
        return np.nan
    first, second = one.align(two, fill_value=0.0)
    return float(np.abs(first.to_numpy() - second.to_numpy()).sum() / 2)
