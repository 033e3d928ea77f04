"""Trains models on synthetic rows and tests them on real ones.

Tables are codes of one domain, shape (row, attribute). The test rows are real rows that no fit has
seen. They are read without protection: no result is private.
"""

import warnings
from collections.abc import Collection
from typing import Literal

import numpy as np

from sdv_privpgd._lazy import need
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics.rows import Columns, centers, columns

Task = Literal["classification", "regression"]


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

    >>> from sdv_privpgd.base.domain import Domain
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

    >>> from sdv_privpgd.base.domain import Domain
    >>> domain = Domain(("age", "ill"), (8, 2))
    >>> ages = np.arange(200) % 8
    >>> test = np.stack([ages, ages > 3], axis=1)
    >>> sorted(f1_by_model(domain, test, test, "ill"))
    ['gradient boosting', 'logistic regression', 'perceptron', 'random forest']
    """
    batch = 1_000
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
        batch_size=min(batch, len(synthetic)),  # pyright: ignore[reportArgumentType]
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
