"""Releases put together: noisy tables of several sites added up, and one model of the sums.

A site's own answers to one question are averaged by inverse variance first, as in any fit. Then
the tables that every site has measured are added. The noise of different sites is independent,
so K sites with noise of standard deviation s give their sum one of s sqrt(K): as if one table of
them all had been asked with a K-th of the mu^2.

What only some have measured cannot be added up, because the others' people would be missing. Where
such a table lies within one that all have measured (the counts of one column within those of a
pair), it is not lost: the site's tables are replaced by their best linear estimates from all that
it has measured. These are less noisy than the tables (Gauss-Markov), so the variances that are said
here, which are those of the tables themselves, are never too small.

Post-processing of noisy answers: public and free.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.base.progress import Progress, heard, silent
from sdv_privpgd.base.words import listed, share
from sdv_privpgd.estimate.noisy_tables import NoisyTable, grouped_tables, noisy_tables
from sdv_privpgd.estimate.support import clear_support
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fitted, maker_of
from sdv_privpgd.fitting.model_rows import SampledTable
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.method import engine_of, require_model
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import epsilon_in_all
from sdv_privpgd.privacy.queries import (
    Adjacency,
    CountQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    QuadrantQuery,
    TableQuery,
)
from sdv_privpgd.releases.site import seen
from sdv_privpgd.releases.site_release import Measured, Site, order_facts
from sdv_privpgd.report.about import (
    About,
    assumed_section,
    facts_about,
    promise_of,
    rows_in_words,
)
from sdv_privpgd.report.page import (
    Details,
    Facts,
    Page,
    Part,
    Report,
    Section,
    Text,
    as_text,
    long_table,
)
from sdv_privpgd.report.privacy import first_line, ledger_table, legend, privacy_report
from sdv_privpgd.report.release import model_sections, noted, overview, visits_sections
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
        return self.fitted.refits_by(self.engine)

    def report(self, path: str | Path | None = None) -> Report:
        """What the rows were made of, what is promised, and how well they fit the noisy tables.

        Args:
            path: Where to save it as well, as ``Report.save`` takes it.
        """
        return self._report().saved(path)

    @abstractmethod
    def _report(self) -> Report: ...

    def privacy_report(self) -> str:
        """The text of ``report``: all but its pictures."""
        return self._report().text

    def _reported(
        self,
        about: About,
        *,
        title: str,
        lead: Sequence[Part],
        numbers: Mapping[str, str],
        sections: Sequence[Section],
        facts: Mapping[str, Any],
    ) -> Report:
        """A report whose page has its own sections between the pictures and what is folded away."""
        shown, folded = model_sections(self.fitted.release, self.fitted.schema)
        line, worth = overview(self.fitted.schema, about, self.warnings)
        summary = {
            "program": f"sdv-privpgd {version('sdv-privpgd')}",
            "rows": f"{self.fitted.num_rows or 0:,}",
            "columns": f"{len(about.columns):,}",
            **numbers,
            "made on": about.date,
            "rows made by": about.method.parts[-1],
        }
        tiles = Facts([*summary.items()])
        page = Page(
            title=title,
            lead=[Text(line), *lead, tiles],
            sections=[*shown, *worth, *sections, *folded],
        )
        text = as_text([*lead, Text(title), tiles, *sections, *noted(self.warnings)])
        known = {"public": True, **facts_about(about, self.fitted.release)}
        known["warnings"] = list(self.warnings)
        return Report(text=text, page=page, facts={**known, **facts})

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
    dtypes: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Fitted, Engine]:
    """A model of noisy answers on columns that are all declared, and the engine that made it.

    ``said`` are the same answers with the noise that intervals are made of, if it is another, as
    that of published tables. Of others rows end where they are ``seen`` to. Values are written in
    ``dtypes``.
    """
    seed, progress = check_integer("seed", seed, least=0), heard(progress)
    own, schema = engine_of(engine, seed=seed), description.attributes
    if own.statistics(schema.domain()):
        raise ValueError(
            "This engine protects a statistic, which has to be asked of the rows; there are none."
        )
    tables = [each.query.clique for each in measurements if isinstance(each.query, MarginalQuery)]
    require_model(own, schema.domain(), tables)
    own.prepare(progress)
    if said is None:
        own = own.with_possible(seen(schema, measurements))
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
        held=clear_support(made.domain, kept),
    )
    schema = schema.typed(dtypes)
    maker = maker_of(description, schema, release.held, kept)
    fitted = Fitted(
        description=description, schema=schema, release=release, sampler=maker(made.model, seed)
    )
    return fitted, own


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """Sums over sites, float64: their number of rows, and the tables that all have measured."""

    measurements: tuple[Measurement, ...]
    left_out: tuple[TableQuery, ...]
    """Tables that only some have measured and that lie within no other: they could not be used."""
    noise: tuple[float, ...]
    """Of each site, the variances of what all have measured, summed up. Public."""


def pooled(domain: Domain, of_sites: Sequence[Sequence[Measurement]]) -> Pooled:
    """The sums of the noisy answers of several sites, who have no rows in common.

    Raises ``ValueError`` if no table was measured by all sites.
    """
    tables = [_tables(domain, answers) for answers in of_sites]
    common = [key for key in tables[0] if all(key in own for own in tables)]
    if not common:
        raise ValueError(
            "No table was measured by all sites, so there is nothing to add up. Let all of them "
            "measure with the same method, such as 'privpgd'."
        )
    others = dict.fromkeys(key for own in tables for key in own if key not in common)
    # A table over codes follows from a larger one that all have.
    larger = [set(each.clique) for each in common if isinstance(each, MarginalQuery)]
    within = [
        each
        for each in others
        if isinstance(each, MarginalQuery) and any(set(each.clique) < own for own in larger)
    ]
    best = [
        _estimates(domain, answers, own, common, within)
        for answers, own in zip(of_sites, tables, strict=True)
    ]
    sums = [
        Measurement(
            query=each,
            answer=np.asarray(sum(own[each].counts for own in best)),
            stddev=float(np.sqrt(sum(own[each].variance for own in best))),
            units=_units(of_sites),
        )
        for each in common
    ]
    return Pooled(
        measurements=(*_rows(of_sites), *sums),
        left_out=tuple(each for each in others if each not in within),
        noise=tuple(sum(np.sum(own[each].variance) for each in common) for own in tables),
    )


def _tables(domain: Domain, answers: Sequence[Measurement]) -> dict[TableQuery, NoisyTable]:
    """What a site has said to each question about a clique, averaged if it was asked again."""
    found: dict[TableQuery, NoisyTable] = {
        MarginalQuery(clique): table for clique, table in noisy_tables(domain, answers).items()
    }
    for kind in (GroupedMarginalQuery, QuadrantQuery):
        for grouping, tables in grouped_tables(domain, answers, kind).items():
            named = [name for name in domain.attributes if name in grouping.attributes]
            own = Grouping.of({name: grouping[name] for name in named})
            found |= {kind(clique, own): table for clique, table in tables.items()}
    return found


def _estimates(
    domain: Domain,
    answers: Sequence[Measurement],
    own: Mapping[TableQuery, NoisyTable],
    common: Sequence[TableQuery],
    within: Sequence[TableQuery],
) -> Mapping[TableQuery, NoisyTable]:
    """A site's common tables, with what its tables within them say if it has any."""
    if not any(each in own for each in within):
        return own
    codes = [each for each in answers if not isinstance(each.query, GroupedMarginalQuery)]
    linear, found = LinearEstimate(domain, codes), dict(own)
    for each in common:
        table = linear.table(each.clique) if isinstance(each, MarginalQuery) else None
        if table is not None:
            found[each] = NoisyTable(table[0], own[each].variance)
    return found


def _rows(of_sites: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """The sum of the numbers of rows, if every site was asked for its own."""
    known = [
        [each for each in answers if isinstance(each.query, CountQuery)][:1] for answers in of_sites
    ]
    if not all(known):
        return []
    total = np.asarray(sum(count.answer for (count,) in known))
    stddev = float(np.sqrt(sum(count.stddev**2 for (count,) in known)))
    units = _units(of_sites)
    return [Measurement(query=CountQuery(), answer=total, stddev=stddev, units=units)]


def _units(of_sites: Sequence[Sequence[Measurement]]) -> int:
    """The finest units of all answers: sums are about as finely rounded."""
    return max((each.units for answers in of_sites for each in answers), default=1)


@dataclass(frozen=True, kw_only=True, repr=False)
class CombinedTable(ModelledTables):
    """One model of several sites' tables. All that it shows is public, files included.

    Each site's people have their site's guarantee. ``report`` says what follows for people
    whose rows are at several of them.

    Attributes:
        sites: Who has measured, with what each has spent.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, measure
    >>> table = pd.DataFrame({"ill": [True, False] * 500})
    >>> names = ("North", "South")
    >>> releases = [measure(table, {"ill": Boolean()}, 1.0, site=name) for name in names]
    >>> combined = combine(releases, engine="pgm")
    >>> combined.num_rows, combined.sample(3).shape
    (2000, (3, 1))
    >>> round(combined.epsilon(), 2), round(combined.epsilon("North", "South"), 2)
    (1.0, 1.47)
    """

    sites: tuple[Site, ...]

    def epsilon(self, *names: str) -> float:
        """What was spent on a person whose rows are at these sites; by default at any one.

        Raises:
            ValueError: For a name that no site has.
        """
        known = {site.name: site.ledger for site in self.sites}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"No site is called {unknown!r}: choose from {list(known)!r}.")
        if not names:
            return max(ledger.spent() for ledger in known.values())
        return epsilon_in_all([known[name] for name in dict.fromkeys(names)])

    def _promise(self) -> dict[str, Any]:
        sites = [{"site": each.name, **promise_of(each.ledger)} for each in self.sites]
        most = {name: max(each[name] for each in sites) for name in ("epsilon", "delta")}
        unit = " or ".join(dict.fromkeys(each["unit"] for each in sites))
        return {**promise_of(_worst(self.sites)), **most, "unit": unit, "sites": sites}

    def _report(self) -> Report:
        about, at_one, at_all = self.about("several sites"), self.epsilon(), self._at_most()
        rows = [
            (
                each.name,
                each.ledger.unit,
                rows_in_words(each.rows),
                f"{each.ledger.spent():.4g}",
                f"{each.ledger.delta:g}",
                each.date,
            )
            for each in self.sites
        ]
        header = ("site", "protected", "rows", "epsilon", "delta", "measured on")
        promised = [
            *map(Text, self._promises()),
            *long_table("The sites", header, rows, texts=2),
        ]
        note = (
            "Every question that was put to the confidential tables, in order, site by site. "
            "The program of each site has kept this ledger."
        )
        ledgers: list[Part] = [Text(note), legend(*(each.ledger for each in self.sites))]
        for each in self.sites:
            ledgers += [
                Text(f"{each.name}: {each.strategy}", quiet=True),
                ledger_table(each.ledger),
                Details(f"{each.name}: as plain text", privacy_report(each.ledger)),
                Details(f"{each.name}: as JSON, exact", each.ledger.to_json()),
            ]
        return self._reported(
            about,
            title=f"Synthetic rows of {len(self.sites)} sites' tables",
            lead=self._whose_rows(),
            numbers={
                "sites": f"{len(self.sites):,}",
                "epsilon, rows at one site": f"{at_one:.4g}",
                "epsilon, rows at all": f"{at_all:.4g}",
            },
            sections=[
                Section("Whose rows these are, and what is promised", promised),
                *visits_sections(about.visits),
                assumed_section(about, self.sites[0].ledger.adjacency),
                Section("What was asked of the tables", ledgers, folded=True),
            ],
            facts={
                "report": "combined",
                "epsilon_at_one_site": at_one,
                "epsilon_at_all_sites": at_all,
                "sites": [each.to_dict() for each in self.sites],
            },
        )

    def _at_most(self, number: int | None = None, delta: float | None = None) -> float:
        """What was spent at most on a person whose rows are at so many sites, or at all."""
        spent = sorted((each.ledger for each in self.sites), key=lambda own: -own.mu_squared)
        return epsilon_in_all(spent[:number], delta)

    def _whose_rows(self) -> list[Text]:
        """That no person is protected, by the worst ledger of which nobody has said whose it is."""
        unsaid = [each.ledger for each in self.sites if not each.ledger.says_whose]
        return first_line(max(unsaid, key=lambda ledger: ledger.mu_squared, default=None))

    def _promises(self) -> list[str]:
        """What is promised to people of one site, of two and of all, a sentence each."""
        number, delta = len(self.sites), max(each.ledger.delta for each in self.sites)
        replaced = self.sites[0].ledger.adjacency is Adjacency.REPLACE_ONE
        said = [
            "Each site has measured its own table and added the noise itself. Its rows were seen "
            "by nobody else, and the noisy tables were added up afterwards, which costs nothing.",
            "Whoever has rows at one site alone is protected by that site's epsilon, at most "
            f"{self.epsilon():.4g} at its delta: what the others have measured says nothing of "
            "them.",
            "Two tables of a site are neighbors if one is the other with what is protected "
            f"{'replaced by any other values' if replaced else 'added or removed'}; each site's "
            f"number of rows is {'public' if replaced else 'private'}. Somebody who moves from one "
            "site to another is in the tables of both.",
        ]
        if number > 1:
            at_all = f", and {self._at_most():.4g} if at all {number}" if number > 2 else ""
            said.insert(
                2,
                "Whoever has rows at several sites is protected by all of these together: by "
                f"epsilon {self._at_most(2, delta):.4g} at delta {delta:g} at most if at two"
                f"{at_all}. Nobody has checked who is at several.",
            )
        return said


def combine(
    releases: Sequence[Measured | str | Path],
    *,
    engine: Engine | str = "particles",
    seed: int = 0,
    progress: Progress = silent,
) -> CombinedTable:
    """Fits one model to what several sites have measured, who share no row with each other.

    The counts of all sites are added up, and so are the variances of their noise: K sites that
    spend epsilon each give the errors that one table of all rows would have with a K-th of the
    mu^2 (about epsilon / sqrt(K)). ``tests/benchmarks sites`` compares. It is post-processing:
    free, and no release has to be trusted more than its site trusts it.

    Args:
        releases: What ``measure`` gave, or the paths of its files.
        engine: What makes rows of the answers, as ``fit_table`` takes it.
        seed: Of an engine that is named and of the rows.
        progress: Told of the steps.

    Raises:
        ValueError: If releases cannot be put together: other columns or declarations, another
            adjacency, the same site twice, or no table that all have measured; and for files
            that are no releases.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, measure
    >>> table = pd.DataFrame({"ill": [True, False] * 500})
    >>> release = measure(table, {"ill": Boolean()}, epsilon=1.0, site="North")
    >>> combine([release, release])
    Traceback (most recent call last):
    ValueError: The site 'North' is there twice. The same people must not be counted twice: leave
    out one release, or, if two sites have one name, let one measure under another.
    """
    if isinstance(releases, str | Path | Measured) or not (releases := [*releases]):
        raise ValueError("combine takes a list of releases, or of paths of their files.")
    if wrong := [type(e).__name__ for e in releases if not isinstance(e, Measured | str | Path)]:
        raise ValueError(f"combine takes what measure gave, or its files' paths, got {wrong[0]}.")
    measured = [e if isinstance(e, Measured) else Measured.load(e) for e in releases]
    _require_alike(measured)
    first = measured[0]
    found = pooled(first.domain, [each.answers for each in measured])
    sites = tuple(Site.of(each) for each in measured)
    shared = {
        name: dtype
        for name, dtype in first.dtypes.items()
        if all(each.dtypes.get(name) == dtype for each in measured)
    }
    fitted, own = modelled(
        first.description,
        _worst(sites),
        found.measurements,
        engine,
        seed,
        progress,
        dtypes=shared,
    )
    return CombinedTable(
        fitted=fitted,
        engine=own,
        seed=seed,
        sites=sites,
        warnings=(*_on_tables(found), *_on_noise(sites, found), *fitted.warnings(_worst(sites))),
        date=date.today().isoformat(),
    )


_ALIKE: Sequence[tuple[Callable[[Measured], Any], str]] = (
    (
        lambda each: each.ledger.adjacency.value,
        "{first} has measured under {ours!r} and {other} under {theirs!r}: what is promised to a "
        "person would be two things. Let all sites measure with the same adjacency.",
    ),
    (
        # The order of rows, but for what the column of people is called.
        lambda each: each.visits and {**order_facts(each.visits), "column": None},
        "{first} has told rows of the row before by {ours}, and {other} by {theirs}. Let both "
        "measure with the same People.",
    ),
    (
        lambda each: "people (weighed=True)" if each.ledger.weighed else "rows",
        "{first} has counted {ours} and {other} {theirs}: they cannot be added up. Let all sites "
        "measure with the same People.",
    ),
    (
        lambda each: each.ledger.weights and each.ledger.weights[1:],
        "{first} has weighed rows by weight_range={ours} and {other} by {theirs}: what they have "
        "counted cannot be added up. Let both measure with the same weight_range.",
    ),
)
"""What must be the same of releases, and what is said if it is not."""


def _require_alike(measured: Sequence[Measured]) -> None:
    """Raises ``ValueError`` for releases that cannot be put together."""
    first = measured[0]
    for other in measured[1:]:
        for fact, said in _ALIKE:
            ours, theirs = fact(first), fact(other)
            if ours != theirs:
                names = {"first": repr(first.site), "other": repr(other.site)}
                raise ValueError(said.format(**names, ours=ours, theirs=theirs))
        _require_same_columns(first, other)
    for digest, times in Counter(each.digest for each in measured).items():
        named = [each.site for each in measured if each.digest == digest]
        if times > 1 and len(set(named)) > 1:
            raise ValueError(
                f"One and the same release is there as {named!r}: leave out all but one."
            )
    for name, times in Counter(each.site for each in measured).items():
        if times > 1:
            raise ValueError(
                f"The site {name!r} is there twice. The same people must not be counted twice: "
                "leave out one release, or, if two sites have one name, let one measure under "
                "another."
            )


def _require_same_columns(first: Measured, other: Measured) -> None:
    ours, theirs = (
        {column.name: column for column in each.schema.attributes} for each in (first, other)
    )
    named = f"{first.site!r} and {other.site!r}"
    remedy = "Let both measure with one and the same domain file, and the same num_bins."
    if unshared := [name for name in {**ours, **theirs} if name not in ours or name not in theirs]:
        said = f"other columns: {unshared!r} are not in both"
        raise ValueError(f"{named} have {said}. {remedy}")
    unlike = [name for name in ours if ours[name] != theirs[name]]
    if unlike:
        raise ValueError(f"{named} have declared other values of {unlike!r}. {remedy}")


def _worst(sites: Sequence[Site]) -> PrivacyLedger:
    """The ledger that has spent most: nobody in one table alone has less than its guarantee."""
    return max((site.ledger for site in sites), key=lambda ledger: ledger.spent())


def _on_tables(found: Pooled) -> list[str]:
    """A sentence on tables that could not be added up, if there are any."""
    asked = dict.fromkeys(each.describe().removeprefix("marginal of ") for each in found.left_out)
    said = (
        f"Not all sites have measured {listed([*asked], 4)}. What only some have measured "
        "cannot be added up and was left out. Let all sites use the same method and epsilon; "
        "where pairs are few and rows about as many, privpgd asks everybody for the same."
    )
    return [said] if asked else []


def _on_noise(sites: Sequence[Site], found: Pooled) -> list[str]:
    """A sentence on sites that bring much noise and few rows, if there are any."""
    far = 2.0  # times the noise of a row
    rows = np.array([site.rows.value for site in sites])
    order = np.argsort(np.array(found.noise) / rows)
    held = rows[order].cumsum()
    noise = np.sqrt(np.array(found.noise)[order].cumsum()) / held
    best = int(noise.argmin())
    less = noise[-1] / noise[best] if noise[best] else 1.0
    others = listed([repr(sites[at].name) for at in order[best + 1 :]], 4)
    said = (
        f"Most of the noise is that of {others}, with {share(1 - held[best] / held[-1])} of the "
        f"rows: without them noise is {less:.1f} times smaller beside the rows. To combine the "
        "other sites alone costs nothing."
    )
    return [said] if less > far else []
