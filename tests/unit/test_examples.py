"""Each exported name has an example, which runs and prints what it says."""

import ast
import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest
import sdmetrics  # noqa: F401 - it has to load our classes itself, before an example does
from made_up import quiet

import sdv_privpgd
from sdv_privpgd import audit, constraints, inference, methods, metrics

ROOT = Path(sdv_privpgd.__file__).parent
EXPORTED = {
    name: getattr(package, name)
    for package in (sdv_privpgd, audit, constraints, inference, methods, metrics)
    for name in package.__all__
}
WITHOUT = {
    "CategoricalMarginalError", "CountingQueryError", "CovarianceError", "DownstreamError",
    "LinearThresholdError", "MLEfficiency", "MixedMarginalError", "PairwiseSlicedWasserstein",
    "RangeQueryError", "ThresholdQueryError",
    "AIM", "Adaptive", "AllKWay", "DPCTGAN", "DPDiffusion", "DPMERF", "EngineMethod", "Independent",
    "MWEM", "PrivMRF", "PrivSyn",
    "AnnealedProjection", "GUM", "GenerativeNetwork", "GeneratorNetwork", "PrivateGSD",
    "RelaxedProjection",
    "covariance_error", "linear_threshold_errors", "mixed_marginal_errors", "sw1_by_pair",
    "threshold_errors",
}  # fmt: skip
"""Metrics that are used as ``PairwiseTotalVariation`` is, methods as ``MST``, engines as
``PrivatePGM``, functions as ``l1_by_pair`` and ``counting_errors``."""


@pytest.mark.parametrize("name", EXPORTED)
def test_the_example_of_a_name_runs(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    found = EXPORTED[name]
    with quiet():  # small tables are few rows
        for each in doctest.DocTestFinder().find(
            found, name, module=False, globs=vars(import_module(found.__module__)).copy()
        ):
            runner.run(each)
    assert bool(runner.tries) != (name in WITHOUT)
    assert not runner.failures


def test_no_other_definition_has_one():
    public = {inspect.unwrap(each).__qualname__ for each in EXPORTED.values()}
    for path in ROOT.rglob("*.py"):
        defined = ast.parse(path.read_text()).body
        for each in defined:
            if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name not in public:
                assert ">>> " not in (ast.get_docstring(each) or ""), (path, each.name)
