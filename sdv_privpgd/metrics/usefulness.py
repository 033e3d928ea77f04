"""What synthetic rows are good for, in the values that a user gets. Not private.

Models learn from synthetic rows and are tested on real ones; a model tries to tell both apart;
three columns at a time are compared. Columns are read as the synthesizer reads them. Give rows
that no fit has seen as the real ones, and real rows of the same number as the synthetic ones beside
them: that is the best that a table of that size could reach.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.metrics.pairs import columns as codes_by_name
from sdv_privpgd.metrics.pairs import differences
from sdv_privpgd.metrics.values import (
    READ,
    Described,
    as_codes,
    common_cells,
    read_categories,
    read_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

    Columns = Mapping[str, "pd.Series"]


def usefulness(
    columns: "Sequence[Described]",
    rows: "Columns",
    held_out: "Columns",
    label: str | None = None,
    *,
    seed: int = 0,
) -> dict[str, float]:
    """All that is measured here, of synthetic rows beside held-out real ones. Not private.

    ``learning_scores`` if there is a label; ``pmse`` (``propensity_error``); ``tv2`` and ``tv3``
    (``distances``); and ``tail`` (``tail_error``) if a column has numbers.
    """
    found = {} if label is None else learning_scores(columns, rows, held_out, label, seed=seed)
    found["pmse"] = propensity_error(columns, held_out, rows, seed=seed)
    apart = distances(columns, held_out, rows, seed=seed)
    found |= {f"tv{degree}": value for degree, value in apart.items()}
    tail = tail_error(columns, held_out, rows)
    return found if np.isnan(tail) else {**found, "tail": tail}


def tail_error(columns: "Sequence[Described]", real: "Columns", synthetic: "Columns") -> float:
    """How far the smallest and the largest numbers of columns lie off, at least 0. Not private.

    The mean difference of the quantiles below 1 % and above 99 %, over the real ones' mean distance
    from the median: 1 for a column that is the real median in all rows. The mean over all columns
    of numbers or dates that vary; not a number if there is none.
    """
    levels = 0.01 * (np.arange(50) + 0.5) / 50
    levels = np.concatenate((levels, 1 - levels))
    found = []
    for column in columns:
        if not column.is_numeric:
            continue
        read = [read_numbers(column, table[column.name]) for table in (real, synthetic)]
        ours, theirs = (values[(state == READ) & np.isfinite(values)] for values, state in read)
        if len(ours) and len(theirs):
            own, other = (
                np.quantile(each, levels, method="inverted_cdf") for each in (ours, theirs)
            )
            far = np.abs(own - np.median(ours)).mean()
            found += [float(np.abs(own - other).mean() / far)] if far > 0 else []
    return float(np.mean(found)) if found else float("nan")


def learning_scores(
    columns: "Sequence[Described]",
    train: "Columns",
    test: "Columns",
    label: str,
    *,
    models: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """How well models trained on ``train`` predict the label of ``test``. Not private.

    For categories: ``auroc`` (of two classes; the mean over pairs of classes for more), ``f1``
    (macro, over the classes of the test rows) and ``accuracy``; for numbers ``r2``. Rows without a
    label are left out. Features are numbers in their order; a category is its place among the
    values of both tables. ``models`` are scikit-learn's estimators by the beginning of their
    scores' names: by default histogram gradient boosting, and a linear model (logistic or ridge
    regression) whose scores are called ``linear_...``.
    """
    (target,) = (column for column in columns if column.name == label)
    features = [column for column in columns if column.name != label]
    matrices, labels = _features(features, train, test), _features([target], train, test)
    kept = [np.isfinite(each[:, 0]) for each in labels]
    (rows, test_rows), (known, truth) = (
        [each[those] for each, those in zip(pair, kept, strict=True)] for pair in (matrices, labels)
    )
    kind = np.float64 if target.is_numeric else np.int64  # some models read floats as texts
    known, truth = known[:, 0].astype(kind), truth[:, 0].astype(kind)
    score = _of_numbers if target.is_numeric else _of_classes
    rows, test_rows = _readable(rows, test_rows)
    if models is None:
        models = _models(features, target, seed)
    found = {}
    for prefix, model in models.items():
        scores = score(model, rows, known, test_rows, truth)
        found |= {f"{prefix}{name}": value for name, value in scores.items()}
    return found


def propensity_error(
    columns: "Sequence[Described]", real: "Columns", synthetic: "Columns", *, seed: int = 0
) -> float:
    """How well gradient boosting tells synthetic rows from real ones: 0 to 1. Not private.

    Four times the mean square of (the predicted chance that a row is synthetic - 1/2), over equally
    many rows of both, each predicted by a model that has not seen it: the pMSE of Snoke et al. 2018
    in units of its largest value. 0 where nothing tells them apart.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold

    generator = np.random.default_rng(seed)
    matrices = _features(columns, real, synthetic)
    size = min(map(len, matrices))
    if size < 2:
        raise ValueError("Both tables need at least 2 rows to be told apart.")
    rows = np.concatenate(
        [each[generator.choice(len(each), size=size, replace=False)] for each in matrices]
    )
    is_synthetic, chances = np.repeat([0, 1], size), np.empty(2 * size)
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    for learned, judged in folds.split(rows, is_synthetic):
        own, other = _readable(rows[learned], rows[judged])
        model = HistGradientBoostingClassifier(random_state=seed).fit(own, is_synthetic[learned])
        chances[judged] = np.asarray(model.predict_proba(other))[:, 1]
    return float(4 * np.mean((chances - 0.5) ** 2))


def distances(
    columns: "Sequence[Described]",
    real: "Columns",
    synthetic: "Columns",
    *,
    seed: int = 0,
) -> dict[int, float]:
    """The mean total variation distance of the tables of so many columns: 0 to 1. Not private.

    In the cells of ``common_cells``. Of more than 200 tables of a degree, 200 at random.
    """
    domain, *codes = as_codes(common_cells(columns, real, synthetic))
    tables = [codes_by_name(domain, each) for each in codes]
    generator = np.random.default_rng(seed)
    found = {}
    for degree in (2, 3):
        cliques = np.array(list(combinations(range(len(domain)), degree)))
        if len(cliques) > 200:
            cliques = generator.choice(cliques, size=200, replace=False)
        if len(cliques):
            names = [tuple(domain.attributes[axis] for axis in axes) for axes in cliques]
            apart = [np.abs(differences(domain, each, *tables)[1]).sum() / 2 for each in names]
            found[degree] = float(np.mean(apart))
    return found


def _readable(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features without columns of which nothing can be learned, which boosting refuses: all 0."""
    empty = np.isnan(train).all(axis=0)
    return np.where(empty, 0.0, train), np.where(empty, 0.0, test)


def _models(features: "Sequence[Described]", target: "Described", seed: int) -> dict[str, Any]:
    """Gradient boosting and a linear model, by the beginning of their scores' names."""
    # scikit-learn takes seconds to import, and most metrics do without.
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [place for place, column in enumerate(features) if column.is_ordered]
    others = [place for place in range(len(features)) if place not in numbers]
    prepared = make_column_transformer(
        (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), others),
    )
    if target.is_numeric:
        return {
            "": HistGradientBoostingRegressor(random_state=seed),
            "linear_": make_pipeline(prepared, Ridge()),
        }
    return {
        "": HistGradientBoostingClassifier(random_state=seed),
        "linear_": make_pipeline(prepared, LogisticRegression(max_iter=1_000)),
    }


def _of_classes(model: Any, rows, known, test_rows, truth) -> dict[str, float]:
    from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

    classes = np.unique(truth)
    if len(np.unique(known)) < 2:  # classifiers refuse to learn from one class
        chances = np.full((len(truth), len(classes)), 1 / len(classes))
        guesses = np.full(len(truth), known[0] if len(known) else np.nan)
    else:
        model.fit(rows, known)
        guesses = model.predict(test_rows)
        # Classes that the synthetic rows lack have no chance; those that only they have, no row.
        chances = np.zeros((len(truth), len(classes)))
        given = model.predict_proba(test_rows)
        for place, value in enumerate(classes):
            if value in model.classes_:
                chances[:, place] = given[:, np.searchsorted(model.classes_, value)]
    macro: Any = {"average": "macro", "labels": classes, "zero_division": 0}
    found = {
        "f1": float(f1_score(truth, guesses, **macro)),
        "accuracy": float(accuracy_score(truth, guesses)),
    }
    if len(classes) == 2:
        found["auroc"] = float(roc_auc_score(truth == classes[1], chances[:, 1]))
    elif len(classes) > 2:
        sums = chances.sum(axis=1, keepdims=True)
        even = np.where(sums > 0, chances / np.where(sums > 0, sums, 1), 1 / len(classes))
        found["auroc"] = float(roc_auc_score(truth, even, multi_class="ovo", labels=classes))
    return found


def _of_numbers(model: Any, rows, known, test_rows, truth) -> dict[str, float]:
    from sklearn.metrics import r2_score

    if not len(known):
        return {"r2": 0.0}
    return {"r2": float(r2_score(truth, model.fit(rows, known).predict(test_rows)))}


def _features(
    columns: "Sequence[Described]", first: "Columns", second: "Columns"
) -> tuple[np.ndarray, np.ndarray]:
    """Both tables as numbers, NaN where nothing could be read, shape (row, column)."""
    import pandas as pd

    cut, end = (len(next(iter(table.values()))) for table in (first, second))
    found = np.empty((cut + end, len(columns)))
    with quiet():
        for axis, column in enumerate(columns):
            pair = first[column.name], second[column.name]
            if column.is_numeric:
                read = [read_numbers(column, each) for each in pair]
                both = [np.where(state == READ, values, np.nan) for values, state in read]
                found[:, axis] = np.concatenate(both)
                continue
            keys, codes = read_categories(column, pd.concat([each.astype(object) for each in pair]))
            rank = {value: place for place, value in enumerate(column.order)}
            order = sorted(keys, key=lambda key: (rank.get(key, len(rank)), str(key)))
            place_of = {key: float(place) for place, key in enumerate(order)}
            found[:, axis] = np.array([*(place_of[key] for key in keys), np.nan])[codes]
    return found[:cut], found[cut:]
