"""PrivMRF: a graph of dependences bounds the model; tables inside it are added round by round."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, one_step, silent
from sdv_privpgd.estimate.noisy_tables import NoisyTable, averaged, estimate_total
from sdv_privpgd.methods.adaptive import count_rows, expected_noise, model_errors
from sdv_privpgd.methods.k_way import Independent
from sdv_privpgd.methods.method import EngineMethod, Importance, clique_weights, measure_tables
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import DependenceQuery, Measurement
from sdv_privpgd.synthesize.engine import Engine
from sdv_privpgd.synthesize.graphical import JunctionTree


def measure_dependences(
    curator: Curator, pairs: Sequence[Clique], mu_squared: Fraction, progress: Progress
) -> list[Measurement]:
    """The noisy dependence of each pair; all of them cost ``mu_squared`` together."""
    asked = list(map(DependenceQuery, pairs))
    return curator.measure(asked, mu_squared, what="dependence of all pairs", progress=progress)


def dependences(measurements: Iterable[Measurement]) -> dict[Clique, float]:
    """The noisy dependence of each pair; of several answers their best average. Public."""
    found: dict[Clique, list[NoisyTable]] = {}
    for measured in measurements:
        if isinstance(measured.query, DependenceQuery):
            one = NoisyTable(measured.answer.astype(np.float64), measured.stddev**2)
            found.setdefault(measured.query.clique, []).append(one)
    return {pair: float(averaged(each).counts[0]) for pair, each in found.items()}


def dependence_graph(
    domain: Domain, dependence: Mapping[Clique, float], max_cells: float
) -> JunctionTree:
    """The junction tree of a chordal graph of much dependence.

    Cai et al. 2021 (PrivMRF): from no edge on, the pair is added that raises most the sum of the
    dependence of all joined pairs, those included that make the graph chordal again, less 1e-8 for
    each cell of the model. It ends where no pair raises it, or the model would be too large. Ours
    tries the pairs with most dependence in each step, twelve of 14 attributes and fewer of more, in
    place of all, and none again that made the model too large.

    Args:
        domain: Of the codes.
        dependence: By pair, as total variation distances; noise may have made it negative.
        max_cells: The most cells of the model.
    """
    # Pairs that are tried in one step, times attributes: a trial takes longer the more there are.
    most_trials = 168
    penalty = 1e-8  # what a cell of the model costs, in units of total variation distance
    tree, best = JunctionTree.of(domain, []), 0.0
    waiting = sorted(dependence, key=lambda pair: -dependence[pair])
    values = {frozenset(pair): value for pair, value in dependence.items()}
    number = max(most_trials // len(domain), 1)
    while True:
        tried: list[tuple[float, JunctionTree]] = []
        joined, kept = edges_of(tree), []
        for place, pair in enumerate(waiting):
            if len(tried) == number:
                kept += waiting[place:]
                break
            if frozenset(pair) in joined:
                continue
            wider = JunctionTree.of(domain, [*tree.cliques, pair])
            if wider.num_cells <= max_cells:
                known = sum(values.get(edge, 0.0) for edge in edges_of(wider))
                tried.append((known - penalty * wider.num_cells, wider))
                kept.append(pair)
        waiting = kept
        score, wider = max(tried, key=lambda each: each[0], default=(best, tree))
        if score <= best:
            return tree
        tree, best = wider, score


def edges_of(tree: JunctionTree) -> set[frozenset[str]]:
    """The pairs of attributes that share a clique."""
    return {frozenset(pair) for clique in tree.cliques for pair in combinations(clique, 2)}


def first_tables(
    domain: Domain,
    cliques: Iterable[Clique],
    dependence: Mapping[Clique, float],
    is_useful: Callable[[Clique], bool],
) -> list[Clique]:
    """As many tables as there are attributes at most; each attribute is in one of them.

    Cai et al. 2021 (PrivMRF): in every clique attributes are put in order, each with parents among
    those before it. The next one is that whose best parents score highest. Every attribute's best
    table over all cliques is taken, then the best of the others; an attribute without any has its
    1-way marginal. The score of parents is the sum of the attribute's dependences on them, divided
    by the square root of their number and of their dependences on each other.

    Args:
        domain: Of the codes.
        cliques: In which attributes of a table must lie.
        dependence: By pair, as total variation distances.
        is_useful: Whether a table is more than noise.
    """
    known = {frozenset(pair): max(value, 0.0) for pair, value in dependence.items()}
    scored: dict[str, dict[Clique, float]] = {name: {} for name in domain.attributes}
    for clique in cliques:
        for child, table, score in _network(domain, clique, known, is_useful):
            scored[child][table] = max(score, scored[child].get(table, 0.0))
    best = {max(own, key=lambda table: own[table]): None for own in scored.values() if own}
    others = {table: score for own in scored.values() for table, score in own.items()}
    taken = _with_columns(domain, best)
    for table in sorted(others, key=lambda table: -others[table]):
        if len(taken) < len(domain):
            taken = _with_columns(domain, [*taken, table])
    return taken


def _with_columns(domain: Domain, tables: Iterable[Clique]) -> list[Clique]:
    """The tables that lie in no other one, and the columns that are in none."""
    distinct = dict.fromkeys(tables)
    held = [own for own in distinct if not any(set(own) < set(other) for other in distinct)]
    covered = {name for table in held for name in table}
    return held + [(name,) for name in domain.attributes if name not in covered]


def _network(
    domain: Domain,
    clique: Clique,
    known: Mapping[frozenset[str], float],
    is_useful: Callable[[Clique], bool],
) -> list[tuple[str, Clique, float]]:
    """Attributes of a clique after the first, each with its table and the table's score."""

    def score(child: str, parents: Clique) -> float:
        toward = sum(known.get(frozenset((child, parent)), 0.0) for parent in parents)
        within = sum(known.get(frozenset(pair), 0.0) for pair in combinations(parents, 2))
        return toward / math.sqrt(len(parents) + within)

    def table(child: str, parents: Clique) -> Clique:
        return tuple(name for name in domain.attributes if name == child or name in parents)

    def grown(child: str) -> tuple[float, Clique]:
        """The best parents that are found one by one, and their score."""
        parents, best = (), 0.0
        while True:
            wider = [
                (score(child, (*parents, name)), (*parents, name))
                for name in placed
                if name not in parents and is_useful(table(child, (*parents, name)))
            ]
            found, more = max(wider, default=(0.0, ()))
            if found <= best:
                return best, parents
            best, parents = found, more

    def total(name: str) -> float:
        return sum(known.get(frozenset((name, other)), 0.0) for other in clique if other != name)

    placed = [max(clique, key=total)] if clique else []
    left = [name for name in clique if name not in placed]
    found = []
    while left:
        best, child, parents = max(
            (score, name, parents) for name in left for score, parents in [grown(name)]
        )
        if parents:
            found.append((child, table(child, parents), best))
        placed.append(child)
        left.remove(child)
    return found


@dataclass(frozen=True, kw_only=True)
class PrivMRF(EngineMethod):
    """Tables inside the cliques of a dependence graph: the best at first, then those fitted worst.

    Cai et al. 2021 (PrivMRF). A tenth of the budget pays for the dependence of all pairs, of which
    a chordal graph is made that is small enough to be a model. Tables inside its cliques are useful
    if their cells are few beside the noise. As many of them as there are attributes are measured
    first: those that tell most of each attribute by the dependences. Then, in at most eight rounds,
    candidates are drawn, and of these the tables that the model fits worst are measured; there are
    4 later tables for 5 attributes. Choices take a tenth of the budget, and all tables have the
    same noise. Ours differs in five ways:

    - Budgets are in mu^2, and both kinds of neighbors are possible. A pair's dependence changes by
      4 / 2n with a record that comes or goes, and by 6 / 2n with one that moves; the number of
      records, which the authors' code counts with too little noise, is charged like all else.
    - Later tables are chosen by the exponential mechanism, where theirs publishes the noisy scores
      of all candidates, with much more noise. So candidates that scored low are not drawn less
      often afterwards.
    - A score is the error of the model minus the noise that measuring adds, as AIM's is.
    - The graph's model has 80 MiB at most; theirs may have 400, 80 for a clique, on a GPU. What is
      fitted are the measured tables alone, mostly a much smaller model. There are no hierarchies
      of values.
    - The graph is searched as ``dependence_graph`` says, and what their code draws at random
      to fill up the first tables is taken by its score.

    When to use it: with Private-PGM, where few attributes depend on each other, and tables of three
    and more matter. Wide attributes are in no useful pair at a small epsilon.

    Attributes:
        max_megabytes: The largest model that the graph may make necessary, in MiB of float64.
        usefulness: A table is useful if its expected noise, in L1 norm, is at most the number of
            rows divided by this (theta; 6 is the paper's).
        max_attributes: Of a candidate table.
        candidates: Drawn in each round; 400 is the paper's.
        importance: How many times as much as others the tables with an attribute count.
        seed: Of the draw of candidates. No private noise depends on it.
    """

    engine: Engine | str = "pgm"
    max_megabytes: float = 80.0
    usefulness: float = 6.0
    max_attributes: int = 6
    candidates: int = 400
    importance: Importance = field(default_factory=dict)
    seed: int = 0

    asks_pairs = True
    counts = (
        "how much each pair of columns depends, and contingency tables that were chosen by "
        "that and privately, one after another"
    )
    citation = (
        "Cai, K., Lei, X., Wei, J. & Xiao, X. (2021). Data synthesis via differentially private "
        "Markov random fields. PVLDB 14(11), 2190–2202."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, check_positive, "usefulness")
        check_fields(self, check_integer, "max_attributes", "candidates")

    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """The dependences, and the first and later tables; spends all that is left."""
        later_tables = Fraction(4, 5)  # later tables for each attribute
        # Shares of mu^2 for the dependences of all pairs, and for the choices of later tables.
        for_graph, for_choices = Fraction(1, 10), Fraction(1, 10)
        domain, budget = curator.domain, curator.ledger.remaining
        if len(domain) < 2:
            return Independent().measure(curator, progress=progress)
        measured = count_rows(curator)
        pairs = [pair for pair in domain.cliques(2) if min(domain.shape(pair)) > 1]
        measured += measure_dependences(curator, pairs, for_graph * budget, progress)
        total = estimate_total(domain, curator.measurements).value
        known = dependences(curator.measurements)
        weights = clique_weights(known, self.importance)
        dependence = {pair: weights[pair] * known[pair] / (2 * total) for pair in known}
        with one_step(progress, "compare"):
            graph = dependence_graph(domain, dependence, self.max_megabytes * 2**17)
        number = int(later_tables * len(domain))
        choices = for_choices * budget
        step = (curator.ledger.remaining - choices) / (len(domain) + number)

        def is_useful(clique: Clique) -> bool:
            noise = expected_noise(curator.ledger, domain, clique, step)
            return noise <= total / self.usefulness

        first = first_tables(domain, graph.cliques, dependence, is_useful)
        pool = _unmeasured(self._useful(graph.cliques, is_useful), first)
        share = len(first) * step if pool else None
        measured += measure_tables(
            curator, first, "first marginals", share, progress, are_chosen=True
        )
        if pool:
            measured += self._later(curator, pool, number, choices, progress)
        return measured

    def _useful(
        self, cliques: Sequence[Clique], is_useful: Callable[[Clique], bool]
    ) -> dict[Clique, float]:
        """The useful tables inside cliques, each with its weight when candidates are drawn."""
        found: dict[Clique, float] = {}
        for clique in cliques:
            own: list[Clique] = [()]
            inside: list[Clique] = []
            # A table inside a useful one is useful: each grows from one with an attribute less.
            for _ in range(min(self.max_attributes, len(clique))):
                own = [
                    (*table, name)
                    for table in own
                    for name in clique[clique.index(table[-1]) + 1 if table else 0 :]
                    if is_useful((*table, name))
                ]
                inside += own
            for table in inside:
                found[table] = found.get(table, 0.0) + len(clique) ** 2 / len(inside)
        return found

    def _later(
        self,
        curator: Curator,
        pool: dict[Clique, float],
        number: int,
        choices: Fraction,
        progress: Progress,
    ) -> list[Measurement]:
        """Rounds of choosing from a pool, and measuring; spends all that is left."""
        most_rounds = 8
        domain, rng = curator.domain, np.random.default_rng(self.seed)
        rounds = max(min(len(domain) // 2, most_rounds), 1)
        measured: list[Measurement] = []
        model = None
        for turn in progress(range(rounds), "select"):
            model = self.fit(domain, curator.measurements, warm_start=model)
            left = number - len(measured)
            this_time = -(-left // (rounds - turn))
            step = (curator.ledger.remaining - choices * left / number) / max(left, 1)
            total = estimate_total(domain, curator.measurements).value
            biases = {
                clique: expected_noise(curator.ledger, domain, clique, step)
                for clique in _drawn(pool, self.candidates, rng)
            }
            scores = model_errors(domain, model, total, biases, self.importance)
            chosen: list[Clique] = []
            while len(chosen) < this_time and scores:
                at = curator.select(scores, choices / number, what="worst fitted table")
                chosen.append(scores[at].clique)
                pool = _unmeasured(pool, chosen)
                scores = [score for score in scores if score.clique in pool]
            is_last = turn == rounds - 1 or not pool
            share = None if is_last else len(chosen) * step
            measured += measure_tables(curator, chosen, "later marginals", share, are_chosen=True)
            if is_last:
                break
        return measured


def _unmeasured(pool: dict[Clique, float], measured: Sequence[Clique]) -> dict[Clique, float]:
    """The tables of a pool that lie in no measured table, with their weights."""
    return {
        clique: weight
        for clique, weight in pool.items()
        if not any(set(clique) <= set(known) for known in measured)
    }


def _drawn(pool: dict[Clique, float], number: int, rng: np.random.Generator) -> list[Clique]:
    """So many tables at most, drawn by their weights without replacement."""
    cliques = list(pool)
    if len(cliques) <= number:
        return cliques
    shares = np.array(list(pool.values()))
    places = rng.choice(len(cliques), number, replace=False, p=shares / shares.sum())
    return [cliques[place] for place in sorted(places.tolist())]


METHODS = {"privmrf": PrivMRF}
