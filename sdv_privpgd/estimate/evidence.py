"""Which codes hold rows for sure, by noisy answers. Public."""

from collections.abc import Iterable

import numpy as np

from sdv_privpgd.domain import Domain
from sdv_privpgd.estimate.noisy_tables import margin_estimates, noisy_tables
from sdv_privpgd.privacy.measurement import Measurement

_SURE = 4.0
"""So many standard deviations above 0 no noise is likely to be: 1 time in 30,000."""


def surely_held(domain: Domain, measurements: Iterable[Measurement]) -> dict[str, np.ndarray]:
    """For each attribute which of its codes hold rows, bool. None do where nothing was measured.

    What takes its cue from this is the same from fit to fit, unless a code holds about as many rows
    as the noise would hide.
    """
    margins = margin_estimates(noisy_tables(domain, measurements), 1)
    held = {
        name: np.zeros(size, dtype=bool)
        for name, size in zip(domain.attributes, domain.sizes, strict=True)
    }
    for (name,), margin in margins.items():
        held[name] = margin.counts > _SURE * np.sqrt(margin.variance)
    return held
