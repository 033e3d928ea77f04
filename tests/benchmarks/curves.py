"""Error over seconds on real tables, for epochs, sweeps, batches, copies and momentum.

All points of a table start from one set of measurements and one set of projected targets, so they
differ only in the descent and the finish. "noisy" targets are those of a fit at ``--epsilon``;
"true" ones are the table's own marginals. Seconds are processor seconds of the start, the descent
and the finish, summed over the cores. The errors compare the particles with the real table over all
pairs of columns, and are not private.
"""

import time
from dataclasses import dataclass, field, replace

import torch

from benchmarks.experiment import options, particles
from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.benchmark.meters import Stopwatch
from sdv_privpgd.benchmark.tables import load
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.metrics.pairs import covariance_error, mean_l1, mean_sw1
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.progress import silent
from sdv_privpgd.synthesize.particles.finish import ExchangeFinish
from sdv_privpgd.synthesize.particles.optimizers import TransportStep

_ERRORS = {"L1": mean_l1, "SW1": mean_sw1, "Cov": covariance_error}


@options(
    tables=["acs_income"],
    targets=["noisy", "true"],
    epsilon=2.5,
    num_particles=100_000,
    epochs=[0, 3, 10, 30, 100],
    sweeps=[1, 2, 5, 15],
)
def rows(given):
    for name in given.tables:
        table = load(name, given.data, cells=32)
        domain, codes = table.domain, table.encode(table.frame)
        for targets in given.targets:
            engine, measured = _measured(domain, codes, targets, given)
            for family, changes in _families(given):
                for point in _points(
                    domain, measured, replace(engine, finish=None), changes, given
                ):
                    model = point.pop("model")
                    errors = {
                        key: error(domain, codes, model.codes) for key, error in _ERRORS.items()
                    }
                    yield {"table": name, "targets": targets, "family": family, **point, **errors}


def _families(given):
    """The settings that are varied: their names and changes."""
    some = [epochs for epochs in given.epochs if epochs]
    for epochs in given.epochs:
        yield f"{epochs} epochs", {"epochs": epochs}
    for batch_size in (4, 16):
        yield f"{batch_size} tables a step", {"epochs": max(given.epochs), "batch_size": batch_size}
    for epochs in some[-2:]:
        few = given.num_particles // 5
        yield f"5 copies, {epochs} epochs", {"epochs": epochs, "num_particles": few}
    # With 0 the steps are taken in torch, as with momentum, so that their seconds compare.
    for momentum in (0.0, 0.5, 0.8):
        for epochs in some[-3:-1]:
            step = HeavyBallStep(momentum=momentum)
            yield f"momentum {momentum:g}, {epochs} epochs", {"epochs": epochs, "step": step}


def _measured(domain, codes, targets, given):
    """An engine with all targets projected and everything compiled, and the measurements."""
    dataset, engine = Dataset(domain, codes), particles(given.num_particles)
    engine = replace(engine, projection=_ProjectedOnce(engine.projection))
    tiny = replace(engine, epochs=1, num_particles=100)
    if targets == "noisy":
        measured = fit_dataset(dataset, given.epsilon, PrivPGD(engine=tiny)).measurements
    else:
        pairs = domain.cliques(2)
        measured = [
            Measurement(query=MarginalQuery(pair), answer=counts, stddev=0.0)
            for pair, counts in zip(pairs, dataset.counts_of(pairs), strict=True)
        ]
        tiny.fit(domain, measured)
    replace(tiny, step=HeavyBallStep(momentum=0.5)).fit(domain, measured)
    return engine, measured


def _points(domain, measured, engine, changes, given):
    """A descent, and from its end all numbers of sweeps."""

    def fit(changes, **more):
        watch = Stopwatch(time.process_time)
        model = replace(engine, **changes).fit(domain, measured, progress=watch, **more)
        watch.lap("finish")
        return model, watch.seconds

    descended, spent = fit(changes)
    seconds = spent["start"] + spent["descend"]
    yield {"model": descended, "sweeps": 0, "seconds": seconds}
    for sweeps in given.sweeps:
        finish = {"epochs": 0, "finish": ExchangeFinish(sweeps=sweeps)}
        model, spent = fit(finish, warm_start=descended)
        yield {"model": model, "sweeps": sweeps, "seconds": seconds + spent["finish"]}


@dataclass(frozen=True, kw_only=True)
class HeavyBallStep:
    """The step of ``TransportStep``, averaged with those before it (Polyak 1964).

    A coordinate moves by a running mean of the ways to the targets of the visited tables.
    ``momentum`` is the factor of the mean before a visit.
    """

    momentum: float
    transport: TransportStep = field(default_factory=TransportStep)

    def begin(self, positions):
        mean = torch.zeros_like(positions)
        transport = self.transport.begin(positions)

        def move(pull, elapsed):
            change = (1 - self.momentum) * transport(pull, elapsed)
            mean[pull.columns] = self.momentum * mean[pull.columns] + change
            return mean[pull.columns]

        return move


@dataclass(frozen=True)
class _ProjectedOnce:
    """A projection that solves its tables at the first call and then returns the same results."""

    projection: object
    found: list = field(default_factory=list)

    def __call__(self, centers, values, generator):
        return self.projection(centers, values, generator)

    def project_all(self, tables, generator, progress=silent):
        for _ in progress((), "project"):
            pass  # only the clock is to know that the stage has passed
        if not self.found:
            self.found.extend(self.projection.project_all(tables, generator))
        return self.found
