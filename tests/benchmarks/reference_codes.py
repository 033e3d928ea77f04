"""Other people's implementations of methods, called with codes and a budget. Not private.

This file imports nothing of this package: an interpreter that has the reference runs it by its
path, because no one environment can hold all of them.

    python -I reference_codes.py INPUT OUTPUT

INPUT is an ``.npz`` with ``codes`` of shape (row, attribute), ``sizes``, and ``call``, JSON with
the ``reference``, ``rho``, ``max_megabytes`` and ``checkout``. OUTPUT gets the synthetic ``codes``;
the last line that is printed is JSON with the seconds of the processor and the peak memory, both
without imports.

The budget is rho of zero-concentrated privacy, as all of them count it: noise of standard deviation
1 / sqrt(2 rho) on a table, and a choice with epsilon sqrt(8 rho). It replaces what each makes of
its epsilon and delta, so all spend alike. Everything else is as published, defaults included.
"""

import collections.abc
import itertools
import json
import os
import resource
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

_DELTA = 1e-5  # they ask for one, which the budget replaces


@dataclass(frozen=True)
class Call:
    """A budget and limits for a reference."""

    rho: float
    max_megabytes: float = 80.0
    checkout: str = ""


@dataclass(frozen=True)
class Reference:
    """A published implementation, which makes synthetic codes with columns in the same order."""

    run: Callable[[np.ndarray, Sequence[int], Call], np.ndarray]
    method: str  # the name of this package's own in ``benchmark.methods``
    adjacency: str  # under which its noise is right for the budget
    modules: tuple[str, ...]  # what it imports, which does not count
    install: str


def _module(name: str) -> Any:
    return import_module(name)


def _named(codes: np.ndarray, sizes: Sequence[int]) -> tuple[Any, dict[str, int]]:
    """The codes as a frame, and its columns' numbers of codes."""
    pandas = _module("pandas")
    names = [f"c{axis}" for axis in range(len(sizes))]
    return pandas.DataFrame(codes, columns=names), dict(zip(names, map(int, sizes), strict=True))


def _dpmm(name: str, codes: np.ndarray, sizes: Sequence[int], call: Call, **options: Any):
    frame, domain = _named(codes, sizes)
    kind = getattr(_module(f"dpmm.models.{name.lower()}"), f"{name}GM")
    model = kind(epsilon=1.0, delta=_DELTA, domain=domain, n_jobs=1, **options).generator
    model.rho, model.sigma = call.rho, np.sqrt(3 / (2 * call.rho))
    model.fit(frame)
    return model.generate(n_records=len(codes))[frame.columns].to_numpy()


def dpmm_mst(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """MST of dpmm, which is its authors' code on a copy of their first mbi."""
    return _dpmm("MST", codes, sizes, call)


def dpmm_aim(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """AIM of dpmm, which is its authors' code on a copy of their first mbi."""
    return _dpmm("AIM", codes, sizes, call, max_model_size=call.max_megabytes)


def dpmm_independent(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """Columns with equal noise, to which the estimator of dpmm's MST is fitted."""
    frame, domain = _named(codes, sizes)
    mbi = _module("dpmm.models.base.mbi")
    noise = _module("dpmm.models.base.utils").gaussian_noise
    sparse = _module("scipy.sparse")
    stddev = float(np.sqrt(len(sizes) / (2 * call.rho)))
    measured = []
    for name, size in domain.items():
        counts = np.bincount(frame[name], minlength=size)
        measured.append((sparse.eye(size), counts + noise(stddev, (size,)), stddev, (name,)))
    engine = mbi.FactoredInference(mbi.Domain.fromdict(domain), iters=5_000)
    rows = engine.estimate(measured).synthetic_data(rows=len(codes))
    return rows.df[frame.columns].to_numpy()


def private_pgm_mwem(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """MWEM+PGM of its authors, from their checkout, on dpmm's copy of their first mbi.

    It is told the total, as its option ``bounded`` has it. That option forgets that a score then
    changes by up to 2, which is mended here.
    """
    sys.modules["mbi"] = _module("dpmm.models.base.mbi")
    accounting: Any = types.ModuleType("cdp2adp")
    accounting.cdp_rho = lambda *_: call.rho
    sys.modules["cdp2adp"] = accounting
    path = Path(call.checkout, "mechanisms", "mwem+pgm.py")
    found = _module("importlib.util").spec_from_file_location("mwem_pgm", path)
    module = _module("importlib.util").module_from_spec(found)
    found.loader.exec_module(module)
    choose = module.worst_approximated
    module.worst_approximated = lambda *given: choose(*given, bounded=True)
    frame, domain = _named(codes, sizes)
    data = module.Dataset(frame, sys.modules["mbi"].Domain.fromdict(domain))
    rows = module.mwem_pgm(data, 1.0, _DELTA, bounded=True, maxsize_mb=call.max_megabytes)
    return rows.df[frame.columns].to_numpy()


def _dpsynth(name: str, codes: np.ndarray, sizes: Sequence[int], call: Call, **options: Any):
    frame, domain = _named(codes, sizes)
    kinds, mbi = _module("dpsynth.discrete_mechanisms"), _module("mbi")
    config = kinds.DiscreteConfig(mechanism=getattr(kinds, f"{name}Config")(**options))
    table = mbi.Dataset({key: frame[key].to_numpy() for key in domain}, mbi.Domain.fromdict(domain))
    made = config.configure(zcdp_rho=call.rho)(np.random.default_rng(), table).synthetic_data
    return np.stack([made.data[key] for key in domain], axis=1)


def dpsynth_aim(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """AIM of Google's dpsynth, by its authors, with the one-way tables first.

    A score goes down as well as up with a record that comes, so that the choice without the factor
    of one half (``monotonic``) spends four times what is counted: mended here.
    """
    common = _module("dpsynth.discrete_mechanisms.common")
    choose = common.exponential_mechanism
    common.exponential_mechanism = lambda *given, monotonic: choose(*given)
    return _dpsynth("AIM", codes, sizes, call, max_model_size=call.max_megabytes)


def dpsynth_swift(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """SWIFT of Google's dpsynth: noisy errors of all tables, then one choice of what to measure."""
    return _dpsynth("SWIFT", codes, sizes, call, max_clique_size=call.max_megabytes * 2**17)


def privmrf(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """PrivMRF of its authors on a processor, where arrays of NumPy stand in for those of CuPy.

    Its model has the cells of ``max_megabytes`` in place of 5e7, which need a GPU. It counts the
    rows with a hundredth of the noise that it charges, which changes no share, and is left.
    """
    cupy: Any = types.ModuleType("cupy")
    cupy.asnumpy, cupy.get_array_module = np.asarray, lambda *_: np
    sys.modules["cupy"] = cupy
    collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]
    package, tools = _module("PrivMRF"), _module("PrivMRF.utils.tools")
    tools.privacy_budget, tools.print_graph = (lambda _: 2 * call.rho), (lambda *_: None)
    named = {axis: {"domain": size} for axis, size in enumerate(sizes)}
    domain = _module("PrivMRF.domain").Domain(named, list(named))
    cells = call.max_megabytes * 2**17
    config = {"print": False, "max_parameter_size": cells, "max_clique_size": cells}
    model = package.run(codes, domain, None, "rivals", 1.0, p_config=config)
    return np.array(model.synthetic_data(os.devnull))


def privsyn(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """PrivSyn of one of its authors, before a rewriting that left out consistency.

    Two faults are mended here: dependences are multiplied by the number of rows twice, so that all
    pairs are chosen, and the rows that are improved are not those that come out. Pairs are chosen
    until none lowers the error, as in the paper; the code's default ends at a gain of 20,000 rows.
    """
    frame, _ = _named(codes, sizes)
    package, choice, rows = (
        _module(f"privsyn.{name}")
        for name in ("privsyn", "lib_marginal.marg_determine", "lib_synthesize.records_update")
    )
    asked, start = choice.calculate_indif, rows.RecordUpdate.initialize_records

    def once(*given: Any) -> Any:
        return (found := asked(*given)).assign(error=found.error / len(codes))

    def shared(self: Any, *given: Any, **named: Any) -> None:
        start(self, *given, **named)
        self.records = self.df.to_numpy()
        self.df = type(self.df)(self.records, columns=self.df.columns)

    choice.calculate_indif, rows.RecordUpdate.initialize_records = once, shared
    given = dict.fromkeys(("dataset", "method", "epsilon", "num_preprocess", "rare_threshold"), "0")
    options = package.add_default_params(types.SimpleNamespace(**given, marg_sel_threshold=0.0))
    model = package.PrivSyn(vars(options), frame, list(sizes), call.rho)
    model.postprocessing = lambda *_: None
    model.marginal_selection()
    model.syn(len(codes), None, None)
    return model.synthesized_df[frame.columns].to_numpy()


def gem(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """GEM of its authors over all pairs, with the settings and steps of their script for Adult."""
    frame, domain = _named(codes, sizes)
    utils, queries, models, rounds = (
        _module(f"src.{part}") for part in ("utils", "qm", "syndata", "algo")
    )
    table = utils.Dataset(frame, utils.Domain(list(domain), list(domain.values())))
    asked = queries.KWayMarginalQMTorch(table, list(itertools.combinations(domain, 2)))
    number = min(50, asked.num_workloads)
    each = float(np.sqrt(2 * call.rho / (number * 0.5)))  # half of it for each part of a round
    model = models.NeuralNetworkGenerator(asked, embedding_dim=256, gen_dims=[256, 256])
    options = {"loss_p": 2, "lr": 1e-4, "max_idxs": 10_000, "max_iters": 5_000 // number}
    rounds.IterAlgoGEM(model, number, each, **options).fit(asked.get_answers(table))
    return model.get_syndata(len(codes)).df[frame.columns].to_numpy()


def rap(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """RAP of its authors over all pairs, with the settings of their script.

    Two faults are mended here: each round adds new noise to all earlier answers, which only the
    latest are charged for, and a choice takes 2 / n for sqrt(2) / n. New JAX takes no generators.
    """
    domains, tables, util, mechanism, spend, queries = (
        _module(name)
        for name in (
            "dataloading.domain", "dataloading.dataset", "mechanisms.util", "mechanisms.rap_pp",
            "privacy_budget_tracking.privacy_util", "modules.marginal_queries",
        )
    )  # fmt: skip
    numbers, noisy, add, choose = mechanism.jnp, [], spend.gaussian_mechanism, spend.select_noisy_q

    def projected(rows: Any, places: Any) -> Any:
        ends = np.cumsum([len(own) for own in places])[:-1]
        return numbers.hstack([util.sparsemax(own) for own in numbers.split(rows, ends, axis=1)])

    def once(key: Any, answers: Any, **budget: float) -> Any:
        noisy.extend(add(key, answers[len(noisy) :], **budget))
        return numbers.stack(noisy)

    def chosen(*given: Any, sensitivity: float, **budget: float) -> Any:
        return choose(*given, sensitivity=sensitivity * np.sqrt(2), **budget)

    mechanism.sparsemax_project = projected
    spend.get_zcdp_parameter, spend.gaussian_mechanism = (lambda *_: call.rho), once
    spend.select_noisy_q = chosen
    frame, named = _named(codes, sizes)
    table = tables.Dataset(frame, domains.Domain(list(named), list(named.values()), []))
    options = mechanism.RAPppConfiguration(
        optimizer_learning_rate=[0.003], iterations=[1], sigmoid_doubles=[0],
        get_dp_select_epochs=lambda domain: len(domain.attrs),
    )  # fmt: skip
    model = mechanism.RAPpp([options], [queries.MarginalQueryClass(K=2, conditional=False)])
    model.initialize(table, 0)
    model.train(1.0, int.from_bytes(os.urandom(4)))
    rng, rows = np.random.default_rng(), np.asarray(model.get_dprime(), dtype=np.float64)
    rows = np.resize(rows, (len(codes), rows.shape[1]))  # each of them in turn
    made = []
    for own in np.split(rows, np.cumsum(sizes)[:-1], axis=1):
        ends = np.cumsum(own, axis=1)
        made.append((rng.random((len(codes), 1)) * ends[:, -1:] > ends).sum(axis=1))
    return np.stack(made, axis=1)


def private_gsd(codes: np.ndarray, sizes: Sequence[int], call: Call) -> np.ndarray:
    """Private-GSD of its authors: all pairs with equal noise. It makes 2,000 rows, not all."""
    parent: Any = types.ModuleType("genetic_sd")  # without what the package itself imports
    parent.__path__ = [str(Path(call.checkout, "src", "genetic_sd"))]
    accounting: Any = types.ModuleType("snsynth.utils")
    accounting.cdp_rho = lambda *_: call.rho
    sys.modules |= {"genetic_sd": parent, "snsynth.utils": accounting}
    utils, asked, search = (
        _module(f"genetic_sd.{part}")
        for part in ("utils", "adaptive_statistics", "generator.generator_genetic_sd")
    )
    frame, named = _named(codes, sizes)
    domain = utils.Domain({key: {"type": "string", "size": size} for key, size in named.items()})
    answers = asked.AdaptiveChainedStatistics(utils.Dataset(frame, domain))
    answers.add_stat_module_and_fit(asked.Marginals.get_all_kway_combinations(domain, k=2))
    random = _module("jax").random
    keys = random.split(random.PRNGKey(int.from_bytes(os.urandom(4))))
    answers.private_measure_all_statistics(keys[0], call.rho)
    fit = search.GeneticSD(
        domain, 2_000, 1_000_000, ("mutate", "swap", "cross"), False, True, None, 1e-4, True
    )
    return fit.fit(keys[1], answers).df[frame.columns].to_numpy().astype(np.int64)


_DPMM = "pip install dpmm==0.1.9 with Python 3.11"
_CHECKOUT = ", and --checkout with github.com/"
_DPSYNTH = (
    "pip install mbi==2.0.0 dp-accounting more-itertools absl-py pydantic pandas pyyaml tqdm "
    "'etils[epath]'"
    f"{_CHECKOUT}google/dpsynth at cf8075f4"
)
_COMES, _MOVES = "add_remove", "replace_one"

REFERENCES = {
    "dpmm Independent": Reference(
        dpmm_independent, "Independent", _COMES, ("dpmm.models.mst",), _DPMM),
    "dpmm MST": Reference(dpmm_mst, "MST", _COMES, ("dpmm.models.mst",), _DPMM),
    "dpmm AIM": Reference(dpmm_aim, "AIM", _COMES, ("dpmm.models.aim",), _DPMM),
    "private-pgm MWEM": Reference(
        private_pgm_mwem, "MWEM", _MOVES, ("dpmm.models.mst",),
        f"{_DPMM}{_CHECKOUT}ryan112358/private-pgm at 02c78c42"),
    "dpsynth AIM": Reference(
        dpsynth_aim, "AIM", _COMES, ("dpsynth.discrete_mechanisms", "pandas"), _DPSYNTH),
    "dpsynth SWIFT": Reference(
        dpsynth_swift, "PrivPGD", _COMES, ("dpsynth.discrete_mechanisms", "pandas"), _DPSYNTH),
    "caicre PrivMRF": Reference(
        privmrf, "PrivMRF", _COMES, ("pandas", "networkx", "scipy.special", "matplotlib.pyplot"),
        "pip install 'numpy<2' 'pandas<2' scipy 'networkx<3' matplotlib mpmath"
        f"{_CHECKOUT}caicre/PrivMRF at 12f2cae3"),
    "vvv214 PrivSyn": Reference(
        privsyn, "PrivSyn", _COMES, ("pandas", "networkx", "tqdm"),
        "pip install 'numpy<2' 'pandas<2' networkx tqdm"
        f"{_CHECKOUT}vvv214/privsyn-tabular at efbddf7a"),
    "terranceliu GEM": Reference(
        gem, "GEM", _MOVES, ("torch", "sklearn.preprocessing", "pandas"),
        "pip install torch 'numpy<2' 'pandas<3' scikit-learn tqdm"
        f"{_CHECKOUT}terranceliu/dp-query-release at 0a9f4f81"),
    "amazon-science RAP": Reference(
        rap, "RAP", _MOVES, ("pandas", "jax"), "pip install 'jax<0.5' 'pandas<3'"
        f"{_CHECKOUT}amazon-science/relaxed-adaptive-projection at 7557d9f3"),
    "giusevtr Private-GSD": Reference(
        private_gsd, "Private-GSD", _MOVES, ("pandas", "jax", "flax", "chex"),
        "pip install 'jax<0.5' flax chex 'pandas<3' tqdm"
        f"{_CHECKOUT}giusevtr/private_gsd at f6150d78"),
}  # fmt: skip


def main(source: str, target: str) -> None:
    """Runs a reference once on the codes of a file."""
    given = np.load(source)
    call = json.loads(str(given["call"]))
    reference = REFERENCES[call.pop("reference")]
    codes, sizes = given["codes"].astype(np.int64), given["sizes"].tolist()
    sys.path += [call["checkout"]] if call["checkout"] else []
    for module in reference.modules:
        import_module(module)
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")  # forgets the largest memory so far
    start, before = time.process_time(), _kibibytes("VmRSS")
    rows = reference.run(codes, sizes, Call(**call))
    seconds = time.process_time() - start
    peak = (_kibibytes("VmHWM") - before) / 2**10
    np.savez(target, codes=np.asarray(rows, dtype=np.int32))
    print(json.dumps({"seconds": seconds, "peak_mebibytes": peak}))


def _kibibytes(key: str) -> int:
    """An entry of Linux's memory report; elsewhere always the peak."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(key)]
    return int(line.split()[1])


if __name__ == "__main__":
    os.chdir(Path(sys.argv[2]).parent)  # where some leave files
    main(*sys.argv[1:])
