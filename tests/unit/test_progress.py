"""What is told of the work that goes on: its steps are public."""

import numpy as np

from sdv_privpgd import ParticleGradientDescent, PrivacyLedger, pipeline, synthesizer  # noqa: F401
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.progress import Shares, one_step
from sdv_privpgd.select.fixed import AllKWay

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def stages_of_a_fit(codes: np.ndarray, seed: int) -> list[tuple[str, int]]:
    """The stages that a fit shows, and of how many steps each is."""
    seen = []

    def record(items, stage):
        seen.append((stage, len(items)))
        return items

    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE)
    words = np.random.default_rng(seed).bytes
    engine = ParticleGradientDescent(num_particles=50, epochs=2)
    curator = Curator(Dataset(DOMAIN, codes), Books(ledger, words=words))
    pipeline.run(curator, AllKWay(), engine, progress=record)
    return seen


def test_steps_are_those_that_the_domain_and_the_settings_fix():
    rng = np.random.default_rng(0)
    tables = [
        np.zeros((0, 3), dtype=np.int64),
        np.ones((7, 3), dtype=np.int64),
        rng.integers(0, DOMAIN.sizes, (70_000, 3)),  # more than a block of the counting
    ]
    first, *others = [stages_of_a_fit(codes, seed) for seed, codes in enumerate(tables)]
    assert {"measure", "project", "descend"} <= set(dict(first))
    assert all(stages == first for stages in others)


def told(share):
    """What a stage is told of shares, as steps."""
    seen = []

    def record(items, stage):
        for item in items:
            seen.append((stage, item))
            yield item
        seen.append((stage, "end"))

    shares = Shares(record, "work")
    for each in share:
        shares.reach(each)
    return seen


def test_shares_of_a_stage_become_steps_that_never_fall():
    every = [("work", step) for step in range(100)]
    assert told([]) == every[:1]
    assert told([0.5]) == told([0.2, 0.5]) == told([0.5, 0.5, 0.1]) == every[:51]
    assert told([1.0]) == told([0.3, 1.0]) == [*every, ("work", "end")]


def test_work_without_a_loop_is_a_stage_of_one_step():
    seen = []

    def record(items, stage):
        for _ in items:
            seen.append(f"{stage} begins")
            yield
            seen.append(f"{stage} ends")

    with one_step(record, "work"):
        seen.append("work")
    assert seen == ["work begins", "work", "work ends"]
