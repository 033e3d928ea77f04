"""Terms of a regression, centered and scaled, so that numbers are well conditioned. Public."""

from dataclasses import dataclass, replace

import numpy as np

from sdv_privpgd.inference.design import Design
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.inference.moments import moments, times

_NOISES = 3.0
"""A value of a category is compared if its rows are this many standard deviations of the noise."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """A design whose numerical terms have about mean 0 and variance 1.

    Attributes:
        design: The design, in terms that are scaled, and without those that noise hides.
        back: The matrix that takes its coefficients to those of the terms as they were.
    """

    design: Design
    back: np.ndarray


def scaled(design: Design, estimate: LinearEstimate) -> Scaled:
    """The design with its terms scaled by their noisy means and variances.

    Values of a category that hold no more rows than noise might count with the reference.

    Raises:
        ValueError: For a category all of whose values do.
    """
    terms, back = list(design.terms), np.eye(len(design.terms))
    weak = []
    for place, term in enumerate(design.terms[1:], start=1):
        own = term.product
        found = moments(estimate, [own, times(own, own)], design.present)
        mean, square = found.values
        if set(np.unique(term.values)) <= {0.0, 1.0}:
            if mean < _NOISES * np.sqrt(found.covariance[0, 0]):
                weak.append(term.name)
            continue
        spread = np.sqrt(max(square - mean**2, 0.0)) or np.ptp(term.values) or 1.0
        valued = design.valued[term.column]
        terms[place] = replace(term, values=(term.values - mean) / spread * valued)
        # b (x - m) / s: the slope is b / s, and the intercept loses b m / s.
        back[place, place] = 1 / spread
        back[0, place] = -mean / spread
    kept = [place for place, term in enumerate(terms) if term.name not in weak]
    left = {terms[place].column for place in kept}
    lost = [term.column for term in design.terms if term.column not in left]
    if lost:
        raise ValueError(
            f"The noise hides whether any rows have {' or '.join(weak)}, so nothing can be said of "
            f"{lost[0]!r}. Leave the column out, or declare fewer values."
        )
    notes = [f"Noise hides whether rows have {' or '.join(weak)}: they count with the reference."]
    found = replace(
        design,
        terms=tuple(terms[place] for place in kept),
        notes=(*(notes if weak else []), *design.notes),
    )
    return Scaled(found, back[np.ix_(kept, kept)])
