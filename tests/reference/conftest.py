"""mbi, beside which models are fitted."""

import pytest
from made_up import quiet


@pytest.fixture(scope="module")
def mbi():
    """The package; it warns of settings of jax that we make in a context."""
    pytest.importorskip("mbi", reason="mbi 2 needs Python 3.11 and NumPy 2", exc_type=ImportError)
    with quiet():
        import mbi
    return mbi


@pytest.fixture
def in_mbi(mbi):
    """A domain and noisy tables as mbi takes them."""
    from jax import numpy as jnp

    def turned(domain, measured):
        numbers = [jnp.asarray(each.answer.ravel(), dtype=float) for each in measured]
        return mbi.Domain(domain.attributes, domain.sizes), [
            mbi.LinearMeasurement(own, each.query.clique, each.stddev)
            for own, each in zip(numbers, measured, strict=True)
        ]

    return turned
