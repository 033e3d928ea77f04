"""A model of noisy tables alone: no table of rows, no curator and no budget. Public."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.support import surely_held
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.fitting.making import SamplerMaker
from sdv_privpgd.fitting.sampled import SampledTable
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.method import engine_of, require_model
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement
from sdv_privpgd.report.about import About
from sdv_privpgd.report.page import Report
from sdv_privpgd.synthesize.engine import Engine


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelledTables(SampledTable):
    """A model of tables that others have measured, of which rows can be drawn. Public.

    Attributes:
        fitted: The model, and what is known of the columns.
        engine: What made the model.
        seed: Of the engine and of the rows.
        warnings: What is worth a look before the rows are used, a sentence each.
        date: When the model was made.
    """

    engine: Engine
    seed: int
    warnings: tuple[str, ...]
    date: str

    def _refits(self) -> Refits:
        release, fitted = self.fitted.release, self.fitted
        assert release is not None
        maker = SamplerMaker.of(
            fitted.description, fitted.schema, release.held, release.measurements
        )
        return Refits(release=release, engine=self.engine, sampler_of=maker)

    def report(self, path: str | Path | None = None) -> Report:
        """What the rows were made of, what is promised, and how well they fit the noisy tables.

        Args:
            path: Where to save it as well: the page, or the text (``.txt``) or the numbers
                (``.json``). Nothing is written without one.
        """
        report = self._report()
        if path is not None:
            report.save(path)
        return report

    @abstractmethod
    def _report(self) -> Report: ...

    def about(self, table: str) -> About:
        """What a page says of the model at its head."""
        description = self.fitted.description
        return About(
            table=table,
            date=self.date,
            method=self.engine,
            columns=description.columns,
            keys=(),
            declared=description.facts,
            discovered={},
            settings={"num_bins": description.num_bins, "seed": self.seed},
            visits=description.visits,
        )


def modelled(
    description: Description,
    ledger: PrivacyLedger,
    measurements: Sequence[Measurement],
    engine: Engine | str,
    seed: int,
    progress: Progress = silent,
    *,
    said: Sequence[Measurement] | None = None,
) -> tuple[Fitted, Engine]:
    """A model of noisy answers on columns that are all declared, and the engine that made it.

    ``said`` are the same answers with the noise that intervals are made of, if it is another.
    """
    seed = check_integer("seed", seed, least=0)
    own, schema = engine_of(engine, seed=seed), description.attributes
    if own.statistics(schema.domain()):
        raise ValueError(
            "This engine protects a statistic, which has to be asked of the rows; there are none."
        )
    tables = [each.query.clique for each in measurements if isinstance(each.query, MarginalQuery)]
    require_model(own, schema.domain(), tables)
    own.prepare(progress)
    answers = pipeline.Answers(
        domain=schema.domain(), ledger=ledger, measurements=tuple(measurements), statistics=()
    )
    made = pipeline.fit(answers, own, progress=progress)
    kept = made.measurements if said is None else tuple(said)
    release = Release(
        domain=made.domain,
        ledger=ledger,
        measurements=kept,
        model=made.model,
        held=surely_held(made.domain, kept),
    )
    maker = SamplerMaker.of(description, schema, release.held, kept)
    fitted = Fitted(
        description=description, schema=schema, release=release, sampler=maker(made.model, seed)
    )
    return fitted, own
