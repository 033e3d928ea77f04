"""Private-PGM beside its authors' package: the same models, as near to the answers, as small."""

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement
from sdv_privpgd.synthesize.graphical import JunctionTree
from sdv_privpgd.synthesize.pgm import PrivatePGM

TOTAL = 5_000


def noisy_answers(seed: int) -> tuple[Domain, list[Measurement]]:
    """All columns and some pairs of correlated rows, with noise of unequal scales."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 7, 6))
    domain = Domain(tuple("abcdef"), sizes)
    hidden = rng.normal(size=(TOTAL, 1)) + 0.7 * rng.normal(size=(TOTAL, 6))
    rows = np.clip((hidden + 2) / 4 * sizes, 0, np.array(sizes) - 1).astype(int)
    pairs = [domain.cliques(2)[at] for at in rng.permutation(15)[:7]]
    measured = []
    for clique in (*domain.cliques(1), *pairs):
        counts = np.zeros(domain.shape(clique), dtype=np.int64)
        np.add.at(counts, tuple(rows[:, domain.axes(clique)].T), 1)
        stddev = float(rng.uniform(5, 60))
        noise = np.rint(rng.normal(0, stddev, counts.shape)).astype(np.int64)
        measured.append(
            Measurement(query=MarginalQuery(clique), answer=counts + noise, stddev=stddev)
        )
    return domain, measured


def loss(domain: Domain, measured: list[Measurement], marginal) -> float:
    """Half the squared errors in standard deviations."""
    return 0.5 * sum(
        (((TOTAL * marginal(each.query.clique) - each.answer) / each.stddev) ** 2).sum()
        for each in measured
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_the_model_is_theirs_and_as_likely(mbi, in_mbi, seed):
    import jax

    from sdv_privpgd.privacy.queries import CountQuery

    domain, measured = noisy_answers(seed)
    known = Measurement(query=CountQuery(), answer=np.array([TOTAL]), stddev=0.0)
    model = PrivatePGM(steps=5_000, tolerance=1e-7).fit(domain, [known, *measured])
    with jax.enable_x64(True):
        theirs = mbi.estimation.MirrorDescent().estimate(
            *in_mbi(domain, measured), known_total=TOTAL, iters=20_000, tol=1e-7
        )

        def their_marginal(clique):
            return np.array(theirs.project(clique).datavector(flatten=False)) / TOTAL

        their_loss = loss(domain, measured, their_marginal)
        assert loss(domain, measured, model.marginal) <= their_loss * (1 + 1e-3)
        for clique in (*domain.cliques(2), ("a", "c", "e")):
            np.testing.assert_allclose(
                model.marginal(clique), their_marginal(clique), rtol=0, atol=2e-3
            )


def test_trees_are_not_larger_than_theirs(mbi):
    rng = np.random.default_rng(0)
    ours = their = 0.0
    for _ in range(200):
        domain = Domain(tuple("abcdefghij"), tuple(int(size) for size in rng.integers(2, 33, 10)))
        pairs = [domain.cliques(2)[at] for at in rng.permutation(45)[: rng.integers(5, 20)]]
        ours += np.log(JunctionTree.of(domain, pairs).num_cells)
        their += np.log(
            mbi.junction_tree.hypothetical_model_size(
                mbi.Domain(domain.attributes, domain.sizes), pairs
            )
            * 2**17
        )
    assert ours <= their
