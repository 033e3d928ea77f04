import pytest
import torch

from sdv_privpgd.synthesize.particles.draws import draw_steps, memberships
from sdv_privpgd.synthesize.particles.kernels import PackedTargets

AXES = [[0], [3, 1], [2, 0, 1], [1, 2], [0, 3]]


def targets():
    return PackedTargets.of(
        AXES, [torch.full((1, len(those)), 0.5) for those in AXES], [torch.ones(1)] * len(AXES)
    )


def draws(num_epochs=3, **changes):
    settings = {"batch_size": 2, "num_slices": 4, "stratified": True, **changes}
    generator = torch.Generator().manual_seed(0)
    return list(draw_steps(targets(), 5, range(num_epochs), num_epochs, generator, **settings))


@pytest.mark.parametrize("batch_size", [1, 2, 5, 9])
def test_each_epoch_visits_every_table_once_in_steps_of_one_shape(batch_size):
    steps = draws(batch_size=batch_size)
    per_epoch = -(-5 // min(batch_size, 5))
    assert len(steps) == 3 * per_epoch
    assert len({tuple(step.directions.shape) for step in steps}) == 1
    for epoch in range(3):
        own = steps[epoch * per_epoch : (epoch + 1) * per_epoch]
        tables = torch.cat([step.tables for step in own])
        assert sorted(tables[tables >= 0].tolist()) == [0, 1, 2, 3, 4]
    assert [step.elapsed for step in steps] == pytest.approx(
        [index / len(steps) for index in range(len(steps))]
    )


@pytest.mark.parametrize("stratified", [True, False])
def test_directions_are_unit_vectors_in_the_dimensions_of_the_table(stratified):
    for step in draws(stratified=stratified):
        for table, directions in zip(step.tables.tolist(), step.directions, strict=True):
            dim = len(AXES[table]) if table >= 0 else 0
            assert not directions[:, dim:].any()
            if dim:
                assert directions.norm(dim=1) == pytest.approx(torch.ones(4))


def test_counts_say_how_many_tables_hold_an_attribute():
    for step in draws():
        held = [axis for table in step.tables.tolist() if table >= 0 for axis in AXES[table]]
        assert step.counts.tolist() == [held.count(axis) for axis in range(5)]
    assert memberships(targets(), 5).sum(dim=0).tolist() == [3, 3, 2, 2, 0]
