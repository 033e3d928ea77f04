"""The metrics as SDMetrics' classes: found in every import order, and equal to the functions."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sdmetrics
from made_up import kinds
from processes import python
from sdmetrics.goal import Goal
from sdmetrics.single_table import SingleTableMetric

from sdv_privpgd import metrics
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.schema import PublicDomainError
from sdv_privpgd.metrics.pairs import average

CLASSES = {name: getattr(metrics, name) for name in metrics.__all__ if name[0].isupper()}
ORDERS = {
    "sdmetrics alone": "from sdmetrics.single_table import FidelityError",
    "sdmetrics first": "import sdmetrics; from sdv_privpgd.metrics import FidelityError",
    "ours first": "import sdv_privpgd.metrics; FidelityError = sdv_privpgd.metrics.FidelityError",
    "a function first": (
        "from sdv_privpgd.metrics import l1_by_pair; from sdv_privpgd.metrics import FidelityError"
    ),
    "sdv first": "import sdv; from sdmetrics.single_table import FidelityError",
    "our synthesizer first": (
        "from sdv_privpgd import PrivPGDSynthesizer; from sdv_privpgd.metrics import FidelityError"
    ),
    "a pickle first": (
        "import pickle; FidelityError = pickle.loads(b'csdv_privpgd.metrics\\nFidelityError\\n.')"
    ),
}

METADATA = {
    "tables": {
        "people": {
            "primary_key": "id",
            "columns": {
                **kinds(id="id", age="numerical"),
                "born": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
                **kinds(city="categorical", kind="categorical", rich="boolean"),
            },
        }
    }
}
PUBLIC_DOMAIN = {
    "age": {"range_min": 0, "range_max": 80, "decimal_places": 0, "range_is_nullable": False},
    "born": {"range_min": "1940-01-01", "range_max": "2019-12-31", "num_bins": 10},
    "city": {"range_values": ["Rome", "Bern", "Oslo"]},
    "kind": {"range_values": [1, 2], "range_is_nullable": False},
    "rich": {"range_is_nullable": False},
}
DOMAIN = Domain(("age", "born", "city", "kind", "rich"), (8, 11, 4, 2, 2))
NOMINAL = ["city", "kind", "rich"]
CELLS = {"metadata": METADATA, "public_domain": PUBLIC_DOMAIN, "num_bins": 8}


def people(num_rows, seed):
    """A table of values, and its codes in the declared domain: 81 ages in 8 cells and so on."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 81, num_rows)
    year = rng.integers(1940, 2020, num_rows)
    city = rng.integers(0, 4, num_rows)
    kind = np.minimum(rng.integers(0, 3, num_rows), 1)
    rich = (age > 40) ^ (rng.random(num_rows) < 0.1)
    frame = pd.DataFrame(
        {
            "id": np.arange(num_rows),
            "age": age,
            "born": [f"{each}-07-01" for each in year],
            "city": np.array(["Rome", "Bern", "Oslo", None], dtype=object)[city],
            "kind": kind + 1,
            "rich": rich,
        }
    )
    codes = np.stack([age * 8 // 81, (year - 1940) // 8, city, kind, rich], axis=1)
    return frame, codes


REAL, REAL_CODES = people(150, 0)
SYNTHETIC, CODES = people(110, 1)
PAIR = DOMAIN, REAL_CODES, CODES
LEARNED = DOMAIN, CODES, REAL_CODES, "rich"
FEATURES = {"features": ["age", "born"], "labels": ["rich"]}
FRAMES = [
    frame.drop(columns="id").assign(born=pd.to_datetime(frame["born"]).astype("int64"))
    for frame in (REAL, SYNTHETIC)
]

RICH, SEED, RELATIVE = {"label": "rich"}, {"seed": 3}, {"relative_to": "synthetic"}
SLICES = SEED | {"num_slices": 7}
TWENTY, FIFTY = ({"num_queries": number, "seed": 3} for number in (20, 50))
NAMED, NUMERIC = {"features": ["city", "kind"], "labels": ["rich"]}, {"numeric": ["age", "born"]}
ON_CELLS = {  # options, and the value of the function
    "PairwiseTotalVariation": ({}, lambda: average(metrics.l1_by_pair(*PAIR)) / 2),
    "PairwiseSlicedWasserstein": (SLICES, lambda: average(metrics.sw1_by_pair(*PAIR, **SLICES))),
    "CovarianceError": (RELATIVE, lambda: metrics.covariance_error(*PAIR, **RELATIVE)),
    "CountingQueryError": (TWENTY, lambda: average(metrics.counting_errors(*PAIR, **TWENTY))),
    "ThresholdQueryError": (TWENTY, lambda: average(metrics.threshold_errors(*PAIR, **TWENTY))),
    "CategoricalMarginalError": (
        RICH,
        lambda: metrics.categorical_marginal_errors(*PAIR, **NAMED).mean,
    ),
    "MixedMarginalError": (
        RICH | FIFTY,
        lambda: metrics.mixed_marginal_errors(*PAIR, **FEATURES, **FIFTY).mean,
    ),
    "LinearThresholdError": (
        RICH | FIFTY,
        lambda: metrics.linear_threshold_errors(*PAIR, **FEATURES, **FIFTY).mean,
    ),
    "DownstreamError": (RICH | SEED, lambda: metrics.downstream_error(*LEARNED, **SEED)),
    "MLEfficiency": (
        RICH | SEED,
        lambda: average(metrics.f1_by_model(*LEARNED, nominal=NOMINAL, **SEED)),
    ),
}
ON_VALUES = {
    "RangeQueryError": (
        TWENTY,
        lambda: average(metrics.range_errors(*FRAMES, **NUMERIC, **TWENTY)),
    ),
    "FidelityError": ({}, lambda: average(metrics.fidelity_by_pair(*FRAMES, **NUMERIC))),
}
ALL = {name: (CELLS | options, value) for name, (options, value) in ON_CELLS.items()} | {
    name: ({"metadata": METADATA} | options, value) for name, (options, value) in ON_VALUES.items()
}
QUICK = "sdmetrics alone", "ours first"


@pytest.mark.long
@pytest.mark.parametrize(
    "order",
    [pytest.param(each, marks=[] if each in QUICK else pytest.mark.slow) for each in ORDERS],
)
def test_the_classes_are_there_in_every_import_order(order):
    use = """
import sdmetrics.single_table, sdv_privpgd.metrics
for name in sdv_privpgd.metrics.__all__:
    if name[0].isupper():
        assert getattr(sdmetrics.single_table, name) is getattr(sdv_privpgd.metrics, name), name
assert FidelityError is sdmetrics.single_table.FidelityError
assert FidelityError.__module__ == "sdv_privpgd.metrics"
"""
    done = python("-W", "error:Failed to", "-c", ORDERS[order] + use)
    assert done.returncode == 0, done.stderr
    assert "Failed to" not in done.stderr


@pytest.mark.long
def test_functions_need_no_sdmetrics_and_sdmetrics_no_rdt_of_ours():
    code = """
import sys
from sdv_privpgd.metrics import counting_errors, l1_by_pair, mixed_marginal_errors
heavy = {"sdv", "rdt", "torch", "sdmetrics", "sklearn", "pandas"} & set(sys.modules)
assert not heavy, heavy
import sdmetrics
assert "sdv_privpgd.metrics._sdmetrics" in sys.modules
assert "sdv_privpgd.columns.encoders" not in sys.modules
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_every_class_is_tested_and_registered():
    assert set(ALL) == set(CLASSES)
    assert set(CLASSES) <= set(SingleTableMetric.get_subclasses())
    for name, metric in CLASSES.items():
        assert metric.name == name
        assert metric.goal in (Goal.MINIMIZE, Goal.MAXIMIZE)
        assert pickle.loads(pickle.dumps(metric)) is metric


@pytest.mark.parametrize("name", ALL)
def test_a_class_computes_what_its_function_does_and_a_breakdown_averages_to_it(name):
    options, value = ALL[name]
    metric = CLASSES[name]
    found = metric.compute(REAL, SYNTHETIC, **options)
    assert isinstance(found, float)
    assert found == pytest.approx(value(), rel=1e-12)
    assert found > 0
    assert 0 < metric.normalize(found) < 1
    parts = metric.compute_breakdown(REAL, SYNTHETIC, **options)
    if "score" in parts:
        assert parts["score"] == found
    else:
        assert len(parts) > 1
        assert average({key: part["score"] for key, part in parts.items()}) == found
    if name.startswith("Pairwise"):
        assert list(parts) == list(DOMAIN.cliques(2))


@pytest.mark.parametrize("name", ["PairwiseTotalVariation", "FidelityError"])
def test_tables_come_in_dictionaries_and_metadata_in_either_shape(name):
    options, _ = ALL[name]
    expected = CLASSES[name].compute(REAL, SYNTHETIC, **options)
    flat = options | {"metadata": METADATA["tables"]["people"]}
    assert CLASSES[name].compute(REAL, SYNTHETIC, **flat) == expected
    named = {"people": REAL}, {"people": SYNTHETIC}
    assert CLASSES[name].compute(*named, **options) == expected
    others = [{"other": REAL[:3]} | tables for tables in named]
    assert CLASSES[name].compute(*others, **options, table_name="people") == expected
    with pytest.raises(ValueError, match=r"table_name must be one of \['other', 'people'\]"):
        CLASSES[name].compute(*others, **options)


def test_compute_metrics_of_sdmetrics_takes_them():
    chosen = {name: CLASSES[name] for name in ("PairwiseTotalVariation", "CovarianceError")}
    table = sdmetrics.compute_metrics(
        chosen, REAL, SYNTHETIC, metadata=METADATA, public_domain=PUBLIC_DOMAIN
    )
    assert table["error"].isna().all()
    assert table["raw_score"].gt(0).all()


def test_ranges_of_the_metadata_declare_cells():
    columns = METADATA["tables"]["people"]["columns"]
    ranged = {name: facts | PUBLIC_DOMAIN.get(name, {}) for name, facts in columns.items()}
    del ranged["born"]["num_bins"]  # our own word
    metadata = {"columns": ranged, "primary_key": "id"}
    metric = CLASSES["PairwiseTotalVariation"]
    born = {"born": {"num_bins": 10}}
    found = metric.compute(REAL, SYNTHETIC, metadata, num_bins=8, public_domain=born)
    assert found == metric.compute(REAL, SYNTHETIC, **CELLS)


def test_what_was_not_declared_or_not_modelled_goes_where_the_synthesizer_puts_it():
    metric = CLASSES["PairwiseTotalVariation"]
    odd, plain = SYNTHETIC.copy(), SYNTHETIC.copy()
    odd.loc[0, ["age", "born", "city"]] = [999, "1066-10-14", "Atlantis"]
    plain.loc[0, ["age", "born", "city"]] = [80, "1940-01-01", None]
    assert metric.compute(REAL, odd, **CELLS) == metric.compute(REAL, plain, **CELLS)
    table = METADATA["tables"]["people"] | {"alternate_keys": ["kind"]}
    facts = {name: facts for name, facts in PUBLIC_DOMAIN.items() if name != "kind"}
    breakdown = CLASSES["PairwiseTotalVariation"].compute_breakdown(
        REAL, SYNTHETIC, table, public_domain=facts
    )
    assert {name for pair in breakdown for name in pair} == {"age", "born", "city", "rich"}
    breakdown = CLASSES["FidelityError"].compute_breakdown(REAL, SYNTHETIC, table)
    assert {name for pair in breakdown for name in pair} == {"age", "born", "city", "rich"}


def test_what_is_missing_is_named():
    metric = CLASSES["PairwiseTotalVariation"]
    with pytest.raises(PublicDomainError, match="'age'"):
        metric.compute(REAL, SYNTHETIC, METADATA)
    with pytest.raises(TypeError, match="metadata must be a dictionary"):
        metric.compute(REAL, SYNTHETIC)
    with pytest.raises(ValueError, match=r"columns \['age'\] of the metadata are missing"):
        metric.compute(REAL, SYNTHETIC.drop(columns="age"), **CELLS)
    with pytest.raises(TypeError, match="label"):
        CLASSES["DownstreamError"].compute(REAL, SYNTHETIC, **CELLS)
