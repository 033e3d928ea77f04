"""RAP's projection beside mbi's mixture of products, which is the same relaxation in jax."""

import numpy as np
import pytest
from answers import margin, noisy_answers, number_of_rows
from made_up import quiet

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.synthesize.relaxed_projection import RelaxedProjection

DOMAIN = Domain(tuple("abcde"), (2, 3, 4, 3, 2))
COMPONENTS = 50


@pytest.mark.long
def test_it_is_as_near_to_the_answers_and_the_truth_as_mbis_mixture(mbi, in_mbi):
    optax = pytest.importorskip("optax")
    with quiet():
        import mbi.extensions.mixture_of_products

    rng = np.random.default_rng(0)
    counts = np.rint(5_000 * rng.dirichlet(np.full(144, 0.5))).reshape(DOMAIN.sizes)
    total = int(counts.sum())
    tables = {pair: margin(counts, DOMAIN, pair) for pair in DOMAIN.cliques(2)}
    measured = noisy_answers(tables, stddev=30.0)
    # Both start from random numbers and run until nothing is gained.
    ours = RelaxedProjection(num_components=COMPONENTS, tolerance=1e-3).fit(
        DOMAIN, [number_of_rows(total), *measured]
    )
    theirs = mbi.extensions.mixture_of_products.MixtureOfProductsEstimator(
        optimizer=optax.adam(0.1), num_components=COMPONENTS
    ).estimate(*in_mbi(DOMAIN, measured), known_total=total, iters=300)

    def their_marginal(pair):
        return np.array(theirs.project(pair).datavector(flatten=False)) / total

    def loss(marginal):
        return np.mean(
            [
                (((total * marginal(each.query.clique) - each.answer) / each.stddev) ** 2).mean()
                for each in measured
            ]
        )

    def error(marginal):
        return np.mean([np.abs(marginal(p) - own / total).sum() for p, own in tables.items()])

    assert loss(ours.marginal) <= 1.02 * loss(their_marginal)
    assert error(ours.marginal) <= 1.1 * error(their_marginal)


def test_its_answers_are_those_of_mbis_mixture_with_the_same_shares(mbi):
    import jax.numpy as jnp

    model = RelaxedProjection(num_components=20, steps=5).fit(
        DOMAIN, [number_of_rows(100), *noisy_answers({("a", "b"): np.full((2, 3), 16)})]
    )
    ends = np.cumsum(DOMAIN.sizes)[:-1]
    parts = np.split(np.log(model.shares), ends, axis=1)
    logits = dict(zip(DOMAIN.attributes, map(jnp.asarray, parts), strict=True))
    theirs = mbi.extensions.mixture_of_products.MixtureOfProducts(
        logits, mbi.Domain(DOMAIN.attributes, DOMAIN.sizes), 1.0
    )
    for clique in (("a",), ("b", "d"), ("a", "c", "e")):
        found = np.array(theirs.project(clique).datavector(flatten=False))
        np.testing.assert_allclose(model.marginal(clique), found, rtol=1e-4)
