"""Diabetes, 48 columns of up to 790 categories: seconds by stage, memory and mean 2-way error.

"Diabetes 130-US hospitals" (UCI 296), 101,766 rows, without its two id columns. Its categories are
looked up in the table, in place of a codebook. That is not private, nor is the comparison with the
real table. The settings are those of ``PrivPGDSynthesizer``; ``--most-pairs`` are those that are
all measured alike.
"""

from benchmarks.experiment import metered_fit, options, particles
from sdv_privpgd.benchmark.fits import columns_of
from sdv_privpgd.benchmark.tables import load
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.methods.privpgd import MOST_PAIRS, PrivPGD
from sdv_privpgd.metrics.pairs import mean_l1
from sdv_privpgd.privacy.dataset import Dataset


@options(epsilon=1.0, num_particles=int, most_pairs=int)
def rows(given):
    table = load("diabetes", given.data, cells=32)
    # All categories: the table's own domain lets neighbors share a cell.
    domain, coded = table.schema.domain(), []

    def dataset():
        coded.append(encode_table(columns_of(table.frame), table.schema))
        return Dataset(domain, coded[0])

    most = MOST_PAIRS if given.most_pairs is None else given.most_pairs
    method = PrivPGD(most_pairs=most, engine=particles(given.num_particles))
    release, found = metered_fit(dataset, given.epsilon, method)
    error = mean_l1(domain, coded[0], release.model.sample(len(coded[0]), seed=0)) / 2
    yield {"rows": len(coded[0]), "columns": len(domain), **found, "half L1": error}
