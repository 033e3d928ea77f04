"""Computes all metrics of a synthetic table at once."""

from collections.abc import Collection
from contextlib import suppress

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics.conditional import (
    Errors,
    categorical_marginal_errors,
    linear_threshold_errors,
    mixed_marginal_errors,
)
from sdv_privpgd.metrics.decoded import fidelity_by_pair, range_errors
from sdv_privpgd.metrics.learning import Task, downstream_error, f1_by_model
from sdv_privpgd.metrics.pairs import covariance_error, l1_by_pair, sw1_by_pair
from sdv_privpgd.metrics.queries import NoQueriesError, counting_errors, threshold_errors
from sdv_privpgd.metrics.rows import average, columns


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

    >>> from sdv_privpgd.base.domain import Domain
    >>> domain = Domain(("age", "ward", "ill"), (8, 3, 2))
    >>> rng = np.random.default_rng(0)
    >>> real = rng.integers(0, domain.sizes, (500, 3))
    >>> synthetic = np.zeros_like(real)
    >>> found = scores(domain, real, synthetic)
    >>> sorted(found)
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
    errors: dict[str, Errors] = {}
    if len(categorical) > 1:
        errors["categorical_marginal"] = categorical_marginal_errors(
            domain, real, synthetic, features=categorical, labels=[label]
        )
    if len(numerical) > 1:
        errors["mixed_marginal"] = mixed_marginal_errors(
            domain, real, synthetic, features=numerical, labels=[label], seed=seed
        )
        errors["linear_threshold"] = linear_threshold_errors(
            domain, real, synthetic, features=numerical, labels=[label], seed=seed
        )
    return {
        f"{name}_{what}": value
        for name, both in errors.items()
        for what, value in both._asdict().items()
    }
