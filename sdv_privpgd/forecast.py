"""Forecasts of how long the stages of a fit take, made from public facts alone.

The seconds are those of two idle cores. They need not be exact: a progress bar uses their
proportions, and corrects the time left by the speed of the work so far.
"""

import math
import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.estimate.denoising import FINER
from sdv_privpgd.progress import Stage
from sdv_privpgd.select.adaptive import Adaptive
from sdv_privpgd.select.aim import AIM
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.coarse_pairs import EACH
from sdv_privpgd.select.fixed import AllKWay
from sdv_privpgd.select.half_spaces import HalfSpaces
from sdv_privpgd.select.mean_embedding import MeanEmbedding
from sdv_privpgd.select.mst import MST
from sdv_privpgd.select.mwem import MWEM
from sdv_privpgd.select.private_gradients import PrivateGradients
from sdv_privpgd.select.privmrf import PrivMRF
from sdv_privpgd.select.privsyn import PrivSyn
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.select.triples import GROUPS, MOST
from sdv_privpgd.synthesize.engine import Engine, takes_groups
from sdv_privpgd.synthesize.gum import GUM
from sdv_privpgd.synthesize.particles.particles import default_number
from sdv_privpgd.synthesize.pgm import PrivatePGM

if TYPE_CHECKING:
    from sdv_privpgd.columns.facts import ColumnFacts

USUAL_ROWS = 50_000
"""The number of rows that is assumed where it is private."""

_CATEGORIES = 12

_COMPILE = 15.0
_LOOK, _ENCODE, _DATE = 1e-7, 1.5e-7, 1e-6  # seconds a cell; dates are usually text
_COUNT, _NOISE = 4e-9, 5e-7  # seconds a row of a table; seconds a cell
_PAIR, _PRODUCT = 1e-3, 1e-7  # seconds for a pair's denoising; for each of its a * b * (a + b)
_PROJECT = 1e-5  # seconds a cell, on one core
_DESCEND = 1.7e-8  # seconds a particle of a table and epoch, on one core
_START = 0.5
"""Seconds before a descent's first step."""
_FINISH, _MOST_READ = 4.5e-9, 20_000
"""Seconds for a residual that a particle reads in a sweep. Of more residuals than
``_MOST_READ``, fewer lead to a move, and they are read on all cores."""
_GROUPED = 6e-4  # seconds a triple, before the first sweep
_LOTS, _STEP, _CELL = 8, 6e-5, 1e-8  # lots of 50 steps; seconds a clique; a cell of a model
_FEATURE = 6e-10  # seconds a cell of the table, for each random feature
_GRADIENT, _SAMPLED = 2e-6, 4e-9  # seconds a code of a row in a sample; a row that is not in it
_GENERATED, _COLUMN = 1.1e-7, 40  # seconds a step's input and code; codes that a column counts as
_UPDATE = 2.5e-8  # seconds a row of a table and sweep of GUM
_CANDIDATES, _SEARCH = 400, 1e-3  # of a round of PrivMRF; seconds of its graph, by columns^2
_ROUND = 0.35  # seconds a round of AIM, MWEM or PrivMRF, for each MiB its model may have at the end

_WARM = 0.5  # of a fit: what one takes that goes on from the last round's model
_LOTS_OF_ROWS, _CHILD, _LOOKED = (
    20,
    2e-8,
    8e-9,
)  # generations a row; seconds a child; one of its looks
_RELAXED_STEPS, _RELAXED_STEP = 500, 2e-3  # steps of a descent; seconds of each
_ANNEALED, _PLANE = 5.0, 5e-8  # seconds of a round's fit; of a row beside a cut
_MULTIPLY, _SOFTMAX = 8e-11, 1e-8  # seconds of a component's cell; of a code's share


def compiling() -> list[Stage]:
    """The stages of the first fit on a machine, before any work on the table.

    >>> [stage.name for stage in compiling()]
    ['compile']
    """
    return [Stage("compile", _COMPILE)]


def usual_size(facts: "ColumnFacts", num_bins: int) -> int:
    """The number of codes that is assumed of a column whose domain is not declared.

    >>> from sdv_privpgd.columns.facts import CategoryFacts
    >>> usual_size(CategoryFacts(), num_bins=32)
    12
    """
    # Imported here: facts need pandas, and codes alone are fitted without it.
    from sdv_privpgd.columns.facts import DateFacts, NumberFacts

    if isinstance(facts, NumberFacts | DateFacts):
        return num_bins if facts.num_bins is None else facts.num_bins
    return _CATEGORIES


def looking(num_rows: int, num_columns: int, num_short: int = 0) -> list[Stage]:
    """The stages of discovery, which reads each cell twice and counts single columns.

    Of columns with a ``short`` range each cell is read once.

    >>> [stage.name for stage in looking(num_rows=50_000, num_columns=10)]
    ['look', 'encode']
    """
    cells = num_rows * num_columns
    looks = [Stage("look", 0.05 + 2 * _LOOK * cells)] if num_columns else []
    encoded = num_columns + num_short
    return [*looks, *([Stage("encode", _ENCODE * encoded * num_rows)] if encoded else [])]


def encoding(num_rows: int, sdtypes: Sequence[str]) -> list[Stage]:
    """The stage in which all modelled columns are encoded.

    >>> [stage.name for stage in encoding(50_000, ["numerical", "datetime"])]
    ['encode']
    """
    each = [_DATE if sdtype == "datetime" else _ENCODE for sdtype in sdtypes]
    return [Stage("encode", 0.02 + num_rows * sum(each))]


def asking(
    domain: Domain, num_rows: float, strategy: Strategy, engine: Engine | None = None
) -> list[Stage]:
    """The stages in which a strategy has its queries answered.

    ``engine`` fits a model between the rounds of those that have rounds. All pairs ask for no
    triples where it takes no groups.

    >>> [stage.name for stage in asking(Domain(("a", "b"), (4, 4)), 50_000, MST())]
    ['measure', 'select', 'measure']
    """
    if not len(domain):
        return []
    ones, pairs = domain.cliques(1), domain.cliques(min(2, len(domain)))
    alone, together = _counting(domain, ones, num_rows), _counting(domain, pairs, num_rows)
    if isinstance(strategy, MST):
        tree = together * len(domain) / max(len(pairs), 1)
        return [Stage("measure", alone), Stage("select", together), Stage("measure", tree)]
    if isinstance(strategy, AIM):
        rounds = strategy.rounds_per_attribute * len(domain) / 4  # most end early
        seconds = together + rounds * _ROUND * _megabytes(strategy)
        return [Stage("measure", alone), Stage("select", seconds)]
    if isinstance(strategy, MWEM):
        rounds = strategy.rounds or len(domain)
        return [Stage("select", together + rounds * _ROUND * _megabytes(strategy))]
    if isinstance(strategy, PrivMRF):
        first = together * len(domain) / max(len(pairs), 1)
        later = _CANDIDATES * _COUNT * num_rows + _ROUND * _megabytes(strategy)
        rounds = min(len(domain) // 2, 8)
        return [
            Stage("measure", together),
            Stage("compare", _SEARCH * len(domain) ** 2),
            Stage("measure", first),
            Stage("select", rounds * later),
        ]
    if isinstance(strategy, PrivSyn):
        chosen = together * len(domain) / max(len(pairs), 1)
        return [Stage("measure", seconds) for seconds in (together, alone, chosen)]
    if isinstance(strategy, Adaptive):
        cliques = cliques_of(domain, strategy)
        fits = fitting(domain, num_rows, cliques[: len(cliques) // 2], engine) if engine else []
        rounds = len(cliques) / strategy.marginals
        seconds = _WARM * rounds * sum(stage.seconds for stage in fits)
        return [Stage("select", together + seconds)]
    if isinstance(strategy, HalfSpaces):
        fit = _ANNEALED * strategy.rounds
        read = _PLANE * num_rows * strategy.directions
        return [Stage("measure", alone), Stage("select", fit + read)]
    if isinstance(strategy, AllPairs):
        has_triples = engine is None or takes_groups(engine)
        return _all_pairs(domain, pairs, num_rows, strategy, has_triples=has_triples)
    if isinstance(strategy, MeanEmbedding):
        tables = _counting(domain, cliques_of(domain, strategy), num_rows)
        seconds = _FEATURE * strategy.num_features * num_rows * len(domain)
        embedded = [Stage("measure", seconds)] if len(domain) > 1 else []
        return [Stage("measure", tables), *embedded]
    if isinstance(strategy, PrivateGradients):
        rows = min(strategy.batch, num_rows) * _GRADIENT * sum(domain.sizes)
        steps = Stage("train", strategy.steps * (rows + _SAMPLED * num_rows))
        return [Stage("measure", alone), steps]
    degree = strategy.degree if isinstance(strategy, AllKWay) else 1
    cliques = domain.cliques(min(degree, len(domain)))
    return [Stage("measure", _counting(domain, cliques, num_rows))]


def fitting(
    domain: Domain,
    num_rows: float,
    cliques: Sequence[Clique],
    engine: Engine,
    coarse: Sequence[Clique] = (),
) -> list[Stage]:
    """The stages in which an engine fits a model to tables of these cliques.

    ``coarse`` are those that are measured over groups.

    >>> [stage.name for stage in fitting(Domain(("a",), (4,)), 50_000, [("a",)], PrivatePGM())]
    ['fit']
    """
    if not cliques:
        return []
    if isinstance(engine, PrivatePGM):
        cells = engine.megabytes(domain, cliques) * 2**17
        step = _STEP * len(cliques) + _CELL * cells
        return [Stage("fit", 50 * _LOTS * step)]
    if isinstance(engine, GUM):
        number = engine.num_rows or default_number(float(num_rows), len(cliques))
        return [Stage("fit", 0.1 + _UPDATE * number * len(cliques) * engine.sweeps)]
    # Imported here, because the fits above need no torch.
    from sdv_privpgd.synthesize.annealed import AnnealedProjection
    from sdv_privpgd.synthesize.generator import GeneratorNetwork
    from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

    if getattr(engine, "fits_gradients", False):
        return [Stage("fit", 1e-6 * min(num_rows, 100_000.0) * sum(domain.sizes))]
    if isinstance(engine, ParticleGradientDescent):
        return _particles(domain, num_rows, cliques, engine, coarse)
    if isinstance(engine, AnnealedProjection):
        return [Stage("fit", _ANNEALED)]
    if isinstance(engine, GeneratorNetwork):
        cells = sum(domain.sizes) + _COLUMN * len(domain)
        return [Stage("fit", _GENERATED * engine.steps * engine.num_inputs * cells)]
    return _relaxed(domain, cliques, engine)


def _relaxed(domain: Domain, cliques: Sequence[Clique], engine: Engine) -> list[Stage]:
    """The fit of an engine with components or of the genetic one; none of an unknown engine."""
    from sdv_privpgd.synthesize.gem import GenerativeNetwork
    from sdv_privpgd.synthesize.private_gsd import PrivateGSD
    from sdv_privpgd.synthesize.rap import RelaxedProjection

    codes, cells = sum(domain.sizes), sum(domain.size(clique) for clique in cliques)
    if isinstance(engine, PrivateGSD):
        looks = sum(len(clique) ** 2 for clique in cliques) / len(domain)
        children = engine.mutations + engine.crossovers
        generations = min(engine.generations, _LOTS_OF_ROWS * engine.num_rows)
        return [Stage("fit", 0.1 + generations * children * (_CHILD + _LOOKED * looks))]
    if not isinstance(engine, RelaxedProjection | GenerativeNetwork):
        return []
    step = _RELAXED_STEP + engine.num_components * (_MULTIPLY * cells + _SOFTMAX * codes)
    if isinstance(engine, GenerativeNetwork):
        inputs, products = engine.latent, 0
        for width in engine.widths:
            products, inputs = products + inputs * width, inputs + width
        step += engine.num_components * _MULTIPLY * (products + inputs * codes)
    return [Stage("fit", min(engine.steps, _RELAXED_STEPS) * step)]


def cliques_of(domain: Domain, strategy: Strategy) -> Sequence[Clique]:
    """The cliques of the tables that a strategy is likely to measure, but for tables over groups.

    >>> cliques_of(Domain(("a", "b", "c"), (4, 4, 4)), AllPairs())
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    ones, pairs = domain.cliques(1), domain.cliques(min(2, len(domain)))
    if isinstance(strategy, AllPairs):
        number = len(pairs)
        if coarse_cliques_of(domain, strategy):
            number = min(EACH * len(domain), strategy.most_pairs)
        return [pairs[place * len(pairs) // number] for place in range(number)]
    if isinstance(strategy, AllKWay):
        return domain.cliques(min(strategy.degree, len(domain)))
    if isinstance(strategy, Adaptive):
        rounds = strategy.rounds or len(domain)
        return pairs[: rounds * strategy.marginals]
    axes = domain.attributes
    if isinstance(strategy, MST | AIM | MWEM | PrivSyn | PrivMRF):
        return [*ones, *pairwise(axes)]
    if isinstance(strategy, MeanEmbedding) and strategy.label in axes and len(axes) > 1:
        return [(name, strategy.label) for name in axes if name != strategy.label]
    return ones


def coarse_cliques_of(domain: Domain, strategy: Strategy) -> Sequence[Clique]:
    """The pairs that a strategy measures over groups of codes.

    >>> coarse_cliques_of(Domain(("a", "b", "c"), (4, 4, 4)), AllPairs(most_pairs=1))
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    """
    pairs = domain.cliques(2)
    is_many = isinstance(strategy, AllPairs) and len(pairs) > strategy.most_pairs
    return pairs if is_many else ()


def _all_pairs(
    domain: Domain,
    pairs: Sequence[Clique],
    num_rows: float,
    strategy: AllPairs,
    *,
    has_triples: bool,
) -> list[Stage]:
    once, compared = _counting(domain, pairs, num_rows), Stage("compare", _comparing(domain))
    stages = [Stage("measure", once)]
    if coarse_cliques_of(domain, strategy):
        coarse = 0.01 + len(pairs) * (2 * _COUNT * num_rows + _NOISE * GROUPS**2)
        whole, pairs = once, cliques_of(domain, strategy)
        once = _counting(domain, pairs, num_rows)
        stages = [Stage("measure", coarse), compared, Stage("measure", once)]
        compared = Stage("compare", compared.seconds * once / whole)
    if len(pairs) * (1 / strategy.first_share - 1) >= 1:
        stages += [compared, Stage("measure again", once / 4)]
    varied = sum(size > 1 for size in domain.sizes)
    if has_triples and strategy.triples and varied > 2:
        triples = min(math.comb(varied, 3), MOST)
        if math.comb(varied, 3) > MOST:
            stages.append(compared)
        each = 2 * _COUNT * num_rows + _NOISE * GROUPS**3
        stages.append(Stage("measure", 0.01 + triples * each))
    return stages


def _particles(
    domain: Domain,
    num_rows: float,
    cliques: Sequence[Clique],
    engine: Any,
    coarse: Sequence[Clique],
) -> list[Stage]:
    cores = min(os.cpu_count() or 1, 8)
    number = engine.num_particles or default_number(float(num_rows), len(cliques))
    cells = sum(domain.size(clique) for clique in cliques)
    steps = len(cliques) * number * engine.num_epochs * engine.num_slices
    stages = [
        Stage("denoise", _comparing(domain)) if engine.targets == "denoised" else None,
        Stage("project", 0.1 + _PROJECT * cells / cores),
        Stage("descend", _START + _DESCEND * steps / cores),
        _settling(domain, number, cliques, engine, coarse) if engine.finish else None,
    ]
    return [stage for stage in stages if stage is not None]


def _settling(
    domain: Domain,
    number: int,
    cliques: Sequence[Clique],
    engine: Any,
    coarse: Sequence[Clique],
) -> Stage:
    """The finish: in each sweep a particle reads a row of each of its tables for each attribute."""
    triples = min(math.comb(len(domain), 3), MOST)
    known = set(cliques)
    completed = sum(len(clique) == 2 and clique not in known for clique in coarse)
    read = 3 * triples * (GROUPS + 8) + 2 * completed * (FINER + 8)
    read += sum(size + 8 for clique in cliques for size in domain.shape(clique))
    sweep = _FINISH * number * min(read, _MOST_READ)
    return Stage("finish", 0.2 + _GROUPED * triples + sweep * engine.finish.sweeps)


def _counting(domain: Domain, cliques: Sequence[Clique], num_rows: float) -> float:
    cells = sum(domain.size(clique) for clique in cliques)
    return 0.01 + _COUNT * num_rows * len(cliques) + _NOISE * cells


def _comparing(domain: Domain) -> float:
    """The seconds it takes to tell signal from noise in all pairs."""
    sizes = np.array(domain.sizes, dtype=np.float64)
    products = np.triu(np.outer(sizes, sizes) * np.add.outer(sizes, sizes), 1).sum()
    return _PAIR * math.comb(len(domain), 2) + _PRODUCT * float(products)


def _megabytes(strategy: AIM | MWEM | PrivMRF) -> float:
    """The size that determines the seconds: smaller models take as long as one of half a MiB."""
    return max(strategy.max_megabytes, 0.5)
