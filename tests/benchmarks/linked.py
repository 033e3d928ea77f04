"""How near synthetic families are to real ones: tables that belong together.

``survey``: households and persons. ``berka``: accounts with orders, loans, owners and their cards.
``cdnow``: customers and purchases. ``shop`` and ``hospital`` are simulated, and show some numbers
besides, which ``fresh`` families have as they are. A part of the families is fitted (5 of 7), and
the others are ``fresh``. ``shuffled`` gives the fitted children to parents by chance, with as many
each: what is lost if tables are made on their own. ``HMA`` is SDV's own synthesizer of several
tables, which is not private. ``PrivPGD`` is ``fit_tables``, whose unit is a row of the root with
all that lead to it (delta 1e-5), and ``prior`` is the same with the fresh families as its prior.

Means of total variation from the fitted rows, over links, tables or pairs of columns: ``number``
of children, ``pairs`` in the root, ``children``'s pairs, parent ``x child``, and ``siblings``: what
the first child of a parent has and what its second has. ``any two`` are any two children. ``gaps``:
the time after the row before, by the place of the row, of children in order. Numbers
and dates are cut into 16 parts of about equally many real rows. ``agree``: parents whose own count
of children is right (the survey's, up to 4). ``orphans``: rows that lead nowhere. ``quality``:
SDMetrics' score of several tables, 1 at best. Not private.

``--from-files FOLDER`` measures a fit of made-up parents with ten children each, from Parquet files
that it makes there, and all their rows: processor seconds, and memory beyond that of a small fit.
"""

import time
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
from made_up import relationship

from benchmarks.experiment import apart, means, options, quiet
from benchmarks.simulated_families import hospital, shop, shown
from sdv_privpgd import Boolean, Categorical, Datetime, Link, Numerical, Ordinal, fit_tables
from sdv_privpgd.benchmark.fits import PeakMemory, Stopwatch
from sdv_privpgd.columns.links import tree_of

_ORDINALS = lambda *sizes: [Ordinal(list(range(first, last + 1))) for first, last in sizes]


def _survey(folder):
    names = ["SUBREGCluster", "HHSize", "HHIncome", "HHDwelling", "HHChildren"]
    households = dict(zip(names, _ORDINALS((1, 4), (1, 4), (1, 3), (1, 2), (0, 1)), strict=True))
    names = ["per_num", "PAge", "PGender", "PEmp", "POcc"]
    persons = dict(zip(names, _ORDINALS((1, 10), (0, 10), (1, 2), (1, 3), (1, 10)), strict=True))
    persons["PComm"] = Categorical(["active", "auto", "other", "transit", "workFromHome"])
    links = [Link("households", "persons", "hhID", 6)]
    return (
        {"households": households, "persons": persons},
        links,
        _read(folder, "households", "persons"),
    )


def _berka(folder):
    tables = _read(folder, "account", "order", "loan", "disp", "card", "client")
    born = tables.pop("client").set_index("client_id")["birth_number"]
    born = tables["disp"]["client_id"].map(born)
    tables["disp"]["born"] = 1900 + born // 10_000
    tables["disp"]["woman"] = born // 100 % 100 > 50
    banks = ["AB", "CD", "EF", "GH", "IJ", "KL", "MN", "OP", "QR", "ST", "UV", "WX", "YZ"]
    often = ["POPLATEK MESICNE", "POPLATEK PO OBRATU", "POPLATEK TYDNE"]
    days = Datetime("1993-01-01", "1998-12-31")
    declared = {
        "account": {
            "district_id": Categorical(list(range(1, 78))),
            "frequency": Categorical(often),
            "date": days,
        },
        "order": {
            "bank_to": Categorical(banks),
            "amount": Numerical(0, 15_000, decimal_places=1),
            "k_symbol": Categorical([" ", "LEASING", "POJISTNE", "SIPO", "UVER"]),
        },
        "loan": {
            "date": days,
            "amount": Numerical(0, 600_000, decimal_places=0),
            "duration": Ordinal([12, 24, 36, 48, 60]),
            "payments": Numerical(0, 10_000, decimal_places=0),
            "status": Categorical(list("ABCD")),
        },
        "disp": {
            "type": Categorical(["OWNER", "DISPONENT"]),
            "born": Numerical(1900, 1999, decimal_places=0),
            "woman": Boolean(),
        },
        "card": {"type": Categorical(["classic", "gold", "junior"]), "issued": days},
    }
    most = {"order": 5, "loan": 1, "disp": 2}
    links = [Link("account", name, "account_id", number) for name, number in most.items()]
    return declared, [*links, Link("disp", "card", "disp_id", 1)], tables


def _cdnow(folder):
    bought = {
        "date": Datetime("1997-01-01", "1998-06-30"),
        "cds": Numerical(1, 99, decimal_places=0),
        "amt": Numerical(0, 1_300, decimal_places=2),
    }
    links = [Link("users", "purchases", "users_id", 20, "id", order="date")]
    return {"users": {}, "purchases": bought}, links, _read(folder, "users", "purchases")


def _read(folder, *names):
    return {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}


_READERS = {
    "survey": _survey,
    "berka": _berka,
    "cdnow": _cdnow,
    "shop": lambda _: shop(14_000),
    "hospital": lambda _: hospital(14_000),
}


@options(
    tables=["survey", "berka", "cdnow", "shop", "hospital"], epsilons=[0.2, 1.0, 3.2], seeds=3,
    families=int, arms=["fresh", "shuffled", "HMA", "PrivPGD"], from_files=Path,
    parents=[10_000, 100_000],
)  # fmt: skip
def rows(given):
    if given.from_files is not None:
        for parents in given.parents:
            yield {"parents": parents, **apart(_of_files, folder=given.from_files, parents=parents)}
        return
    for name in given.tables:
        declared, links, whole = _READERS[name](given.data / "relational" / name)
        tree = tree_of(links)
        keys = whole[tree.root][tree.root_key].unique()
        chosen = np.random.default_rng(0).permutation(keys)
        chosen = chosen[: given.families or 5 * len(keys) // 7]
        fitted = _families(whole, tree, chosen)
        scores = _Scores(fitted, declared, tree)
        arms = {
            "fresh": lambda rest=whole, own=chosen, tree=tree: _families(rest, tree, own, False),
            "shuffled": lambda own=fitted, tree=tree: _shuffled(own, tree),
            "HMA": lambda own=scores: _hma(own),
        }
        for arm in (each for each in given.arms if each in arms):
            start = time.perf_counter()
            found = scores.of(arms[arm](), start)
            yield {"tables": name, "epsilon": None, "rows": arm, **found}
        for epsilon, arm in product(given.epsilons, ("PrivPGD", "prior")):
            if arm not in given.arms:
                continue
            prior = arms["fresh"]() if arm == "prior" else None
            known = scores, fitted, declared, links, epsilon, prior
            yield {
                "tables": name,
                "epsilon": epsilon,
                "rows": arm,
                **means(_fit(*known, seed) for seed in range(given.seeds)),
            }


def _fit(scores, tables, declared, links, epsilon, prior, seed):
    start = time.perf_counter()
    with quiet():
        lost = {name: list(own) for name, own in declared.items()}
        fitted = fit_tables(
            tables, declared, links, epsilon, 1e-5, seed=seed, allow_lost=lost, prior=prior
        )
    return scores.of(fitted.sample(), start)


def _hma(scores):
    """Rows of SDV's own synthesizer of several tables."""
    from sdv.metadata import Metadata
    from sdv.multi_table import HMASynthesizer

    with quiet():
        synthesizer = HMASynthesizer(Metadata.load_from_dict(scores.metadata), verbose=False)
        synthesizer.fit(scores.tables)
        root = scores.tree.root
        return synthesizer.sample(len(scores.tables[root]), root)


def _of_files(folder, parents):
    folder = Path(folder)
    columns = {name: Categorical(list("ABCDEFGH")) for name in "abcde"}
    declared = {"parents": dict(list(columns.items())[:3]), "children": columns}
    link = Link("parents", "children", "key", 10)

    def fit(number):
        rng = np.random.default_rng(0)
        children = np.repeat(np.arange(number), rng.integers(5, 16, number))
        for name, keys in (("parents", np.arange(number)), ("children", children)):
            cells = {each: rng.choice(list("ABCDEFGH"), len(keys)) for each in declared[name]}
            pd.DataFrame({"key": keys, **cells}).to_parquet(folder / f"{name}.parquet")
        memory, cpu = PeakMemory(), Stopwatch(time.process_time)
        files = {name: folder / f"{name}.parquet" for name in declared}
        with quiet():
            fitted = fit_tables(files, declared, link, 1.0, 1e-6)
        cpu.lap("fit cpu")
        found = {"children": len(children), "fit_MiB": memory.mebibytes()}
        memory, number = PeakMemory(), len(fitted.sample()["children"])
        cpu.lap("sample cpu")
        return {**found, "sampled": number, "sample_MiB": memory.mebibytes(), **cpu.seconds}

    fit(500)
    return fit(parents)


def _families(tables, tree, keys, have_them=True):
    """The rows of tables whose family is, or is not, one of the root's of these keys."""
    root = tables[tree.root]
    found = {tree.root: root[root[tree.root_key].isin(keys) == have_them].reset_index(drop=True)}
    for link in (tree.above(name) for name in tree.tables[1:]):
        own, known = tables[link.child], found[link.parent][link.parent_key]
        found[link.child] = own[own[link.key].isin(known)].reset_index(drop=True)
    return found


def _shuffled(tables, tree):
    rng, found = np.random.default_rng(1), dict(tables)
    for link in tree.links:
        own = tables[link.child]
        found[link.child] = own.assign(**{link.key: rng.permutation(own[link.key])})
    return found


def _metadata(declared, tree):
    """SDV's metadata of the tables, as a dictionary."""
    tables = {
        name: {"columns": {column: {"sdtype": _sdtype(facts)} for column, facts in own.items()}}
        for name, own in declared.items()
    }
    for link in tree.links:
        tables[link.child]["columns"][link.key] = {"sdtype": "id"}
        tables[link.parent]["columns"][link.parent_key] = {"sdtype": "id"}
        tables[link.parent]["primary_key"] = link.parent_key
    links = [relationship(e.parent, e.parent_key, e.child, e.key) for e in tree.links]
    return {"tables": tables, "relationships": links, "METADATA_SPEC_VERSION": "V1"}


def _sdtype(facts):
    return "categorical" if facts.sdtype == "ordinal" else facts.sdtype


class _Scores:
    """The shares of real rows, and how far those of others are from them."""

    def __init__(self, tables, declared, tree):
        self.tree, self.declared, self.cuts = tree, declared, {}
        self.metadata = _metadata(declared, tree)
        self.tables = self._modelled(tables)
        for name, own in declared.items():
            for column, facts in own.items():
                if facts.sdtype in ("numerical", "datetime"):
                    parts = _numbers_of(tables[name][column], facts).dropna()
                    cuts = np.unique(np.quantile(parts, np.arange(1, 16) / 16))
                    self.cuts[name, column] = cuts
        self.real = self._shares(tables)

    def of(self, tables, start):
        seconds = time.perf_counter() - start
        made, found = self._shares(tables), {}
        for (kind, *which), shares in self.real.items():
            own = made[(kind, *which)]
            both = shares.index.union(own.index)
            apart = shares.reindex(both, fill_value=0) - own.reindex(both, fill_value=0)
            found.setdefault(kind, []).append(float(apart.abs().sum() / 2))
        scores = {kind: float(np.mean(values)) for kind, values in found.items()}
        links = self.tree.links
        led = [tables[e.child][e.key].isin(tables[e.parent][e.parent_key]) for e in links]
        if "HHSize" in tables[self.tree.root]:
            number = self._numbers(tables, links[0]).clip(upper=4)
            scores["agree"] = float((tables[self.tree.root]["HHSize"] == number).mean())
        if self.tree.root in ("customers", "patients"):
            scores |= {name: float(value) for name, value in shown(tables).items()}
        orphans = float(sum((~own).sum() for own in led))
        return {**scores, "orphans": orphans, "quality": self._quality(tables), "seconds": seconds}

    def _quality(self, tables):
        from sdmetrics.reports import QualityReport

        report = QualityReport()
        with quiet():
            report.generate(self.tables, self._modelled(tables), self.metadata, verbose=False)
            return float(report.get_score() or 0.0)

    def _modelled(self, tables):
        known = self.metadata["tables"]
        return {name: tables[name][list(known[name]["columns"])] for name in known}

    def _numbers(self, tables, link):
        held = tables[link.child][link.key].value_counts()
        return (
            tables[link.parent][link.parent_key].map(held).fillna(0).clip(upper=link.max_children)
        )

    def _shares(self, tables):
        coded = {name: self._coded(tables[name], name) for name in self.declared}
        names = {name: list(own.columns) for name, own in coded.items()}
        found = {}
        for link in self.tree.links:
            number = self._numbers(tables, link)
            found["number", link.child] = number.value_counts(normalize=True)
        for name, own in coded.items():
            kind = "pairs" if name == self.tree.root else "children"
            for pair in combinations(names[name], 2):
                found[kind, name, pair] = _table(own, pair)
        for link in self.tree.links:
            parent = coded[link.parent].set_axis(tables[link.parent][link.parent_key])
            parent = parent[~parent.index.duplicated()].add_prefix("parent's ")
            own = coded[link.child].assign(key=tables[link.child][link.key].to_numpy())
            joined = own.join(parent, on="key", how="inner")
            for pair in product(parent.columns, names[link.child]):
                found["x child", link.child, pair] = _table(joined, pair)
            if link.max_children > 1:
                found |= self._siblings(own, link, names[link.child])
            if link.order is not None:
                found |= self._gaps(tables[link.child], link)
        order = ["number", "pairs", "children", "x child", "siblings", "any two", "gaps"]
        return dict(sorted(found.items(), key=lambda each: order.index(each[0][0])))

    def _gaps(self, own, link):
        """How long after the one before rows in order are, alone and by their place."""
        rows = own.sort_values([link.key, link.order], kind="stable")
        place = rows.groupby(link.key).cumcount().clip(upper=7)
        days = rows.groupby(link.key)[link.order].diff().dt.total_seconds() / 86_400
        if (link.child, "gaps") not in self.cuts:
            parts = np.unique(np.quantile(days.dropna(), np.arange(1, 16) / 16))
            self.cuts[link.child, "gaps"] = parts
        codes = np.searchsorted(self.cuts[link.child, "gaps"], days, side="right")
        both = pd.DataFrame({"days": codes, "place": place.to_numpy()})[days.notna().to_numpy()]
        return {("gaps", link.child, link.order): _table(both, ("days", "place"))}

    def _siblings(self, own, link, names):
        own = own.assign(rank=own.groupby("key").cumcount(), row=np.arange(len(own)))
        first, second = (own[own["rank"] == rank].set_index("key") for rank in (0, 1))
        two = first.join(second, rsuffix="'", how="inner")
        few = own[own["rank"] < link.max_children]
        every = few.merge(few, on="key", suffixes=("", "'"))
        every = every[every["row"] != every["row'"]]
        found = {}
        for a, b in product(names, names):
            found["siblings", link.child, (a, b)] = _table(two, (a, f"{b}'"))
            found["any two", link.child, (a, b)] = _table(every, (a, f"{b}'"))
        return found

    def _coded(self, table, name):
        found = {}
        for column, facts in self.declared[name].items():
            cells = table[column]
            if (name, column) in self.cuts:
                parts = _numbers_of(cells, facts)
                codes = np.searchsorted(self.cuts[name, column], parts, side="right")
                found[column] = np.where(cells.isna(), -1, codes)
            elif facts.sdtype == "boolean":
                found[column] = cells.astype("boolean").astype("Int64").fillna(-1).to_numpy(int)
            else:
                values = list(facts["range_values"])
                found[column] = pd.Categorical(cells, values).codes.astype(int)
        return pd.DataFrame(found, index=range(len(table)))


def _numbers_of(cells, facts):
    return cells.astype("int64" if facts.sdtype == "datetime" else float)


def _table(frame, pair):
    return (frame[pair[0]] * 1_000 + frame[pair[1]]).value_counts(normalize=True)
