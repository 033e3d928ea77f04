"""Models that are fitted to real rows with differential privacy, for comparison. Not private here.

DP-EBM (Nori et al. 2021, https://arxiv.org/abs/2106.09680) of InterpretML: an additive model of
single features by boosting, with Gaussian noise in each sum. It answers one question, where
synthetic rows answer many: what it reaches is what its budget can buy for that one alone. Its
epsilon is that of its authors' accounting, under add/remove and with noise of its own generator.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sdv_privpgd.metrics.usefulness import learning_scores

if TYPE_CHECKING:
    from sdv_privpgd.metrics.reading import Described
    from sdv_privpgd.metrics.usefulness import Columns

_DELTA = 1e-5


def scores_of_dp_ebm(
    columns: "Sequence[Described]",
    facts: Mapping[str, Mapping],
    train: "Columns",
    test: "Columns",
    label: str,
    epsilon: float,
) -> dict[str, float]:
    """``learning_scores`` of DP-EBM with its defaults and delta 1e-5. Not private.

    ``facts`` are the declared ranges, which it needs as its bounds.
    """
    try:
        from interpret.privacy import (
            DPExplainableBoostingClassifier,
            DPExplainableBoostingRegressor,
        )
    except ImportError:
        raise SystemExit("DP-EBM needs InterpretML: pip install interpret-core") from None

    (target,) = (column for column in columns if column.name == label)
    features = [column for column in columns if column.name != label]
    given: dict[str, Any] = {
        "feature_types": ["continuous" if each.is_numeric else "nominal" for each in features],
        "privacy_bounds": {
            place: (facts[each.name]["range_min"], facts[each.name]["range_max"])
            for place, each in enumerate(features)
            if each.sdtype == "numerical"
        },
        "epsilon": epsilon,
        "delta": _DELTA,
    }
    if target.is_numeric:
        model: Any = DPExplainableBoostingRegressor(
            privacy_target_min=facts[label]["range_min"],
            privacy_target_max=facts[label]["range_max"],
            **given,
        )
    else:
        model = DPExplainableBoostingClassifier(**given)
    return learning_scores(columns, train, test, label, models={"": model})
