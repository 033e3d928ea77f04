"""Codes that surely hold rows, according to noisy answers. Public."""

from collections.abc import Iterable

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.noisy_tables import margin_estimates, noisy_tables
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CutMarginalQuery

_SURE = 4.0
"""A code surely holds rows if its count is this many standard deviations above 0. Noise reaches
that 1 time in 30,000."""


def surely_held(
    domain: Domain, measurements: Iterable[Measurement], deviations: float = _SURE
) -> dict[str, np.ndarray]:
    """Marks each attribute's codes that surely hold rows, bool; none where nothing was measured.

    So sure that their counts are so many standard ``deviations`` of the noise above 0.

    Of a number that a table only cuts, it can be the code for missing alone.

    A decision that rests on this is the same from fit to fit, unless a code holds about as many
    rows as the noise can hide.
    """
    margins = margin_estimates(noisy_tables(domain, measurements), 1)
    held = {
        name: np.zeros(size, dtype=bool)
        for name, size in zip(domain.attributes, domain.sizes, strict=True)
    }
    for (name,), margin in margins.items():
        held[name] = margin.counts > deviations * np.sqrt(margin.variance)
    for measured in measurements:
        query = measured.query
        if not isinstance(query, CutMarginalQuery):
            continue
        for axis, cut in enumerate(query.cuts, start=len(query.clique)):
            if cut.nullable and len(cut.lines) == 1:
                missing = np.take(measured.answer, -1, axis=axis)
                stddev = measured.stddev * np.sqrt(missing.size)
                held[cut.lines[0].name][-1] |= bool(missing.sum() > deviations * stddev)
    return held
