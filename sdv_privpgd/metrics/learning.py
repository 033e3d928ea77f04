"""All of the papers' metrics at once, and what models learn from synthetic rows.

Tables are codes of one domain, shape (row, attribute). The test rows are real rows that no fit has
seen. They are read without protection: no result is private.
"""

import warnings
from collections.abc import Collection
from contextlib import suppress
from typing import Literal

import numpy as np

from sdv_privpgd._lazy import need
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics.pairs import (
    Columns,
    average,
    centers,
    columns,
    covariance_error,
    fidelity_by_pair,
    l1_by_pair,
    sw1_by_pair,
)
from sdv_privpgd.metrics.queries import (
    NoQueriesError,
    categorical_marginal_errors,
    counting_errors,
    linear_threshold_errors,
    mixed_marginal_errors,
    range_errors,
    threshold_errors,
)

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
        import pandas as pd

        numeric = [name for name in domain.attributes if name not in nominal]
        # They are clipped as in the other metrics.
        tables = [pd.DataFrame(columns(domain, codes)) for codes in (test, synthetic)]
        found["range_query"] = average(range_errors(*tables, numeric=numeric, seed=seed))
        found["fidelity"] = average(fidelity_by_pair(*tables, numeric=numeric))
    if label is not None:
        found |= _conditional(domain, real, synthetic, label, nominal, seed)
    if models and test is not None and label is not None:
        found["downstream"] = downstream_error(domain, synthetic, test, label, task=task, seed=seed)
        if task == "classification":
            found["ml_efficiency"] = average(
                f1_by_model(domain, synthetic, test, label, nominal=nominal, seed=seed)
            )
    return found


def _conditional(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    label: str,
    nominal: Collection[str],
    seed: int,
) -> dict[str, float]:
    """RAP++'s errors over the features that each class of queries is about."""
    features = [name for name in domain.attributes if name != label]
    numerical = [name for name in features if name not in nominal]
    categorical = [name for name in features if name in nominal]
    tables, errors = (domain, real, synthetic), {}
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

    trained, tested = columns(domain, synthetic), columns(domain, test)
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

    trained, tested = columns(domain, synthetic), columns(domain, test)
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
