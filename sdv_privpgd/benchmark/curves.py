"""Error over seconds on real tables, for epochs, sweeps, batches, copies and momentum.

All points of a table start from one set of measurements and one set of projected targets, so they
differ only in the descent and the finish. "noisy" targets are those of a fit at ``--epsilon``;
"true" ones are the table's own marginals. Seconds are processor seconds of the start, the descent
and the finish, summed over the cores. The errors compare the particles with the real table over all
pairs of columns, and are not private.
"""

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from sdv_privpgd import ParticleGradientDescent
from sdv_privpgd.benchmark.fits import FOLDER, fit_dataset
from sdv_privpgd.benchmark.meters import Stopwatch, print_table, write_csv
from sdv_privpgd.domain import Domain
from sdv_privpgd.metrics.pairs import covariance_error, mean_l1, mean_sw1
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.synthesize.particles.finish import ExchangeFinish
from sdv_privpgd.synthesize.particles.optimizers import Move, Pull, TransportStep
from sdv_privpgd.synthesize.particles.particles import Particles
from sdv_privpgd.synthesize.particles.projection import Projection, SignedTable

_ERRORS = {"L1": mean_l1, "SW1": mean_sw1, "Cov": covariance_error}

_BATCHES = (4, 16)

_MOMENTA = (0.0, 0.5, 0.8)
"""With 0 the steps are taken in torch, as with momentum, so that their seconds compare."""

_COPIES = 5


def add_command(commands) -> None:
    """Adds ``curves`` to the command line."""
    parser = commands.add_parser("curves", help="error over seconds of the descent's settings")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.add_argument("--tables", nargs="+", default=["acs_income"])
    parser.add_argument("--targets", nargs="+", default=["noisy", "true"])
    parser.add_argument("--epsilon", type=float, default=2.5)
    parser.add_argument("--num-particles", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, nargs="+", default=[0, 3, 10, 30, 100])
    parser.add_argument("--sweeps", type=int, nargs="+", default=[1, 2, 5, 15])
    parser.add_argument("--out", type=Path, default=None, help="folder for curves.csv and .png")
    parser.set_defaults(run=_curves)


def _curves(arguments: argparse.Namespace) -> None:
    from sdv_privpgd.benchmark.tables import load  # imports pandas

    rows: list[dict] = []
    for name in arguments.tables:
        table = load(name, arguments.data, cells=32)
        codes = table.encode(table.frame)
        for targets in arguments.targets:
            course = _Course.of(table.domain, codes, targets, arguments)
            for point in course.points():
                rows.append({"table": name, "targets": targets, **point})
                print_table(rows[-1:], header=len(rows) == 1)
                if arguments.out is not None:
                    write_csv(rows, arguments.out / "curves.csv")
    if arguments.out is not None and find_spec("matplotlib"):
        _draw(rows, arguments.out / "curves.png")


@dataclass(frozen=True, kw_only=True)
class HeavyBallStep:
    """The step of ``TransportStep``, averaged with those before it (Polyak 1964).

    A coordinate moves by a running mean of the ways to the targets of the visited tables.
    ``momentum`` is the factor of the mean before a visit.

    >>> step = HeavyBallStep(momentum=0.5)
    >>> callable(step.begin(torch.rand(2, 3)))
    True
    """

    momentum: float
    transport: TransportStep = field(default_factory=TransportStep)

    def begin(self, positions: torch.Tensor) -> Move:
        mean = torch.zeros_like(positions)
        transport = self.transport.begin(positions)

        def move(pull: Pull, elapsed: float) -> torch.Tensor:
            change = (1 - self.momentum) * transport(pull, elapsed)
            mean[pull.columns] = self.momentum * mean[pull.columns] + change
            return mean[pull.columns]

        return move


@dataclass(frozen=True, kw_only=True)
class _Course:
    """One set of measurements and the engine whose settings are varied on it."""

    domain: Domain
    codes: np.ndarray
    measurements: Sequence[Measurement]
    engine: ParticleGradientDescent
    num_particles: int
    epochs: Sequence[int]
    sweeps: Sequence[int]

    @classmethod
    def of(
        cls, domain: Domain, codes: np.ndarray, targets: str, arguments: argparse.Namespace
    ) -> "_Course":
        """A study with all targets projected and everything compiled."""
        dataset, default = Dataset(domain, codes), ParticleGradientDescent()
        engine = replace(
            default,
            num_particles=arguments.num_particles,
            projection=_ProjectedOnce(default.projection),
        )
        tiny = replace(engine, epochs=1, num_particles=100)
        if targets == "noisy":
            measurements = fit_dataset(dataset, arguments.epsilon, tiny).measurements
        else:
            measurements = [
                Measurement(query=MarginalQuery(clique), answer=counts, stddev=0.0)
                for clique, counts in zip(
                    domain.cliques(2), dataset.counts_of(domain.cliques(2)), strict=True
                )
            ]
            tiny.fit(domain, measurements)
        replace(tiny, step=HeavyBallStep(momentum=0.5)).fit(domain, measurements)
        return cls(
            domain=domain,
            codes=codes,
            measurements=measurements,
            engine=engine,
            num_particles=arguments.num_particles,
            epochs=arguments.epochs,
            sweeps=arguments.sweeps,
        )

    def points(self) -> Iterator[dict]:
        """The errors and seconds of all settings, family by family."""
        for epochs in self.epochs:
            yield from self._family(f"{epochs} epochs", {"epochs": epochs})
        most = max(self.epochs)
        for batch_size in _BATCHES:
            changes = {"epochs": most, "batch_size": batch_size}
            yield from self._family(f"{batch_size} tables a step", changes)
        few = self.num_particles // _COPIES
        for epochs in [epochs for epochs in self.epochs if epochs][-2:]:
            changes = {"epochs": epochs, "num_particles": few}
            yield from self._family(f"{_COPIES} copies, {epochs} epochs", changes)
        for momentum in _MOMENTA:
            for epochs in [epochs for epochs in self.epochs if epochs][-3:-1]:
                changes = {"epochs": epochs, "step": HeavyBallStep(momentum=momentum)}
                yield from self._family(f"momentum {momentum:g}, {epochs} epochs", changes)

    def _family(self, family: str, changes: dict) -> Iterator[dict]:
        """A descent, and from its end all numbers of sweeps."""
        descended, watch = self._fit({**changes, "finish": None})
        seconds = watch.seconds["start"] + watch.seconds["descend"]
        facts = {"family": family, "epochs": changes["epochs"]}
        yield {**facts, "sweeps": 0, "seconds": seconds, **self._errors(descended)}
        for sweeps in self.sweeps:
            finish = {"epochs": 0, "finish": ExchangeFinish(sweeps=sweeps)}
            finished, watch = self._fit(finish, warm_start=descended)
            total = seconds + watch.seconds["finish"]
            yield {**facts, "sweeps": sweeps, "seconds": total, **self._errors(finished)}

    def _fit(
        self, changes: dict, warm_start: Particles | None = None
    ) -> tuple[Particles, Stopwatch]:
        watch = Stopwatch(time.process_time)
        model = replace(self.engine, **changes).fit(
            self.domain, self.measurements, warm_start=warm_start, progress=watch
        )
        watch.lap("finish")
        return model, watch

    def _errors(self, model: Particles) -> dict[str, float]:
        return {
            name: error(self.domain, self.codes, model.codes) for name, error in _ERRORS.items()
        }


@dataclass(frozen=True)
class _ProjectedOnce:
    """A projection that solves its tables at the first call and then returns the same results."""

    projection: Projection
    found: list[torch.Tensor] = field(default_factory=list)

    def __call__(
        self, centers: torch.Tensor, values: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        return self.projection(centers, values, generator)

    def project_all(
        self,
        tables: Sequence[SignedTable],
        generator: torch.Generator,
        progress: Progress = silent,
    ) -> list[torch.Tensor]:
        for _ in progress((), "project"):
            pass  # only the clock is to know that the stage has passed
        if not self.found:
            self.found.extend(self.projection.project_all(tables, generator))
        return self.found


def _draw(rows: Sequence[dict], path: Path) -> None:
    """Errors over seconds, one line a family, the default settings marked."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    default = ParticleGradientDescent()
    lines = _distinct((row["table"], row["targets"]) for row in rows)
    families = _distinct(row["family"] for row in rows)
    colors = plt.get_cmap("tab20")
    figure, panels = plt.subplots(
        len(lines), 3, figsize=(13, 4 * len(lines)), squeeze=False, layout="constrained"
    )
    for (table, targets), line in zip(lines, panels, strict=True):
        for panel, error in zip(line, _ERRORS, strict=True):
            for index, family in enumerate(families):
                those = [
                    row
                    for row in rows
                    if (row["table"], row["targets"], row["family"]) == (table, targets, family)
                ]
                seconds, errors = ([row[key] for row in those] for key in ("seconds", error))
                panel.plot(seconds, errors, ".-", color=colors(index % 20), label=family)
                for row in those:
                    if default.finish is not None and (family, row["sweeps"]) == (
                        f"{default.num_epochs} epochs",
                        default.finish.sweeps,
                    ):
                        panel.plot(row["seconds"], row[error], "k*", ms=12, label="default")
            panel.set(xscale="log", yscale="log", xlabel="seconds of the processor", ylabel=error)
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.xaxis.set_major_formatter("{x:g}")
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.set_title(f"{table}, {targets} targets", fontsize=10)
    panels[0, -1].legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _distinct(items: Iterable) -> list:
    return list(dict.fromkeys(items))
