"""What public rows of somebody else are worth: a fit with a prior, without, and the prior alone.

Each pair is a private table and public rows that are like it: two states, or two parts of a table.
``--rows`` of the private rows are fitted with everything declared; rows that no fit has seen are
what all is compared with. The arms: ``without`` a prior; ``with`` it; as many rows of the
``prior`` itself; ``shuffled`` and ``uniform``, fits whose prior is wrong: each of its columns is
shuffled by itself, or has each of its values equally often; ``few``, a fit with 30 of its rows; and
``fresh``, as many other private rows, which nobody may publish.

``tv2`` and ``tv3`` are mean distances (half L1) of pairs and of three columns in decoded values,
``auroc`` is what gradient boosting learns of the label (``metrics.learning``), and ``trust`` the
weight of the prior's rows beside the private ones, 0 where it was left out. Not private.
"""

import numpy as np

from benchmarks.experiment import means, options, quiet
from sdv_privpgd import Prior, fit_table
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.benchmark.tables import TABLES, columns_of, rows_and_facts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics.learning import usefulness
from sdv_privpgd.metrics.values import Described

PAIRS = {
    "NE<-CO": ("acs_income_ne_2018", "acs_income_co_2018"),
    "NE<-IL": ("acs_income_ne_2018", "acs_income_il_2018"),
    "NE<-NJ": ("acs_income_ne_2018", "acs_income_nj_2018"),
    "GA<-IL": ("acs_income_ga_2018", "acs_income_il_2018"),
    "NJ<-NY": ("acs_income_nj_2018", "acs_income_ny_2018"),
    "TX<-others": ("acs_workers", "State", "Texas/TX"),
    "US<-abroad": ("adult", "native-country", "United-States"),
    "women<-men": ("adult", "sex", "Female"),
    "single<-rest": ("bank", "marital", "single"),
    "HM<-MC": ("diabetes", "payer_code", "HM"),
    "PUMA": ("nist", "PUMA", "24-01004"),
}
"""The names of two tables, or of one, a column, and the value of it that is private."""

MOST = 20_000
"""The most public rows, and the most rows that are compared with."""


@options(
    pairs=["NE<-CO"], arms=["without", "with", "prior", "shuffled", "uniform", "few", "fresh"],
    epsilons=[0.2, 1.0], rows=[2_000], seeds=1,
)  # fmt: skip
def rows(given):
    for name in given.pairs:
        private, public, facts, label = _pair(name, given.data)
        for number in given.rows:
            for epsilon in given.epsilons:
                for arm in given.arms:
                    found = means(
                        _run(arm, private, public, facts, label, number, epsilon, seed)
                        for seed in range(given.seeds)
                    )
                    yield {"pair": name, "rows": number, "epsilon": epsilon, "arm": arm, **found}


def _pair(name, folder):
    """Private rows, public rows, what is declared, and the label."""
    table, *other = PAIRS[name]
    frame, facts = rows_and_facts(table, folder)
    if len(other) == 1:
        return frame, rows_and_facts(other[0], folder)[0], facts, TABLES[table].label
    column, value = other
    is_private = frame[column].astype(str) == value
    facts = {each: own for each, own in facts.items() if each != column}
    return (
        frame[is_private].drop(columns=column),
        frame[~is_private].drop(columns=column),
        facts,
        TABLES[table].label,
    )


def _run(arm, private, public, facts, label, number, epsilon, seed):
    mixed = private.sample(frac=1, random_state=seed)
    number = min(number, len(mixed) // 3)
    fitted, fresh, test = mixed[:number], mixed[number : 2 * number], mixed[2 * number :]
    public = public.sample(min(MOST, len(public)), random_state=seed)
    rng, watch, trust = np.random.default_rng(seed), Stopwatch(), 0.0
    if arm == "few":
        public = public[:30]
    if arm == "shuffled":
        public = public.apply(lambda each: rng.permutation(each.to_numpy(object)))
    if arm == "uniform":
        public = public.apply(
            lambda each: rng.choice(np.array([*each.unique()], object), len(each))
        )
    if arm in ("fresh", "prior"):
        rows = fresh if arm == "fresh" else public[:number]
    else:
        prior = None if arm == "without" else Prior(public)
        with quiet():
            table = fit_table(
                fitted, facts, epsilon, delta=1e-5, prior=prior, seed=seed, allow_lost=list(facts)
            )
        rows, said = table.sample(number), table.report().to_dict().get("prior", {})
        trust = said.get("trust", 0.0)
    watch.lap("fit_s")
    columns = [Described.of(column) for column in Schema.from_sdv(facts).columns]
    scores = usefulness(columns, columns_of(rows), columns_of(test[:MOST]), label, seed=seed)
    kept = {each: scores[each] for each in ("tv2", "tv3", "auroc", "r2") if each in scores}
    return {"fitted": float(number), **kept, "trust": trust, **watch.seconds}
