"""What residuals and their sums over groups say of a scale, beside densities of whole tables."""

import numpy as np

from sdv_privpgd.estimate.effects import GroupSums, Residual
from sdv_privpgd.estimate.signals import Covariance, Evidence


def covariance(rng, size):
    root = rng.normal(size=(size, size))
    return Covariance.of(root @ root.T)


def nats(values, spread):
    """The negative logarithm of a normal density, but for a constant."""
    flat = values.ravel()
    return (np.linalg.slogdet(spread)[1] + flat @ np.linalg.solve(spread, flat)) / 2


def test_scales_are_as_likely_as_whole_tables_say():
    rng = np.random.default_rng(0)
    known = {name: covariance(rng, size) for name, size in (("a", 5), ("b", 4), ("c", 1))}
    whole = {n: (own.directions * own.variances) @ own.directions.T for n, own in known.items()}
    scales = np.array([0.0, 1.0, 10.0, 1e3, 1e5])
    residuals, sums, wanted = [], {}, []
    for pair in (("a", "b"), ("b", "c"), ("a", "c")):
        sizes = [len(known[name].variances) for name in pair]
        noise = np.inf if pair == ("a", "c") else 4.0  # of one pair there are sums alone
        residuals.append(Residual(pair, 3 * rng.normal(size=sizes), noise))
        maps = [rng.normal(size=(2, size)) for size in sizes]
        sums[pair] = [GroupSums(*maps, 5 * rng.normal(size=(2, 2)), 1.5)]
        spread, member = np.kron(*(whole[name] for name in pair)), np.kron(*maps)
        wanted.append(
            [
                nats(sums[pair][0].values, scale * member @ spread @ member.T + 1.5 * np.eye(4))
                + (
                    nats(residuals[-1].values, scale * spread + noise * np.eye(len(spread)))
                    if np.isfinite(noise)
                    else 0.0
                )
                for scale in scales
            ]
        )
    found = Evidence(residuals, sums, known).nats(np.tile(scales, (3, 1)))
    # Variances that differ by less than a fifth count as one.
    np.testing.assert_allclose(found, wanted, rtol=0.01)
