"""The cost of declaring nothing: the errors with a declared and with a discovered domain.

    python -m sdv_privpgd.benchmark discovery --tables adult bank --epsilons 1 2.5 --seeds 5

The error is half the L1 distance between 2-way tables, averaged over all pairs of columns, in the
codes of the declared domain. A value that discovery does not know counts as missing. With
``--by-column`` it prints the error of each column alone, and of its pairs. ``--share`` is the part
of the budget that discovery takes. The errors compare with the real table and are not private.
"""

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sdv_privpgd.benchmark.declarations import TABLES
from sdv_privpgd.benchmark.fits import FOLDER
from sdv_privpgd.benchmark.meters import print_table
from sdv_privpgd.metrics.pairs import l1_by_pair

if TYPE_CHECKING:
    from sdv_privpgd.benchmark.tables import Table


def add_command(commands) -> None:
    """Adds ``discovery`` to the command line."""
    parser = commands.add_parser("discovery", help="error with a declared and a discovered domain")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=["adult", "bank"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.5])
    parser.add_argument("--seeds", type=int, default=5, help="repetitions with fresh noise")
    parser.add_argument("--cells", type=int, default=32, help="of a column, where they are counted")
    parser.add_argument("--share", type=float, default=0.2, help="of the budget, for discovery")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.add_argument("--by-column", action="store_true")
    parser.set_defaults(run=_discovery)


def _discovery(arguments: argparse.Namespace) -> None:
    from sdv_privpgd.benchmark.tables import load, rows_and_facts

    rows = []
    for name in arguments.tables:
        table = load(name, arguments.data, arguments.cells)
        _, facts = rows_and_facts(name, arguments.data)
        for epsilon in arguments.epsilons:
            errors = {
                arm: [
                    _errors(table, facts, epsilon, seed, arm, arguments.share)
                    for seed in range(arguments.seeds)
                ]
                for arm in ("declared", "discovered")
            }
            half_l1 = {arm: [found[""] for found in runs] for arm, runs in errors.items()}
            declared, discovered = (float(np.mean(found)) for found in half_l1.values())
            rows.append(
                {
                    "table": name,
                    "epsilon": epsilon,
                    "declared": declared,
                    "discovered": discovered,
                    "more": f"{discovered / declared - 1:+.1%}",
                    "largest sd": max(float(np.std(found)) for found in half_l1.values()),
                }
            )
            print_table(rows[-1:], header=len(rows) == 1)
            if arguments.by_column:
                _print_columns(table, errors)


def _errors(
    table: "Table", facts: dict[str, dict], epsilon: float, seed: int, arm: str, share: float
) -> dict[str, float]:
    """Half the L1 distances of one fit.

    The key "" has the distance of all pairs, a column's name that of its pairs, and the name with
    "alone" that of its own marginal.
    """
    import pandas as pd
    from sdv.metadata import Metadata

    from sdv_privpgd import PrivPGDSynthesizer

    columns = {name: {"sdtype": fact["sdtype"]} for name, fact in facts.items()}
    domain = {
        name: {key: fact[key] for key in fact if key != "sdtype"} for name, fact in facts.items()
    }
    synthesizer = PrivPGDSynthesizer(
        Metadata.load_from_dict({"tables": {"table": {"columns": columns}}}),
        epsilon,
        public_domain=domain if arm == "declared" else None,
        discovery_share=share,
        num_bins=table.cells,
        seed=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is declared
        synthesizer.fit(table.frame)
    real = table.encode(table.frame)
    rows = synthesizer.sample(len(real))
    assert isinstance(rows, pd.DataFrame)  # as the table was
    synthetic = table.encode(rows)
    pairs = {pair: found / 2 for pair, found in l1_by_pair(table.domain, real, synthetic).items()}
    errors = {"": float(np.mean(list(pairs.values())))}
    for axis, (name, size) in enumerate(zip(facts, table.domain.sizes, strict=True)):
        errors[name] = float(np.mean([found for pair, found in pairs.items() if name in pair]))
        shares = [np.bincount(codes[:, axis], minlength=size) for codes in (real, synthetic)]
        errors[f"{name} alone"] = float(np.abs(shares[0] - shares[1]).sum() / 2 / len(real))
    return errors


def _print_columns(table: "Table", errors: dict[str, list[dict[str, float]]]) -> None:
    """The means over the seeds, column by column."""
    print(f"{'column':<32}{'alone':>20}{'its pairs':>20}   declared, discovered")
    for name in table.domain.attributes:
        line = f"{name[:31]:<32}"
        for key in (f"{name} alone", name):
            means = [np.mean([found[key] for found in runs]) for runs in errors.values()]
            line += "".join(f"{mean:>10.4f}" for mean in means)
        print(line, flush=True)
