import math

import torch
from generators import seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from references.wasserstein import cell_centers, on_simplex, project

from sdv_privpgd.synthesize.particles.projection import CompiledProjection, SignedTable, balanced

F64 = torch.float64
values_of = lambda size: st.lists(st.floats(-2, 2), min_size=size, max_size=size).map(
    lambda values: torch.tensor(values, dtype=F64)
)
shapes = st.sampled_from([(1,), (5,), (2, 3), (4, 4), (2, 3, 2)])
tables = shapes.flatmap(
    lambda shape: values_of(math.prod(shape)).map(lambda values: (shape, values))
)
projection = CompiledProjection(num_slices=6, max_steps=50)


def solved(own, centers, values):
    return own.solve_all([SignedTable(centers, values)], seeded())[0]


@given(st.integers(1, 20).flatmap(values_of))
@settings(deadline=None, max_examples=50)
def test_the_simplex_projection_satisfies_its_optimality_conditions(values):
    found = on_simplex(values)
    assert (found >= 0).all()
    assert abs(float(found.sum()) - 1) < 1e-12
    # One threshold for the support, and no value above it outside.
    threshold = (values - found)[found > 0]
    assert float(threshold.max() - threshold.min()) < 1e-12
    assert (values[found == 0] <= threshold.max() + 1e-12).all()


@given(tables)
@settings(deadline=None, max_examples=50)
def test_a_projection_is_a_probability_measure_no_farther_and_stays_projected(table):
    shape, values = table
    centers = cell_centers(shape)
    found = solved(projection, centers, values)
    assert (found.probabilities >= 0).all()
    assert abs(float(found.probabilities.sum()) - 1) < 1e-12
    start = solved(CompiledProjection(num_slices=6, max_steps=0), centers, values)
    expected = on_simplex(balanced(values))
    torch.testing.assert_close(start.probabilities, expected, rtol=0, atol=1e-12)
    assert found.distance <= start.distance
    assert found.lower_bound <= found.distance + 1e-9
    once = project(projection, centers, values, seeded())
    torch.testing.assert_close(
        project(projection, centers, once, seeded()), once, rtol=0, atol=1e-9
    )


@given(tables, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=30)
def test_the_order_of_the_cells_does_not_matter(table, random):
    shape, values = table
    centers = cell_centers(shape)
    order = list(range(len(values)))
    random.shuffle(order)
    solver = CompiledProjection(num_slices=6, max_steps=2_000, tolerance=0.05)
    plain = solved(solver, centers, values)
    permuted = solved(solver, centers[order], values[order])
    # Each interval [lower bound, distance] holds the one optimum, so the two overlap.
    assert plain.lower_bound <= permuted.distance + 1e-9
    assert permuted.lower_bound <= plain.distance + 1e-9
