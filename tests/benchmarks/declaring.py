"""The gain of declaring, in decoded values: nothing, ranges alone, or ranges with shapes.

A Parquet file goes in, as many synthetic rows come out. The arms: ``undeclared``; ``width``, where
the ranges and categories are declared and cells have equal width (``discovery_share=0``);
``declared``, where they also get a private shape; and SDV's GaussianCopula, which is not private.
Ranges are those of the JSON file beside the table; categories, and ranges that the file lacks, are
those that occur: the tables are public, and no model for a private one may be declared like this.

``shapes``, ``trends`` and ``quality`` are SDMetrics' scores, 1 at best. ``KS`` is the mean over
numerical columns of the largest difference of the distribution functions, and ``tail`` that of the
relative error of the 99 % quantile, 0 at best. Not private.
"""

import numpy as np
from scipy.stats import ks_2samp

from benchmarks.experiment import means, metadata_of, options, parts_of, quiet
from sdv_privpgd import PrivPGDSynthesizer
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.benchmark.tables import rows_and_facts
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD


@options(
    tables=["adult"], arms=["GaussianCopula", "undeclared", "width", "declared"], epsilon=1.0,
    share=0.2, rows=int, bins=int, seeds=1, num_particles=int,
)  # fmt: skip
def rows(given):
    for name in given.tables:
        real, facts = rows_and_facts(name, given.data)
        real, (columns, domain) = real.iloc[: given.rows], parts_of(facts)
        # SDV has no word for an order of categories.
        known = {
            each: own["sdtype"].replace("ordinal", "categorical") for each, own in columns.items()
        }
        metadata = metadata_of({each: {"sdtype": sdtype} for each, sdtype in known.items()})
        for arm in given.arms:
            seeds = range(1 if arm == "GaussianCopula" else given.seeds)
            try:
                runs = [_run(arm, real, metadata, domain, given, seed) for seed in seeds]
            except Exception as error:
                if arm != "GaussianCopula":
                    raise
                yield {"table": name[:13], "arm": arm, "cannot fit it": type(error).__name__}
                continue
            yield {"table": name[:13], "arm": arm, **means(runs)}


def _run(arm, real, metadata, domain, given, seed):
    """The scores of one fit."""
    from sdv.single_table import GaussianCopulaSynthesizer

    watch = Stopwatch()
    with quiet():
        if arm == "GaussianCopula":
            synthesizer, lost = GaussianCopulaSynthesizer(metadata), {}
        else:
            lost = {"allow_lost": list(real)}
            engine = ParticleGradientDescent(num_particles=given.num_particles)
            synthesizer = PrivPGDSynthesizer(
                metadata,
                given.epsilon,
                public_domain=None if arm == "undeclared" else domain,
                discovery_share=0.0 if arm == "width" else given.share,
                method=PrivPGD(num_bins=given.bins, engine=engine),
                seed=seed,
            )
        synthesizer.fit({"table": real}, **lost)
        watch.lap("fit")
        rows = synthesizer.sample(len(real))["table"]
        columns = {
            name: _column(real.loc[:, name].dropna(), rows[name].dropna())
            for name, facts in metadata.tables["table"].columns.items()
            if facts["sdtype"] == "numerical"
        }
        scores = _sdmetrics(real, rows, metadata)
    for key in ("KS", "tail"):
        scores[key] = float(np.mean([each[key] for each in columns.values()])) if columns else 0.0
    return {**scores, **watch.seconds}


def _column(real, synthetic):
    """The distances of a column's numbers from the real ones."""
    own, theirs = (each.to_numpy(dtype=np.float64) for each in (real, synthetic))
    if not own.size or not theirs.size:
        return {"KS": 1.0, "tail": 1.0}
    high, found = (float(np.quantile(each, 0.99)) for each in (own, theirs))
    return {
        "KS": float(ks_2samp(own, theirs).statistic),
        "tail": abs(high - found) / max(abs(high), float(own.std()), 1e-300),
    }


def _sdmetrics(real, rows, metadata):
    from sdmetrics.reports import QualityReport

    report = QualityReport()
    report.generate({"table": real}, {"table": rows}, metadata.to_dict(), verbose=False)
    properties = report.get_properties()
    parts = dict(zip(properties["Property"], properties["Score"], strict=True))
    return {
        "shapes": float(parts["Column Shapes"]),
        "trends": float(parts["Column Pair Trends"]),
        "quality": float(report.get_score() or 0.0),
    }
