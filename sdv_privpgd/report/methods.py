"""A short text for the methods section of a paper, of the facts of a fit. Public."""

import math
from collections.abc import Callable
from importlib.metadata import version

from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.dp_sgd import DPCTGAN, DPDiffusion
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.report.assumed import CONFIDENT, About
from sdv_privpgd.report.page import Items, Section, Text
from sdv_privpgd.select.adaptive import Adaptive
from sdv_privpgd.select.aim import AIM
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.fixed import AllKWay
from sdv_privpgd.select.half_spaces import HalfSpaces
from sdv_privpgd.select.independent import Independent
from sdv_privpgd.select.mean_embedding import MeanEmbedding
from sdv_privpgd.select.mst import MST
from sdv_privpgd.select.mwem import MWEM
from sdv_privpgd.select.privmrf import PrivMRF
from sdv_privpgd.select.privsyn import PrivSyn
from sdv_privpgd.synthesize.gum import GUM
from sdv_privpgd.synthesize.pgm import PrivatePGM
from sdv_privpgd.words import in_rows

_PRIVPGD = (
    "Donhauser, K., Abad, J., Hulkund, N. & Yang, F. (2024). Privacy-preserving data release "
    "leveraging optimal transport and particle gradient descent. arXiv:2401.17823."
)
_GAUSSIAN = (
    "Dong, J., Roth, A. & Su, W. J. (2022). Gaussian differential privacy. Journal of the Royal "
    "Statistical Society B 84(1), 3–37."
)
_DEFINITION = (
    "Dwork, C., McSherry, F., Nissim, K. & Smith, A. (2006). Calibrating noise to sensitivity in "
    "private data analysis. Theory of Cryptography, 265–284."
)
_MST = (
    "McKenna, R., Miklau, G. & Sheldon, D. (2021). Winning the NIST contest: a scalable and "
    "general approach to differentially private synthetic data. Journal of Privacy and "
    "Confidentiality 11(3)."
)
_AIM = (
    "McKenna, R., Mullins, B., Sheldon, D. & Miklau, G. (2022). AIM: an adaptive and iterative "
    "mechanism for differentially private synthetic data. PVLDB 15(11), 2599–2612."
)
_MWEM = (
    "Hardt, M., Ligett, K. & McSherry, F. (2012). A simple and practical algorithm for "
    "differentially private data release. NeurIPS 25."
)
_PRIVMRF = (
    "Cai, K., Lei, X., Wei, J. & Xiao, X. (2021). Data synthesis via differentially private Markov "
    "random fields. PVLDB 14(11), 2190–2202."
)
_PRIVSYN = (
    "Zhang, Z., Wang, T., Li, N., Honorio, J., Backes, M., He, S., Chen, J. & Zhang, Y. (2021). "
    "PrivSyn: differentially private data synthesis. USENIX Security 30, 929–946."
)
_RAP = (
    "Aydore, S., Brown, W., Kearns, M., Kenthapadi, K., Melis, L., Roth, A. & Siva, A. (2021). "
    "Differentially private query release through adaptive projection. ICML, PMLR 139, 457–467."
)
_RAP_PP = (
    "Vietri, G., Archambeau, C., Aydore, S., Brown, W., Kearns, M., Roth, A., Siva, A., Tang, S. & "
    "Wu, Z. S. (2022). Private synthetic data for multitask learning and marginal queries. "
    "NeurIPS 35."
)
_GEM = (
    "Liu, T., Vietri, G. & Wu, Z. S. (2021). Iterative methods for private synthetic data: "
    "unifying framework and new methods. NeurIPS 34."
)
_GSD = (
    "Liu, T., Tang, J., Vietri, G. & Wu, Z. S. (2023). Generating private synthetic data with "
    "genetic algorithms. ICML, PMLR 202, 22009–22027."
)
_PGM = (
    "McKenna, R., Sheldon, D. & Miklau, G. (2019). Graphical-model based estimation and inference "
    "for differential privacy. ICML, PMLR 97, 4435–4444."
)

_SGD = "Abadi, M. et al. (2016). Deep learning with differential privacy. ACM CCS, 308–318."
_MERF = (
    "Harder, F., Adamczewski, K. & Park, M. (2021). DP-MERF: differentially private mean "
    "embeddings with random features for practical privacy-preserving data generation. AISTATS, "
    "PMLR 130, 1819–1827."
)

_INTERVALS = (
    "Where counts, shares and means have intervals, these were not computed from the synthetic "
    "rows, as if they were real. They come from all noisy counts by generalized least squares; the "
    "variance of the noise is known. Intervals for the table account for the noise, those for the "
    "population for sampling as well."
)


def methods_section(about: About, release: Release, ledger: PrivacyLedger) -> Section:
    """The text, and the references that it names by number."""
    references: list[str] = []

    def cited(work: str) -> str:
        if work not in references:
            references.append(work)
        return f"[{references.index(work) + 1}]"

    paragraphs = [
        f"{_made(about, release, ledger)} {_asked(about, release, cited)} {_fitted(about, cited)}",
        _promise(ledger, cited),
    ]
    if any(isinstance(each.query, MarginalQuery) for each in release.measurements):
        paragraphs.append(_INTERVALS)
    return Section(
        "For a methods section",
        [
            Text("The facts of this fit, in sentences to be pasted and shortened.", quiet=True),
            *map(Text, paragraphs),
            Items([f"[{place}] {work}" for place, work in enumerate(references, start=1)]),
        ],
    )


def _made(about: About, release: Release, ledger: PrivacyLedger) -> str:
    total = estimate_total(release.domain, release.measurements)
    rows = in_rows(total.value)
    if ledger.adjacency is Adjacency.ADD_REMOVE:
        rows = (
            f"about {total.value:,.0f} rows (a noisy count; ± {CONFIDENT * total.stddev:,.0f} with "
            "95 % confidence)"
        )
    columns = "column" if len(about.columns) == 1 else "columns"
    return (
        f"We used synthetic rows that were generated with sdv-privpgd {version('sdv-privpgd')} on "
        f"{about.date} from a confidential table of {rows} and {len(about.columns):,} {columns}."
    )


def _asked(about: About, release: Release, cited: Callable[[str], str]) -> str:
    """What was asked, by the strategy."""
    strategy = about.strategy
    coarse = {
        len(each.query.clique)
        for each in release.measurements
        if isinstance(each.query, GroupedMarginalQuery)
    }
    if isinstance(strategy, AllPairs):
        counted = "the contingency tables of all pairs of columns"
        if 2 in coarse:
            counted = (
                "coarse tables of all pairs of columns, the contingency tables of the pairs that "
                "depend most by these noisy counts"
            )
        if 3 in coarse:
            counted += ", and coarse tables of three columns"
        if strategy.importance:
            named = ", ".join(strategy.importance)
            counted += f" (those with {named} more precisely)"
    elif isinstance(strategy, AllKWay):
        counted = f"the contingency tables of all sets of {strategy.degree} columns"
    elif isinstance(strategy, Independent):
        counted = "the frequencies of each column alone"
    elif isinstance(strategy, MST):
        counted = (
            "the frequencies of each column, and contingency tables of a tree of pairs that was "
            f"chosen privately {cited(_MST)}"
        )
    elif isinstance(strategy, AIM):
        counted = f"contingency tables that were chosen privately, one after another {cited(_AIM)}"
    elif isinstance(strategy, MWEM):
        counted = f"contingency tables that were chosen privately, one after another {cited(_MWEM)}"
    elif isinstance(strategy, MeanEmbedding):
        by = "" if strategy.label is None else f", each by {strategy.label}"
        counted = (
            f"the frequencies of each column and the sums of {strategy.num_features:,} random "
            f"Fourier features of the rows{by} {cited(_MERF)}"
        )
    elif isinstance(strategy, HalfSpaces):
        by = " by ".join(["", *strategy.importance][:2])
        counted = (
            f"each column{by}, and what was chosen privately, {strategy.queries:,} questions a "
            "round, of marginals and of the rows beyond random hyperplanes of numbers"
            f"{by} {cited(_RAP_PP)}"
        )
    elif isinstance(engine := about.engine, DPDiffusion | DPCTGAN):
        steps = getattr(strategy, "steps", None) or engine.steps
        counted = (
            "the frequencies of each column, and gradients of a network's loss, clipped and summed "
            f"over {steps:,} random samples of the rows {cited(_SGD)}"
        )
    elif isinstance(strategy, PrivMRF):
        counted = (
            "how much each pair of columns depends, and contingency tables that were chosen by "
            f"that and privately, one after another {cited(_PRIVMRF)}"
        )
    elif isinstance(strategy, PrivSyn):
        counted = (
            "how much each pair of columns depends, the frequencies of each column, and the "
            "contingency tables that were chosen because their columns depend much "
            f"{cited(_PRIVSYN)}"
        )
    elif isinstance(strategy, Adaptive):
        counted = (
            "contingency tables that were chosen privately, "
            f"{strategy.marginals:,} a round {cited(_RAP)}"
        )
    else:
        counted = f"what the strategy {type(strategy).__name__} chose"
    found = [name for name, facts in about.discovered.items() if facts]
    said = (
        f"Of it were counted {counted}. Gaussian noise, rounded to whole numbers, was added to all "
        f"counts {cited(_GAUSSIAN)}."
    )
    if found:
        said += (
            f" What was not declared of the values of {len(found):,} of the columns was found by "
            "noisy counts as well."
        )
    return f"{said} The other facts on columns (types, declared ranges and categories) are public."


def _fitted(about: About, cited: Callable[[str], str]) -> str:
    """What made rows of the answers, by the engine."""
    engine = about.engine
    name = type(engine).__name__
    if isinstance(engine, PrivatePGM):
        return f"A graphical model was fitted to the noisy counts {cited(_PGM)}."
    if isinstance(engine, GUM):
        return f"Rows were changed step by step until they had the noisy counts {cited(_PRIVSYN)}."
    if name == "ParticleGradientDescent":
        return (
            "The rows were fitted to the noisy counts by particle gradient descent on the sliced "
            f"Wasserstein distance {cited(_PRIVPGD)}."
        )
    if isinstance(engine, DPDiffusion | DPCTGAN):
        return (
            f"The network was a {engine.network}, trained by opacus, and rows were drawn of "
            f"{'it' if isinstance(engine, DPDiffusion) else 'its generator'} "
            f"{cited(engine.citation)}."
        )
    if name == "GeneratorNetwork":
        return f"A generator network was fitted to the noisy sums {cited(_MERF)}."
    if name == "RelaxedProjection":
        return f"A relaxed table was fitted to the noisy counts by Adam {cited(_RAP)}."
    if name == "AnnealedProjection":
        return (
            "Relaxed rows, with numbers that were not binned, were fitted to the noisy counts by "
            f"Adam, with thresholds as sigmoids of growing slope {cited(_RAP_PP)}."
        )
    if name == "GenerativeNetwork":
        return f"A generative network was trained on the noisy counts {cited(_GEM)}."
    if name == "PrivateGSD":
        return f"The rows were fitted to the noisy counts by a genetic algorithm {cited(_GSD)}."
    return f"The rows were fitted to the noisy counts by the engine {name}."


def _promise(ledger: PrivacyLedger, cited: Callable[[str], str]) -> str:
    unit = ledger.unit
    differ = {
        Adjacency.REPLACE_ONE: f"{unit} replaced by any others; the number of rows is public",
        Adjacency.ADD_REMOVE: f"{unit} added or removed; the number of rows is private",
    }[ledger.adjacency]
    return (
        f"All that was released of the table satisfies (ε, δ)-differential privacy "
        f"{cited(_DEFINITION)} with ε = {ledger.spent():.4g} and δ = {ledger.delta:g}, where two "
        f"tables are neighbors if one is the other with {differ}. It was accounted for exactly, as "
        f"{math.sqrt(ledger.mu_squared):.4g}-Gaussian differential privacy {cited(_GAUSSIAN)} over "
        f"{len(ledger.charges):,} sets of questions."
    )
