"""What rows are for, on decoded values: learn from synthetic rows, be tested on real ones.

80 % of a table's rows are fitted as a user would (``fit_table``, with ranges and categories
declared), and as many synthetic rows are compared with the 20 % that no fit has seen. The arms:
``PrivPGD``; ``target``, the same with ``target`` set to the label; ``MST``, ``AIM``, ``MWEM`` and
``Independent``, with our engine; ``Real``, the fitted rows themselves: what a perfect synthesizer
would reach; and ``DP-EBM``, InterpretML's private boosting (Nori et al. 2021), a model that is
fitted to the real rows without any synthetic ones. It answers one question, where synthetic rows
answer many. Its epsilon is that of its authors' accounting, under add/remove.

``auroc`` (``auroc_sd`` is its standard deviation over fits), ``f1`` (macro) and ``accuracy``, or
``r2``, are those of gradient boosting, ``linear_`` of a linear model; ``pmse`` says how well
boosting tells synthetic from real rows; ``tv2`` and ``tv3`` are mean distances of 2-way and 3-way
tables in cells made of both tables' values; ``tail`` says how far the ends of columns of numbers
lie off (``metrics.learning``). ``--times`` samples so many times the fitted rows. Not private.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.experiment import means, options, particles, quiet
from sdv_privpgd import fit_table
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.benchmark.tables import SPLIT_SEED, TABLES, TEST_SHARE, columns_of, rows_and_facts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods.method import method_of
from sdv_privpgd.metrics.learning import learning_scores, usefulness
from sdv_privpgd.metrics.values import Described

_STRATEGIES = ("MST", "AIM", "MWEM", "Independent")


@dataclass(frozen=True, kw_only=True)
class Task:
    """A table, what is declared of it, and its rows to fit and to test."""

    label: str
    facts: Mapping[str, Mapping]
    columns: list[Described]
    train: pd.DataFrame
    test: pd.DataFrame

    @classmethod
    def of(cls, name, folder, num_rows=None):
        """The task of one of ``TABLES``, or of ``num_rows`` of its rows."""
        from sklearn.model_selection import train_test_split

        frame, facts = rows_and_facts(name, folder)
        if num_rows is not None and num_rows < len(frame):
            frame = frame.sample(n=num_rows, random_state=SPLIT_SEED)
        places = np.arange(len(frame))
        train, test = train_test_split(places, test_size=TEST_SHARE, random_state=SPLIT_SEED)
        return cls(
            label=TABLES[name].label,
            facts=facts,
            columns=[Described.of(column) for column in Schema.from_sdv(facts).columns],
            train=frame.take(train),
            test=frame.take(test),
        )


@options(
    tables=["adult"], arms=["PrivPGD", "target", "Real"], epsilons=[1.0], seeds=1, rows=int,
    bins=int, times=1, num_particles=int,
)  # fmt: skip
def rows(given):
    for name in given.tables:
        task = Task.of(name, given.data, given.rows)
        runs = [("Real", np.inf)] if "Real" in given.arms else []
        runs += product([arm for arm in given.arms if arm != "Real"], given.epsilons)
        for arm, epsilon in runs:
            seeds = range(1 if arm == "Real" else given.seeds)
            every = [_run(task, arm, epsilon, seed, given) for seed in seeds]
            found = means(every)
            if len(every) > 1 and "auroc" in found:
                found["auroc_sd"] = float(np.std([each["auroc"] for each in every], ddof=1))
            yield {"table": name[:13], "arm": arm, "epsilon": epsilon, **found}


def _run(task, arm, epsilon, seed, given):
    """The scores of one fit."""
    watch, test = Stopwatch(), columns_of(task.test)
    if arm == "DP-EBM":
        found = _scores_of_dp_ebm(task, epsilon)
        watch.lap("fit_s")
        return {**found, **watch.seconds}
    rows = task.train if arm == "Real" else _synthetic(task, arm, epsilon, seed, given)
    watch.lap("fit_s")
    found = usefulness(task.columns, columns_of(rows), test, task.label, seed=seed)
    return {**found, **watch.seconds}


def _synthetic(task, arm, epsilon, seed, given):
    """As many rows as were fitted, or a multiple of that."""
    with quiet():
        fitted = fit_table(
            task.train,
            task.facts,
            epsilon,
            method=replace(
                method_of(arm.lower() if arm in _STRATEGIES else "privpgd"),
                engine=particles(given.num_particles, seed=seed),
                num_bins=given.bins,
            ),
            target=task.label if arm == "target" else None,
            seed=seed,
        )
    return fitted.sample(given.times * len(task.train))


def _scores_of_dp_ebm(task, epsilon):
    """``learning_scores`` of DP-EBM with its defaults and delta 1e-5.

    The declared ranges are its bounds.
    """
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    (target,) = (column for column in task.columns if column.name == task.label)
    features = [column for column in task.columns if column.name != task.label]
    ranges = {
        name: (facts["range_min"], facts["range_max"])
        for name, facts in task.facts.items()
        if facts["sdtype"] == "numerical"
    }
    own = {
        "feature_types": ["continuous" if each.is_numeric else "nominal" for each in features],
        "privacy_bounds": {
            place: ranges[each.name]
            for place, each in enumerate(features)
            if each.sdtype == "numerical"
        },
        "epsilon": epsilon,
        "delta": 1e-5,
    }
    if target.is_numeric:
        low, high = ranges[task.label]
        own |= {"privacy_target_min": low, "privacy_target_max": high}
        model = DPExplainableBoostingRegressor(**own)
    else:
        model = DPExplainableBoostingClassifier(**own)
    rows = columns_of(task.train), columns_of(task.test)
    return learning_scores(task.columns, *rows, task.label, models={"": model})
