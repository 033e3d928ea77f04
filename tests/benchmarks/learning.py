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

from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks.experiment import means, options, particles, quiet
from sdv_privpgd import fit_table
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.benchmark.tables import SPLIT_SEED, columns_of, load
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.methods.method import method_of
from sdv_privpgd.metrics.learning import learning_scores, usefulness
from sdv_privpgd.metrics.values import Described

_STRATEGIES = ("MST", "AIM", "MWEM", "Independent")


@options(
    tables=["adult"], arms=["PrivPGD", "target", "Real"], epsilons=[1.0], seeds=1, rows=int,
    bins=int, times=1, num_particles=int,
)  # fmt: skip
def rows(given):
    for name in given.tables:
        table = load(name, given.data, cells=32)
        if given.rows is not None and given.rows < len(table.frame):
            frame = table.frame.sample(n=given.rows, random_state=SPLIT_SEED)
            table = replace(table, frame=frame)
        train, test = table.split()
        task = table, train, columns_of(test), [*map(Described.of, table.schema.columns)]
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
    watch, (table, train, test, columns) = Stopwatch(), task
    if arm == "DP-EBM":
        found = _scores_of_dp_ebm(table, columns_of(train), test, columns, epsilon)
        watch.lap("fit_s")
        return {**found, **watch.seconds}
    rows = train if arm == "Real" else _synthetic(table, train, arm, epsilon, seed, given)
    watch.lap("fit_s")
    found = usefulness(columns, columns_of(rows), test, table.label, seed=seed)
    return {**found, **watch.seconds}


def _synthetic(table, train, arm, epsilon, seed, given):
    """As many rows as were fitted, or a multiple of that."""
    with quiet():
        fitted = fit_table(
            train,
            {name: {"sdtype": own.sdtype, **words_of(own)} for name, own in table.facts.items()},
            epsilon,
            method=replace(
                method_of(arm.lower() if arm in _STRATEGIES else "privpgd"),
                engine=particles(given.num_particles, seed=seed),
                num_bins=given.bins,
            ),
            target=table.label if arm == "target" else None,
            seed=seed,
        )
    return fitted.sample(given.times * len(train))


def _scores_of_dp_ebm(table, train, test, columns, epsilon):
    """``learning_scores`` of DP-EBM with its defaults and delta 1e-5.

    The declared ranges are its bounds.
    """
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    (target,) = (column for column in columns if column.name == table.label)
    features = [column for column in columns if column.name != table.label]
    ranges = {
        name: tuple(map(float, own.ends))
        for name, own in table.facts.items()
        if own.sdtype == "numerical"
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
        low, high = ranges[table.label]
        own |= {"privacy_target_min": low, "privacy_target_max": high}
        model = DPExplainableBoostingRegressor(**own)
    else:
        model = DPExplainableBoostingClassifier(**own)
    return learning_scores(columns, train, test, table.label, models={"": model})
