"""The public names and where they live, which ``__init__`` reads."""

from ._sdmetrics import CategoricalMarginalError as CategoricalMarginalError
from ._sdmetrics import CountingQueryError as CountingQueryError
from ._sdmetrics import CovarianceError as CovarianceError
from ._sdmetrics import DownstreamError as DownstreamError
from ._sdmetrics import FidelityError as FidelityError
from ._sdmetrics import LinearThresholdError as LinearThresholdError
from ._sdmetrics import MixedMarginalError as MixedMarginalError
from ._sdmetrics import MLEfficiency as MLEfficiency
from ._sdmetrics import PairwiseSlicedWasserstein as PairwiseSlicedWasserstein
from ._sdmetrics import PairwiseTotalVariation as PairwiseTotalVariation
from ._sdmetrics import RangeQueryError as RangeQueryError
from ._sdmetrics import ThresholdQueryError as ThresholdQueryError
from .learning import downstream_error as downstream_error
from .learning import f1_by_model as f1_by_model
from .learning import scores as scores
from .pairs import covariance_error as covariance_error
from .pairs import fidelity_by_pair as fidelity_by_pair
from .pairs import l1_by_pair as l1_by_pair
from .pairs import sw1_by_pair as sw1_by_pair
from .queries import categorical_marginal_errors as categorical_marginal_errors
from .queries import counting_errors as counting_errors
from .queries import linear_threshold_errors as linear_threshold_errors
from .queries import mixed_marginal_errors as mixed_marginal_errors
from .queries import range_errors as range_errors
from .queries import threshold_errors as threshold_errors
