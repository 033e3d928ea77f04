"""The exchange of parts, drawn from a file of results. Not private.

    python -m sdv_privpgd.benchmark show results.parquet --exchange --out figures

For each table and epsilon it writes a figure of the exchanged parts (as Figures 3 and 4 of the
benchmark paper): each part's mean error over the arms in which it stands, for every metric. A kind
of part is compared over those of the other parts alone that all of its kind went with. One page has
the figures, the tables of all arms (as its Tables 16 to 18; a dash is a pair of parts that does not
go together, with the reason below), what the arms cost, and the settings of all parts (as its
Tables 3 to 10). All metrics of a table and epsilon are in one CSV file as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd.benchmark.methods import SELECTS, is_arm, parts_of
from sdv_privpgd.benchmark.preprocessing import PREPROCESSINGS
from sdv_privpgd.benchmark.show import Drawn, as_table, in_order, page, said, summarize
from sdv_privpgd.methods.method import ENGINES, engine_of
from sdv_privpgd.methods.names import method_of
from sdv_privpgd.report.page import Section

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("preprocess", "select", "synthesize")
"""The kinds of parts, in the order in which they work."""

FIGURE = {
    "downstream": "downstream error",
    "counting": "error of counts",
    "l1": "L1 error of pairs",
    "fit_seconds": "seconds of the fit",
}
"""What the figure shows: that paper's three measures and the seconds. All are better if lower."""

_COSTS = ("fit_seconds", "peak_mebibytes")


def arms_of(rows: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of arms, with a column for each of ``KINDS``, and their costs among the metrics."""
    import pandas as pd

    own: Any = rows[rows["method"].map(is_arm)]
    runs = own.dropna(subset=["metric"])
    runs = runs.drop_duplicates(["table", "epsilon", "method", "seed"])
    costs = [runs.assign(metric=name, value=runs[name]).dropna(subset=["value"]) for name in _COSTS]
    found: Any = pd.concat([own, *costs], ignore_index=True)
    parts = [parts_of(method) for method in found["method"]]
    for place, kind in enumerate(KINDS):
        found[kind] = [each[place] for each in parts]
    return found


def of_parts(arms: "pd.DataFrame", kind: str) -> "pd.DataFrame":
    """The mean of each metric over the arms of each part of a kind: parts by metrics.

    Only arms count whose other two parts went with all parts of the kind, so that no part is better
    for the company that it keeps. If there are no such arms, all count. ``attrs["others"]`` is the
    number of combinations of other parts that count.
    """
    others = [each for each in KINDS if each != kind]
    scored = arms.dropna(subset=["metric"])
    together: Any = scored.groupby(others)[kind].transform("nunique")
    shared = scored[together == scored[kind].nunique()]
    chosen: Any = shared if len(shared) else scored
    means: Any = chosen.groupby([kind, *others, "metric"])["value"].mean()
    found = means.groupby(level=[kind, "metric"]).mean().unstack("metric")
    found.attrs["others"] = len(chosen.drop_duplicates(others))
    return found


def table_of_arms(arms: "pd.DataFrame", metric: str) -> "pd.DataFrame":
    """The mean and standard error of a metric: preprocessings and strategies by engines.

    A dash stands for parts that do not go together or did not finish, nothing for no run.
    """
    import pandas as pd

    keys = list(KINDS)
    own = arms[arms["metric"] == metric]
    found: Any = own.groupby(keys)["value"].agg(["mean", "sem"])
    texts = found.apply(lambda row: said(row["mean"], row["sem"]), axis=1)
    failed: Any = arms[arms["error"].notna()]
    failed = failed.drop_duplicates(keys).set_index(keys)["error"]
    dashes = pd.Series("–", index=failed.index.difference(texts.index), dtype=object)
    return pd.concat([texts.astype(object), dashes]).unstack("synthesize").sort_index().fillna("")


def settings_of_parts() -> "pd.DataFrame":
    """The settings of all methods and engines: their defaults, which are those of an arm."""
    import pandas as pd

    parts = {
        "select": {name: method_of(name) for name in SELECTS},
        "synthesize": {name: engine_of(name) for name in ENGINES},
    }
    found = [
        {"kind": kind, "part": name, "setting": each.name, "value": _in_short(part, each.name)}
        for kind, named in parts.items()
        for name, part in named.items()
        if is_dataclass(part)
        for each in fields(part)
        if each.init and (each.default is not MISSING or each.default_factory is not MISSING)
    ]
    return pd.DataFrame(found)


def _in_short(part: Any, name: str) -> str:
    text = repr(getattr(part, name))
    return text if len(text) < 60 else f"{text[:57]}..."


def write_exchange(rows: "pd.DataFrame", folder: Path) -> list[Path]:
    """Writes the figures, the CSV files and the page ``exchange.html``, and returns their paths.

    Raises ``ValueError`` if the rows have no arm.
    """
    import pandas as pd

    from sdv_privpgd.benchmark.figures import draw_parts  # imports matplotlib

    arms = arms_of(rows)
    if not len(arms):
        raise ValueError("There are no arms: compare with --preprocess, --select or --synthesize.")
    folder.mkdir(parents=True, exist_ok=True)
    written, sections = [], []
    groups: Any = arms.groupby(["table", "epsilon"])
    for (table, epsilon), group in groups:
        title, name = f"{table}, epsilon {epsilon:g}", f"{table}_epsilon_{epsilon:g}"
        means = {kind: of_parts(group, kind) for kind in KINDS}
        means = {kind: each.loc[in_rank(kind, list(each.index))] for kind, each in means.items()}
        path = folder / f"exchange_{name}.png"
        if draw_parts(means, _real(rows, str(table)), FIGURE, title, path):
            sections.append(Section(title, [Drawn(title, path)]))
            written.append(path)
        metrics = in_order(list(group["metric"].dropna().unique()))
        tables = {metric: table_of_arms(group, metric) for metric in metrics}
        shown = [
            as_table(f"{title}: {label}", tables[metric])
            for metric, label in FIGURE.items()
            if metric in tables
        ]
        sections.append(Section(f"{title}: numbers", shown))
        written.append(folder / f"exchange_{name}.csv")
        pd.concat(tables, names=["metric"]).to_csv(written[-1])
    refused = arms.loc[arms["error"].notna(), ["method", "table", "error", "reason"]]
    for title, found in (
        ("Not run", refused.drop_duplicates().fillna("")),
        ("Settings of the parts", settings_of_parts()),
    ):
        written.append(folder / f"exchange_{title.lower().replace(' ', '_')}.csv")
        found.to_csv(written[-1], index=False)
        sections.append(Section(title, [as_table(title, found)]))
    written.append(folder / "exchange.html")
    page(sections).write(written[-1])
    return written


def in_rank(kind: str, names: Sequence[str]) -> list[str]:
    """The names of parts of a kind, in the order of the registries."""
    known = {
        "preprocess": PREPROCESSINGS, "select": SELECTS, "synthesize": tuple(ENGINES)
    }[kind]  # fmt: skip
    return sorted(names, key=lambda name: known.index(name) if name in known else len(known))


def _real(rows: "pd.DataFrame", table: str) -> Mapping[str, float]:
    """The mean of each metric of real rows, if the file has them."""
    own: Any = rows[(rows["method"] == "Real") & (rows["table"] == table)]
    found: Any = summarize(own)
    return {} if found.empty else found["mean"].groupby(level="metric").mean().to_dict()
