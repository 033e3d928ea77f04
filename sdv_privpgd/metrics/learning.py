"""All of the papers' metrics at once, and what models learn from synthetic rows. Not private.

Tables are codes of one domain, shape (row, attribute), in ``scores`` and what it calls. The rest is
on the values that a user gets, read as the synthesizer reads them: models learn from synthetic rows
and are tested on real ones; a model tries to tell both apart; three columns at a time are compared.
The test rows are real rows that no fit has seen. Real rows of the same number as the synthetic ones
show the best that a table of that size could reach.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd

from sdv_privpgd._lazy import need
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.metrics.pairs import (
    Columns,
    average,
    centers,
    covariance_error,
    differences,
    fidelity_by_pair,
    l1_by_pair,
    sw1_by_pair,
)
from sdv_privpgd.metrics.pairs import columns as codes_by_name
from sdv_privpgd.metrics.queries import (
    NoQueriesError,
    categorical_marginal_errors,
    counting_errors,
    linear_threshold_errors,
    mixed_marginal_errors,
    range_errors,
    threshold_errors,
)
from sdv_privpgd.metrics.values import (
    READ,
    Described,
    as_codes,
    common_cells,
    read_categories,
    read_numbers,
)

Table = Mapping[str, pd.Series]
"""The columns of a table of values, by name."""

Task = Literal["classification", "regression"]


def scores(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    test: np.ndarray | None = None,
    label: str | None = None,
    task: Task = "classification",
    nominal: Collection[str] = (),
    seed: int = 0,
    models: bool = True,
) -> dict[str, float]:
    """The papers' metrics of a synthetic table under their names. Not private.

    They compare with the real rows without noise. Do not publish them about a table that has to be
    protected, and do not choose the settings of a private fit by them. ``counting`` is left out
    for an almost constant table, which has no such queries.

    Args:
        domain: The attributes and their numbers of codes.
        real: The codes of the rows that were fitted, shape (row, attribute).
        synthetic: The codes of the synthetic rows.
        test: The codes of real rows that were not fitted. Adds the benchmark paper's
            ``range_query`` and ``fidelity`` (on codes; a code is a level), which compare with them.
        label: The attribute to be predicted. Adds RAP++'s class-conditional queries, if there
            are two features of their kind, and with ``test`` also ``downstream`` and, for
            classification, ``ml_efficiency``.
        task: The kind of prediction of ``downstream``.
        nominal: The attributes whose order means nothing. All others are numerical.
        seed: The seed of queries, slices and models.
        models: Whether models are trained, which takes most of the time.

    >>> domain = Domain(("age", "ward", "ill"), (8, 3, 2))
    >>> real = np.random.default_rng(0).integers(0, domain.sizes, (500, 3))
    >>> sorted(scores(domain, real, np.zeros_like(real)))
    ['counting', 'covariance', 'covariance_to_real', 'half_l1', 'l1', 'sw1', 'threshold']
    """
    found = {
        "sw1": average(sw1_by_pair(domain, real, synthetic, seed=seed)),
        "l1": average(l1_by_pair(domain, real, synthetic)),
        "covariance": covariance_error(domain, real, synthetic, relative_to="synthetic"),
        "covariance_to_real": covariance_error(domain, real, synthetic),
        "threshold": average(threshold_errors(domain, real, synthetic, seed=seed)),
    }
    found["half_l1"] = found["l1"] / 2
    with suppress(NoQueriesError):
        found["counting"] = average(counting_errors(domain, real, synthetic, seed=seed))
    if test is not None:
        numeric = [name for name in domain.attributes if name not in nominal]
        # They are clipped as in the other metrics.
        tables = [pd.DataFrame(codes_by_name(domain, codes)) for codes in (test, synthetic)]
        found["range_query"] = average(range_errors(*tables, numeric=numeric, seed=seed))
        found["fidelity"] = average(fidelity_by_pair(*tables, numeric=numeric))
    if label is not None:
        found |= _conditional((domain, real, synthetic), label, nominal, seed)
    if models and test is not None and label is not None:
        found["downstream"] = downstream_error(domain, synthetic, test, label, task=task, seed=seed)
        if task == "classification":
            found["ml_efficiency"] = average(
                f1_by_model(domain, synthetic, test, label, nominal=nominal, seed=seed)
            )
    return found


def _conditional(
    tables: tuple[Domain, np.ndarray, np.ndarray], label: str, nominal: Collection[str], seed: int
) -> dict[str, float]:
    """RAP++'s errors over the features that each class of queries is about."""
    features = [name for name in tables[0].attributes if name != label]
    numerical = [name for name in features if name not in nominal]
    categorical = [name for name in features if name in nominal]
    errors = {}
    if len(categorical) > 1:
        own = {"features": categorical, "labels": [label]}
        errors["categorical_marginal"] = categorical_marginal_errors(*tables, **own)
    if len(numerical) > 1:
        own = {"features": numerical, "labels": [label], "seed": seed}
        errors["mixed_marginal"] = mixed_marginal_errors(*tables, **own)
        errors["linear_threshold"] = linear_threshold_errors(*tables, **own)
    return {
        f"{name}_{what}": value
        for name, both in errors.items()
        for what, value in both._asdict().items()
    }


def downstream_error(
    domain: Domain,
    synthetic: np.ndarray,
    test: np.ndarray,
    label: str,
    *,
    task: Task = "classification",
    seed: int = 0,
) -> float:
    """The error on test rows of gradient boosting trained on synthetic ones. Not private.

    It is the share of wrong labels or, for regression, the mean squared error in units of the
    label's codes. The model is scikit-learn's GradientBoostingClassifier or -Regressor with its
    defaults, on the codes of all other attributes (Donhauser et al. 2024, section 4.1, which names
    no library). Compare it with the error of the same model trained on real rows.

    >>> domain = Domain(("age", "ill"), (8, 2))
    >>> ages = np.arange(200) % 8
    >>> test = np.stack([ages, ages > 3], axis=1)
    >>> downstream_error(domain, test, test, "ill")
    0.0
    """
    need("downstream_error", "sklearn")
    # scikit-learn takes seconds to import, and most metrics do without.
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    trained, tested = codes_by_name(domain, synthetic), codes_by_name(domain, test)
    features = _features(domain, label)
    kind = GradientBoostingClassifier if task == "classification" else GradientBoostingRegressor
    found = _predictions(
        kind(random_state=seed),
        _codes(trained, features),
        trained[label].astype(np.int64),
        _codes(tested, features),
    )
    truth = tested[label].astype(np.int64)
    errors = found != truth if task == "classification" else (found - truth) ** 2
    return float(errors.mean())


def f1_by_model(
    domain: Domain,
    synthetic: np.ndarray,
    test: np.ndarray,
    label: str,
    *,
    nominal: Collection[str] = (),
    seed: int = 0,
) -> dict[str, float]:
    """The macro F1 on test rows of each model trained on synthetic ones. Not private.

    The mean is over the classes of the test rows. Over the models it is the "machine learning
    efficiency" of Chen et al. 2025, who take CatBoost, XGBoost, a random forest and a perceptron,
    each tuned on real rows. These are scikit-learn's, untuned. So do not compare their values with
    the paper's.

    The two models of trees get codes. The other two get a column for each code of a nominal
    attribute, and the standardized position in [0, 1] of other attributes.

    >>> domain = Domain(("age", "ill"), (8, 2))
    >>> ages = np.arange(200) % 8
    >>> test = np.stack([ages, ages > 3], axis=1)
    >>> sorted(f1_by_model(domain, test, test, "ill"))
    ['gradient boosting', 'logistic regression', 'perceptron', 'random forest']
    """
    need("f1_by_model", "sklearn")
    # scikit-learn takes seconds to import, and most metrics do without.
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    trained, tested = codes_by_name(domain, synthetic), codes_by_name(domain, test)
    features = _features(domain, label)
    as_codes = [_codes(table, features) for table in (trained, tested)]
    as_vectors = [_vectors(domain, table, features, nominal) for table in (trained, tested)]
    # No early stopping, because it splits off rows by label and fails for a label's only row.
    perceptron = MLPClassifier(
        batch_size=min(1_000, len(synthetic)),  # pyright: ignore[reportArgumentType]
        max_iter=50,
        random_state=seed,
    )
    models = {
        "random forest": (RandomForestClassifier(n_jobs=-1, random_state=seed), as_codes),
        "gradient boosting": (
            HistGradientBoostingClassifier(
                early_stopping=False,  # pyright: ignore[reportArgumentType]
                random_state=seed,
            ),
            as_codes,
        ),
        "perceptron": (make_pipeline(StandardScaler(), perceptron), as_vectors),
        "logistic regression": (
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
            as_vectors,
        ),
    }
    scores = {}
    for name, (model, (rows, test_rows)) in models.items():
        with warnings.catch_warnings():
            # A model is used after its full number of steps, converged or not.
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = _predictions(model, rows, trained[label], test_rows)
        # A class that no test row has would count as an F1 of 0 if synthetic rows had it.
        classes = np.unique(tested[label]).tolist()
        scores[name] = float(f1_score(tested[label], found, labels=classes, average="macro"))
    return scores


def _predictions(model, rows: np.ndarray, labels: np.ndarray, test_rows: np.ndarray) -> np.ndarray:
    """The model's predictions for the test rows; if all labels are equal, that label."""
    if (labels == labels[0]).all():  # most classifiers refuse
        return np.full(len(test_rows), labels[0])
    return model.fit(rows, labels).predict(test_rows)


def _features(domain: Domain, label: str) -> tuple[str, ...]:
    domain.axes((label,))  # raises for an unknown one
    features = tuple(name for name in domain.attributes if name != label)
    if not features:
        raise ValueError(f"Learning {label!r} needs another attribute, the domain has none.")
    return features


def _codes(table: Columns, features: tuple[str, ...]) -> np.ndarray:
    return np.stack([table[name] for name in features], axis=1).astype(np.float32)


def _vectors(
    domain: Domain, table: Columns, features: tuple[str, ...], nominal: Collection[str]
) -> np.ndarray:
    parts = []
    for name in features:
        (size,) = domain.shape((name,))
        each = np.eye(size) if name in nominal else centers(size)[:, None]
        parts.append(each.astype(np.float32)[table[name]])
    return np.concatenate(parts, axis=1)


def usefulness(
    columns: Sequence[Described],
    rows: Table,
    held_out: Table,
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


def tail_error(columns: Sequence[Described], real: Table, synthetic: Table) -> float:
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
    columns: Sequence[Described],
    train: Table,
    test: Table,
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
    matrices, labels = _matrices(features, train, test), _matrices([target], train, test)
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
    columns: Sequence[Described], real: Table, synthetic: Table, *, seed: int = 0
) -> float:
    """How well gradient boosting tells synthetic rows from real ones: 0 to 1. Not private.

    Four times the mean square of (the predicted chance that a row is synthetic - 1/2), over equally
    many rows of both, each predicted by a model that has not seen it: the pMSE of Snoke et al. 2018
    in units of its largest value. 0 where nothing tells them apart.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold

    generator = np.random.default_rng(seed)
    matrices = _matrices(columns, real, synthetic)
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
    columns: Sequence[Described], real: Table, synthetic: Table, *, seed: int = 0
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


def _models(features: Sequence[Described], target: Described, seed: int) -> dict[str, Any]:
    """Gradient boosting and a linear model, by the beginning of their scores' names."""
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


def _matrices(
    columns: Sequence[Described], first: Table, second: Table
) -> tuple[np.ndarray, np.ndarray]:
    """Both tables as numbers, NaN where nothing could be read, shape (row, column)."""
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
