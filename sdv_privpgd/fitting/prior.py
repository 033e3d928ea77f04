"""Public rows that a fit leans on: what ``prior=`` takes, and what follows from it. Public."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import check_positive
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.files import kind_of
from sdv_privpgd.base.words import listed, share
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts, TruthFacts
from sdv_privpgd.columns.links import Tree
from sdv_privpgd.columns.readings import Readable
from sdv_privpgd.columns.recoding import Recoding, recoded
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.units import zone_of
from sdv_privpgd.constraints.kinds import Constraints
from sdv_privpgd.estimate.prior import MOST_ROWS, PublicRows
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit, codes_paid_for, method_for, with_codes
from sdv_privpgd.fitting.settings import People, Settings
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.method import MatchError
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.measures import MANY, MOST, NEARLY_ALL
from sdv_privpgd.synthesize.engine import Model, Particles


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """Rows that are public, or were released already, and are like the private ones.

    They cost nothing: a fit decides by noisy answers alone how far to trust them. Declare nothing
    as a prior that is not public: no noise protects it.

    Attributes:
        rows: A DataFrame, of pandas or what can be made one, the path of a Parquet or CSV file, or
            a fitted table, of which rows are sampled. Columns that are not to be modelled are not
            read, and some may be lacking.
        name: Whose rows they are, for the report, such as ``"CPS 2018, Colorado"``.
        weight: How much each row counts beside those of other priors: a number, or one of each row.
        same_people: Whether they were made from data on the people of the private table, as last
            year's release may be. The report then says that both budgets add up for them.

    >>> Prior(pd.DataFrame({"age": [30, 40]}), name="a survey")
    Prior(2 rows of 1 column, 'a survey')
    """

    rows: Any
    name: str = ""
    weight: float | np.ndarray = 1.0
    same_people: bool = False

    def __post_init__(self) -> None:
        for end in (np.min, np.max):
            check_positive("weight", self.weight if np.isscalar(self.weight) else end(self.weight))

    def __repr__(self) -> str:
        if not isinstance(self.rows, pd.DataFrame):
            return f"Prior({type(self.rows).__name__}, {self.name!r})"
        rows, columns = self.rows.shape
        return f"Prior({rows:,} rows of {columns} column{'s' * (columns != 1)}, {self.name!r})"

    @property
    def frame(self) -> pd.DataFrame:
        """The rows. Raises ``ValueError`` for what has none."""
        rows = getattr(self.rows, "fitted_table", self.rows)
        if isinstance(rows, pd.DataFrame):
            return rows
        if isinstance(rows, str | Path):
            kind = kind_of(Path(rows))
            if kind is None or kind.form == "excel":
                raise ValueError(
                    f"A prior's file is a Parquet or CSV file, got {Path(rows).name!r}. Load a "
                    "model first: FittedTable.load(path)."
                )
            if not Path(rows).exists():
                raise ValueError(f"prior= names the file {str(rows)!r}, which is not there.")
            return pd.read_parquet(rows) if kind.form == "parquet" else _read_text(rows, kind.sep)
        if hasattr(rows, "sample") and hasattr(rows, "fitted"):
            return deepcopy(rows).sample(MOST_ROWS)  # its next rows stay the next ones
        for read in ("to_pandas", "toPandas", "df", "collect", "to_table"):
            if hasattr(rows, read) and not isinstance(rows, type):
                return replace(self, rows=getattr(rows, read)()).frame
        raise ValueError(
            "prior takes public rows: a DataFrame, an Arrow table or data set, a DuckDB relation, "
            "the path of a Parquet or CSV file, a fitted table, or a list of these, got "
            f"{type(rows).__name__}."
        )

    def said(self, number: int) -> str:
        """A sentence on whose rows they are."""
        text = f"{number:,} public rows" + (f" of {self.name}" if self.name else "")
        ledger = getattr(getattr(self.rows, "fitted_table", self.rows), "ledger", None)
        if ledger is not None:
            text += f", sampled from a release with epsilon {ledger.spent():.3g} of its own"
        also = ", made from data on people of this table: for them, its budget and that of this fit"
        return f"{text}{also} add up" if self.same_people else text


def _read_text(path: str | Path, sep: str) -> pd.DataFrame:
    """The rows of a CSV file, parted by what makes most columns of its first line.

    In columns of text only a blank is missing: NA may be a category. Where ';' separates, the sign
    before decimals is the one by which fewer columns are text.
    """
    sep = max((sep, ";", "\t", "|"), key=lambda each: pd.read_csv(path, sep=each, nrows=0).shape[1])
    signs, kinds = (".,"[: 1 + (sep == ";")]), ["object", "string"]
    by_sign = [pd.read_csv(path, sep=sep, decimal=sign) for sign in signs]
    read = min(by_sign, key=lambda rows: rows.select_dtypes(kinds).shape[1])
    written = pd.read_csv(path, sep=sep, dtype=str, keep_default_na=False)
    is_text = {name: written[name] for name in read.select_dtypes(kinds)}
    return read.assign(**{name: own.where(own.str.strip() != "") for name, own in is_text.items()})


_DRAWN = 0.1
"""The weight, beside others, of a public row whose missing cell gets the value of another row,
because private rows always have one. Pairs with a column of which a third or 0.7 of public rows
have none were 38 % nearer at epsilon 0.2 than with the first cell in its place, and 3 and 7 % at 1
(12 fits each); with 0.3 they were up to a fourth further off than with 0.1, and with 0.01 as
near."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicTable:
    """The public rows that a fit leans on: their described columns, and how much each row counts.

    ``said`` is a sentence on each of the priors. ``replaced`` has what was declared of the numbers
    and dates whose cells follow from the rows, but for those that were ``doubted``. The rows say
    the range or the categories of the columns that they ``declares``. ``notes`` are sentences on
    columns that cannot be read.
    """

    frame: pd.DataFrame
    weights: np.ndarray
    said: tuple[str, ...]
    replaced: Mapping[str, ColumnFacts] = field(default_factory=dict)
    doubted: tuple[str, ...] = ()
    declares: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, prior: Any, modelled: Sequence[str], seed: int) -> "PublicTable":
        """The rows of what ``prior=`` takes: at most ``MOST_ROWS``, drawn by their weights.

        Raises:
            ValueError: For what has no rows, and rows without any of the columns.
        """
        parts = prior if isinstance(prior, list | tuple) else [prior]
        priors = [each if isinstance(each, Prior) else Prior(each) for each in parts]
        frames = [each.frame for each in priors]
        if not all(len(frame) for frame in frames or [()]):
            raise ValueError("A prior needs rows: it, or a part of it, has none.")
        kept = [name for name in modelled if all(name in frame for frame in frames)]
        if not kept:
            raise ValueError(
                "A prior needs columns of the table in all of its parts: none of "
                f"{list(modelled)!r} is in each. The first has {listed([*map(repr, frames[0])])}."
            )
        for each, own in zip(priors, frames, strict=True):
            if np.shape(each.weight) not in ((), (len(own),)):
                raise ValueError(
                    f"weight must be a number or one of each row, got {np.size(each.weight)} for "
                    f"{len(own)} rows."
                )
        rows: Any = pd.concat([frame[kept] for frame in frames], ignore_index=True)
        weights = np.concatenate(
            [np.broadcast_to(p.weight, len(own)) for p, own in zip(priors, frames, strict=True)]
        )
        if len(rows) > MOST_ROWS:
            rng = np.random.default_rng(seed)
            drawn = rng.choice(len(rows), MOST_ROWS, replace=False, p=weights / weights.sum())
            rows = cast(Any, rows.iloc[np.sort(drawn)].reset_index(drop=True))
            weights = np.ones(MOST_ROWS)
        said = tuple(each.said(len(frame)) for each, frame in zip(priors, frames, strict=True))
        names = {str(name) for frame in frames for name in frame} - {*kept}
        notes = _on_lacking([name for name in modelled if name not in kept], names)
        return cls(frame=rows, weights=weights, said=said, notes=notes)

    def taken(self, places: np.ndarray) -> "PublicTable":
        """Returns the rows at these places."""
        rows: Any = self.frame.iloc[places].reset_index(drop=True)
        return replace(self, frame=rows, weights=self.weights[places])

    def columns(self, schema: Schema) -> dict[str, pd.Series]:
        """Returns the columns of a schema. Those that the rows lack are missing in all."""
        number, own = len(self.frame), dict(self.frame.items())
        kinds = {e.name: float if e.sdtype == "numerical" else object for e in schema.columns}
        return {
            name: own[name] if name in own else pd.Series([None] * number, dtype=kind)
            for name, kind in kinds.items()
        }

    def codes(self, schema: Schema) -> PublicRows:
        """Returns the rows as codes of a schema. What they lack, or is doubted, is ``lacking``.

        Of columns in which none may be missing, others' cells are drawn for what is.
        """
        columns = self.columns(schema)
        lacking = {name for name in columns if name not in self.frame or name in self.doubted}
        lacking |= {
            each.name for each in schema.differences if {each.low.name, each.high.name} & lacking
        }
        held = lambda column: replace(column, nullable=True)
        differences = tuple(replace(each, column=held(each.column)) for each in schema.differences)
        read = Schema(tuple(map(held, schema.columns)), differences)
        codes, weights = np.array(PrivateTable(columns).codes(read)), 1.0 * self.weights
        rng = np.random.default_rng(0)
        for own, column in zip(codes.T, schema.attributes, strict=True):
            is_held = (own < column.num_values) | column.nullable
            own[~is_held] = rng.choice(own[is_held] if is_held.any() else 1, (~is_held).sum())
            weights[~is_held] *= _DRAWN
        return PublicRows(
            domain=schema.domain(),
            codes=codes,
            weights=weights / weights.max(),
            lacking=frozenset(lacking),
        )


def require_others(prior: Any, private: Any) -> None:
    """Raises ``ValueError`` where private rows are given as public ones, by object or path. Public.

    No cell is read, so it does not notice a copy.
    """
    given, own = ([*_tables_in(each)] for each in (prior, private))
    paths = [each for each in own if isinstance(each, Path)]
    if any(
        each in paths if isinstance(each, Path) else any(each is one for one in own)
        for each in given
    ):
        raise ValueError(
            "prior= is the private table itself, and no noise would protect it. Give rows that are "
            "public, or released already."
        )


def _tables_in(rows: Any) -> Iterator[Any]:
    """Yields the tables in what a door takes, or a prior; of paths where they lead."""
    rows = rows.rows if isinstance(rows, Prior) else rows
    rows = [*rows.values()] if isinstance(rows, Mapping) else rows
    if isinstance(rows, list | tuple):
        for each in rows:
            yield from _tables_in(each)
    elif rows is not None:
        yield Path(rows).resolve() if isinstance(rows, str | Path) else rows


def of_families(prior: Any, tree: Tree, fit: Callable[[Mapping], Any]) -> dict[str, Prior]:
    """Returns the families of public or fitted tables by table: each row counts as its part of one.

    ``fit`` returns a model of public tables. Raises ``ValueError`` for what is neither.
    """
    whole = prior if isinstance(prior, Prior) else Prior(prior)
    name, fitted = whole.name or "families", getattr(whole.rows, "fitted_tables", whole.rows)
    if hasattr(fitted, "first_families"):
        name += f", of a release with epsilon {fitted.ledger.spent():.3g}"
        if fitted.tree != tree:  # rows say what these links ask
            fitted = deepcopy(fitted).sample()
    elif not isinstance(fitted, Mapping):
        raise ValueError("prior takes public tables by name, or FittedTables.")
    if isinstance(fitted, Mapping):
        fitted = fit(fitted)
    made, family = fitted.first_families()
    return {
        table: replace(whole, rows=rows, weight=1 / np.bincount(own)[own], name=name)
        for table, rows in made.items()
        if len(own := family[table])
    }


def leaning(
    settings: Settings,
    description: Description,
    prior: Any,
    num_rows: int | None,
    dtypes: Mapping[str, Any] = MappingProxyType({}),
) -> Description:
    """Returns the description of a table whose fit leans on public rows, if there is a prior.

    What nobody declared of their columns is found in them, and so is where in a range rows lie:
    nothing is spent on that. ``num_rows`` and ``dtypes`` are those of the table, where public.
    Where text is to be read, public rows are written as text, and their truths as the table's are.
    Columns of them of which no cell can be read are left out, and it is said.

    Raises:
        MatchError: For a method whose engine cannot use a prior.
        ValueError: For rows that are no prior, columns of other types in it, and a prior of which
            no column can be read.
    """
    if prior is None:
        return description
    if not settings.method.takes_prior:
        raise MatchError(
            "prior= needs the engine 'particles' with its usual targets, and "
            f"{settings.method.called} has none here: choose method='privpgd', or another "
            "one with '+particles'."
        )
    if description.visits is not None:
        raise MatchError("prior= and sequence_index cannot go together: a prior has no persons.")
    public = PublicTable.of(prior, description.modelled, settings.seed)
    is_text = pd.api.types.is_string_dtype
    text = [name for name, dtype in description.dtypes.items() if is_text(dtype)]
    facts, frame = {name: description.facts[name] for name in public.frame}, cast(Any, public.frame)
    truths = {
        name: frame[name].map(dict(zip((False, True), each.values, strict=True)))
        for name, each in facts.items()
        if isinstance(each, TruthFacts) and each.values
        if pd.api.types.is_bool_dtype(frame[name])
    }
    # Dates of a table without a time zone are read on clocks, and so are public ones that have one.
    naive = {
        name: frame[name].astype(pd.DatetimeTZDtype("ns", zone)).dt.tz_localize(None)
        for name, own in frame.dtypes.items()
        if (zone := zone_of(own)) is not None and name in dtypes and zone_of(dtypes[name]) is None
    }
    public = replace(public, frame=as_text(frame.assign(**truths, **naive), text))
    words = {name: description.words[name] for name in facts}
    table, errors = PrivateTable.opened(public.frame, words, facts)
    if errors:
        raise ValueError(f"The prior is not as the table is described: {' '.join(errors)}")
    # The table's missing codes and groups of codes are read as they come, and so are these.
    columns: Any = dict(public.frame.items())
    public = _without_unread(public, recoded(columns, Recoding.of(facts)), facts)
    names = list(public.frame)
    own = replace(
        description,
        dtypes={},  # those of public rows are no facts
        columns={name: description.columns[name] for name in names},
        facts={name: description.facts[name] for name in names},
        keys=(),
        patterns={},
        constraints=Constraints(),
        discovers=True,
        given=tuple(names),  # of what was declared of them, nothing is asked
    )
    clear = replace(
        settings,
        epsilon=1e4,  # as if there were no noise
        delta=1e-5,
        adjacency=Adjacency.REPLACE_ONE,
        people=People(),
        family=(),
        discovery_share=0.5,
    )
    look = Fit(clear, own.dated(table.dtypes))
    look.discover(table)
    found = {
        name: facts
        for name, facts in look.description.discovered.items()
        if name not in description.given
        and not (isinstance(facts, CategoryFacts) and _unknown_share(columns[name]) > MANY)
    }
    rows = len(public.frame) if num_rows is None else num_rows
    if description.num_bins is None:
        # Public rows say what noise hides of more cells than it pays for. Beside no least number,
        # pairs of 12 arms of tests/benchmarks prior were nearer in 10, by 12 % on average; with 32
        # they were further off in 5.
        paid = codes_paid_for(description.measured, rows, settings.ledger(), settings.method)
        found = with_codes(found, own.stated, max(paid, 16))
    known = description.facts
    taken = {name: _taken(known[name], each) for name, each in found.items()}
    cut = {n: known[n] for n, each in taken.items() if isinstance(each, NumberFacts | DateFacts)}
    declares = tuple(name for name in found if known[name].lacks_domain)
    codes = Domain(tuple(description.measured), (1,) * len(description.measured))
    alone = all(len(each) == 1 for each in settings.method.cliques(codes))
    of_alone = "No two columns are measured together, so rows follow no relation of the prior."
    notes = (*public.notes, *[of_alone] * alone)
    public = replace(public, replaced=cut, declares=declares, notes=notes)
    return replace(description, facts={**known, **taken}, public=public)


def _without_unread(
    public: PublicTable, read: Mapping[str, pd.Series], facts: Mapping[str, ColumnFacts]
) -> PublicTable:
    """The public rows as they are read, without columns of no value.

    What can be read of a column is of use. With 1 % of one, pairs of Nebraska with Colorado were
    20 % nearer at epsilon 0.2 than without it, and with none 9 % further off (means of 8 fits).
    Numbers and dates are other ones if most lie beyond the declared range.
    """
    said, small, kept = [], [], {}
    for name, known in facts.items():
        _, missing, wrong, low, high = _parts_read(name, known, read[name])
        most = MANY if getattr(known, "other", None) is None else NEARLY_ALL
        if wrong >= most * (1 - missing):
            said.append(f"{name!r} ({share(missing + wrong)})")
        elif low + high >= MANY * (1 - missing):
            said.append(f"{name!r} ({share(low + high)} beyond its range)")
        elif isinstance(known, NumberFacts) and known.low is not None and known.high is not None:
            start, end = known.ends
            least = replace(known, high=float(start + (end - start) / 100), cuts=None)
            if missing < 1 and not _parts_read(name, least, read[name])[4]:
                small.append(repr(name))
        if missing + wrong < 1 and low + high <= MOST * (1 - missing - wrong):
            kept[name] = read[name]
    prior = "; ".join(public.said)
    text = f"Cells of the prior ({prior}) are missing or no declared values: {listed(said)}."
    remedy = "write them there as they are declared, and in the same units."
    if not kept:
        raise ValueError(f"{text} None can be used: {remedy}")
    note = (
        f"{text} A column of which none can be read, or most is beyond the range, is fitted as "
        f"without a prior: {remedy}"
    )
    few = (
        f"All values of the prior are in the lowest hundredth of the declared range of "
        f"{listed(small)}: check that they are in the same units."
    )
    notes = *public.notes, *[note] * bool(said), *[few] * bool(small)
    return replace(public, frame=pd.DataFrame(kept), notes=notes)


def _parts_read(name: str, facts: ColumnFacts, cells: pd.Series) -> np.ndarray:
    """The parts of cells as declared, missing, wrong, and below and above the declared range."""
    (codes,) = Readable(name=name, facts=facts).codes(cells)
    return np.bincount(codes, minlength=5)[:5] / len(codes)


def _on_lacking(lacking: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """A sentence on the columns that a prior lacks, if any, and on others that are called so."""
    if not lacking:
        return ()
    called = {name.strip().casefold() for name in lacking}
    others = sorted({*names} - {*lacking})
    alike = [repr(name) for name in others if name.strip().casefold() in called]
    rename = f" It has {listed(alike)}: rename them if they are the same." if alike else ""
    names_lacking = listed([*map(repr, lacking)])
    return (f"The prior, or a part of it, lacks {names_lacking}: fitted as without it.{rename}",)


def _unknown_share(cells: pd.Series) -> float:
    """The share of other rows whose value these are likely to lack: Good's estimate (1953)."""
    counts = cells.value_counts()
    return float((counts == 1).sum() / max(counts.sum(), 1))


def foretold(settings: Settings, description: Description, num_rows: int) -> list[str]:
    """Returns a sentence on the errors of a fit to so many rows that are like the prior's. Public.

    Half of the public rows stand for the private ones, with noise of their size, and the fit leans
    on the other half.
    """
    public = description.public
    if public is None or len(description.measured) < 2 or not num_rows:
        return []
    if any(facts.lacks_domain for facts in description.stated.values()):
        return []  # what the prior lacks may have any values
    schema = description.attributes
    rng = np.random.default_rng(settings.seed)
    first, second = np.array_split(rng.permutation(len(public.frame)), 2)
    rows, prior = public.taken(rng.choice(first, num_rows)), public.taken(second)
    # The budget of the fit, of which a row of public rows is one.
    shared = FitLedger(PrivacyLedger.open(settings.epsilon, settings.delta, settings.adjacency))
    curator = PrivateTable(rows.columns(schema)).curator(schema, shared)
    own = Particles(domain=schema.domain(), codes=rows.codes(schema).codes)
    method = method_for(settings, replace(description, public=None))
    pipeline.ask(curator, method)
    answers = pipeline.Answers.of(curator, method)
    errors = [
        _half_l1(own, pipeline.fit(answers, each).model)
        for each in (method.given(prior.codes(schema)), method)
    ]
    leant, alone = (f"{100 * each:.2g} %" for each in errors)
    return [
        f"If these rows are like those of the prior, synthetic pairs of columns are off by {leant} "
        f"of the rows, on average, and by {alone} without it (one simulated fit)."
    ]


def _half_l1(rows: Model, model: Model) -> float:
    """Half the mean L1 distance of a model's pairs from those of rows."""
    pairs = rows.domain.cliques(2)
    apart = [np.abs(rows.marginal(pair) - model.marginal(pair)).sum() for pair in pairs]
    return float(np.mean(apart)) / 2


def _taken(stated: ColumnFacts, found: ColumnFacts) -> ColumnFacts:
    """What is stated of a column, and for the rest what was found of public rows.

    The private ones may have missing cells, and values where no public row has one.
    """
    facts: Any = stated.and_found(found)
    if stated.nullable is None and not isinstance(facts, TruthFacts):
        facts = replace(facts, nullable=True)
    if not isinstance(facts, NumberFacts | DateFacts) or facts.frequencies is None:
        return facts
    # No cell is taken to be empty: each has half a row (Krichevsky & Trofimov).
    return replace(facts, frequencies=tuple(count + 0.5 for count in facts.frequencies))


def as_text(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Returns the frame with what these columns have of numbers and truths written as text."""
    written = {
        name: frame[name].convert_dtypes().astype("string").astype(object)
        for name in set(names) & set(frame)
        if pd.api.types.is_numeric_dtype(frame[name])  # of truths, too
    }
    return frame.assign(**written)
