"""The cost of declaring nothing: the errors with a declared and with a discovered domain.

The error is half the L1 distance between 2-way tables, averaged over all pairs of columns, in the
codes of the declared domain. A value that discovery does not know counts as missing. ``--share`` is
the part of the budget that discovery takes. With ``--by-column`` there is a line for each column:
the errors of its own marginal (``alone``) and of its pairs. Not private.
"""

import numpy as np

from benchmarks.experiment import metadata_of, options, parts_of, quiet
from sdv_privpgd import PrivPGDSynthesizer
from sdv_privpgd.benchmark.tables import load, rows_and_facts
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.metrics.pairs import l1_by_pair

_ARMS = ("declared", "discovered")


@options(
    tables=["adult", "bank"],
    epsilons=[1.0, 2.5],
    seeds=5,
    cells=32,
    share=0.2,
    by_column=False,
    num_particles=int,
)
def rows(given):
    for name in given.tables:
        table = load(name, given.data, given.cells)
        _, facts = rows_and_facts(name, given.data)
        for epsilon in given.epsilons:
            runs = {
                arm: [
                    _errors(table, facts, epsilon, seed, arm, given) for seed in range(given.seeds)
                ]
                for arm in _ARMS
            }
            means = {
                arm: {key: float(np.mean([run[key] for run in found])) for key in found[0]}
                for arm, found in runs.items()
            }
            declared, discovered = (means[arm][""] for arm in _ARMS)
            line = {"table": name, "epsilon": epsilon, "declared": declared}
            line |= {"discovered": discovered, "more": f"{discovered / declared - 1:+.1%}"}
            spread = max(float(np.std([run[""] for run in found])) for found in runs.values())
            yield {**line, "largest sd": spread}
            for column in table.domain.attributes if given.by_column else ():
                alone = {f"alone {arm[:8]}": means[arm][f"{column} alone"] for arm in _ARMS}
                pairs = {f"pairs {arm[:8]}": means[arm][column] for arm in _ARMS}
                yield {"column": column[:13], **alone, **pairs}


def _errors(table, facts, epsilon, seed, arm, given):
    """Half the L1 distances of one fit: of all pairs, of each column's pairs, and of it alone."""
    columns, domain = parts_of(facts)
    synthesizer = PrivPGDSynthesizer(
        metadata_of(columns),
        epsilon,
        public_domain=domain if arm == "declared" else None,
        discovery_share=given.share,
        method=PrivPGD(
            engine=ParticleGradientDescent(num_particles=given.num_particles), num_bins=table.cells
        ),
        seed=seed,
    )
    with quiet():
        synthesizer.fit(table.frame)
    real = table.encode(table.frame)
    synthetic = table.encode(synthesizer.sample(len(real)))
    pairs = {pair: found / 2 for pair, found in l1_by_pair(table.domain, real, synthetic).items()}
    errors = {"": float(np.mean(list(pairs.values())))}
    for axis, (name, size) in enumerate(zip(facts, table.domain.sizes, strict=True)):
        errors[name] = float(np.mean([found for pair, found in pairs.items() if name in pair]))
        shares = [np.bincount(codes[:, axis], minlength=size) for codes in (real, synthetic)]
        errors[f"{name} alone"] = float(np.abs(shares[0] - shares[1]).sum() / 2 / len(real))
    return errors
