"""Tables with SDV's detected metadata and nothing declared: seconds, memory and error.

A Parquet file goes in, as many synthetic rows come out, at the settings of ``PrivPGDSynthesizer``.
Columns must keep their names, their order and their kind. ``structure`` and ``validity`` are
SDMetrics' diagnostic scores, 1 at best. The error is half the L1 distance between 2-way tables,
averaged over all pairs of columns, in cells of the ranges and categories that SDV's detection read
off the table. That is not private, nor is the comparison with the real table.
"""

import pandas as pd
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from benchmarks.experiment import options, particles, quiet
from benchmarks.simulated import simulated_table
from sdv_privpgd import PrivPGDSynthesizer
from sdv_privpgd.benchmark.single import PeakMemory, Stopwatch
from sdv_privpgd.benchmark.tables import fit_dataset
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.metrics import mean_l1
from sdv_privpgd.metrics._sdmetrics import cells_of
from sdv_privpgd.privacy.dataset import Dataset


@options(
    tables=["acs_workers_us_2018", "nyc_flights13"], epsilon=1.0, rows=int, num_particles=int
)  # the default tables have the most cells
def rows(given):
    fit_dataset(
        Dataset(*simulated_table(1_000, 3)), 1.0, PrivPGD(engine=particles(None))
    )  # compiles
    for name in given.tables:
        real = pd.read_parquet(given.data / f"{name}.parquet").iloc[: given.rows]
        yield {"table": name[:13], **_measured(real, given)}


def _measured(real, given):
    from sdv.evaluation import run_diagnostic
    from sdv.metadata import Metadata

    memory, watch = PeakMemory(), Stopwatch()
    metadata = Metadata.detect_from_dataframes({"table": real})
    watch.lap("detect")
    with quiet():
        own = {"method": PrivPGD(engine=ParticleGradientDescent(num_particles=given.num_particles))}
        synthesizer = PrivPGDSynthesizer(metadata, given.epsilon, **own)
        synthesizer.fit(real)
    watch.lap("fit")
    rows = synthesizer.sample(len(real))
    watch.lap("sample")
    peak, facts = memory.mebibytes(), metadata.to_dict()["tables"]["table"]
    wrong = [
        name
        for name, known in facts["columns"].items()
        if (known["sdtype"] == "numerical" and not is_numeric_dtype(rows[name]))
        or is_datetime64_any_dtype(rows[name]) != is_datetime64_any_dtype(real[name])
    ]
    if wrong or len(rows) != len(real) or list(rows.columns) != list(real.columns):
        raise ValueError(f"{rows.shape} came out of {real.shape}; of another kind are {wrong}.")
    report = run_diagnostic({"table": real}, {"table": rows}, metadata, verbose=False)
    scores = dict(report.get_properties()[["Property", "Score"]].to_numpy())
    for column, known in facts["columns"].items():
        known["range_is_nullable"] = True  # the code of values that the real column does not have
        if known["sdtype"] == "categorical" and not known.get("range_values"):
            # Detection keeps none where they are very many.
            known["range_values"] = real[column].dropna().unique().tolist()
    cells = cells_of(real, rows, facts, None, public_domain=None, num_bins=32)
    return {
        "size": f"{len(rows):,}x{len(rows.columns)}",
        **watch.seconds,
        "peak_MiB": peak,
        "structure": scores["Data Structure"],
        "validity": scores["Data Validity"],
        "half L1": mean_l1(cells.domain, cells.real, cells.synthetic) / 2,
    }
