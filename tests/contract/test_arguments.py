"""What people hand over: NumPy's numbers, domains that are none, parts of several tables."""

import inspect

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv.cag import Inequality
from sdv.errors import SynthesizerInputError
from sdv.metadata import Metadata
from sdv.multi_table import HMASynthesizer

from sdv_privpgd import AIMSynthesizer, MSTSynthesizer, People, PrivacyLedger, PrivPGDSynthesizer
from sdv_privpgd.methods import AIM
from sdv_privpgd.privacy.queries import Adjacency

NUMPY = {
    "epsilon": np.float32(1.5),
    "delta": np.float64(1e-6),
    "people": People(max_rows=np.int8(2)),
    "public_metadata": np.bool_(False),
    "discovery_share": np.float64(0.25),
    "seed": np.int32(3),
    "verbose": np.bool_(False),
    "enforce_min_max_values": np.bool_(True),
    "enforce_rounding": np.bool_(True),
}


def test_numpy_s_numbers_and_truths_are_taken_and_kept_as_python_s():
    kept = PrivPGDSynthesizer(sdv_tables.metadata(), **NUMPY).get_parameters()
    for name, value in NUMPY.items():
        assert kept[name] == value
        assert type(kept[name]) in (int, float, bool, People), name
    assert type(kept["people"].max_rows) is int


def test_no_rows_of_a_person_are_refused():
    with pytest.raises(ValueError, match="max_rows must be an integer of at least 1"):
        People(max_rows=np.int64(0))


def test_other_numbers_of_numpy_s_are_taken():
    aim = AIMSynthesizer(sdv_tables.metadata(), np.int64(1), method=AIM(max_megabytes=np.int32(4)))
    assert aim._settings().method.max_megabytes == 4
    ledger = PrivacyLedger.open(np.float64(1), 1e-5, Adjacency.REPLACE_ONE, np.int8(100))
    assert ledger.rows_per_person**2 == 10_000


def test_a_domain_may_hold_numpy_s_numbers():
    domain = {
        "age": {
            "range_min": np.int8(0), "range_max": np.int64(110), "decimal_places": np.uint8(0),
            "num_bins": np.int16(11), "range_is_nullable": np.bool_(True),
        },
        "ward": {"range_values": np.array(["A", "B", "C"])},
    }  # fmt: skip
    plain = {
        "age": {
            "range_min": 0, "range_max": 110, "decimal_places": 0,
            "num_bins": 11, "range_is_nullable": True,
        },
        "ward": {"range_values": ["A", "B", "C"]},
    }  # fmt: skip
    metadata = sdv_tables.metadata_of(
        {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    )
    assert (
        MSTSynthesizer(metadata, 1.0, public_domain=domain)._schema()
        == MSTSynthesizer(metadata, 1.0, public_domain=plain)._schema()
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"verbose": np.int64(1)},
        {"epsilon": np.bool_(True)},
        {"epsilon": np.float64("nan")},
        {"delta": np.bool_(True)},
        {"discovery_share": np.bool_(False)},
        {"seed": np.array([1, 2])},
    ],
    ids=str,
)
def test_numpy_s_values_of_another_kind_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PrivPGDSynthesizer(sdv_tables.metadata(), **{"epsilon": 1.0, **wrong})


@pytest.mark.parametrize("settings", [{}, {"enforce_rounding": False}], ids=str)
@pytest.mark.parametrize(
    "domain",
    [(0, 10), 5, [("age", (0, 10))], {"age": (0, 10)}, {"ward": ["A"]}, {"age": {"range_min": ()}},
     {"age": {"range_min": (0, 10)}}, {"seen": {"range_max": "soon"}}],
    ids=str,
)  # fmt: skip
def test_a_domain_that_is_none_is_refused_at_once_with_the_remedy(domain, settings):
    with pytest.raises(ValueError, match=r"must (map|be)") as caught:
        MSTSynthesizer(sdv_tables.metadata(), 1.0, public_domain=domain, **settings)
    assert "range_m" in str(caught.value)
    later = MSTSynthesizer(sdv_tables.metadata(), 1.0, **settings)
    later.public_domain = domain
    with pytest.raises(ValueError, match=r"must (map|be)"):
        later.add_constraints([Inequality("age", "income")])
    with pytest.raises(ValueError, match=r"must (map|be)"):
        later.fit(sdv_tables.table(10))
    assert not later.ledger.charges


KEYS = {"id": {"sdtype": "id"}, "a": {"sdtype": "boolean"}}
FAMILY = {
    "tables": {"parent": {"columns": KEYS, "primary_key": "id"}, "child": {"columns": KEYS}},
    "relationships": [
        {
            "parent_table_name": "parent",
            "child_table_name": "child",
            "parent_primary_key": "id",
            "child_foreign_key": "id",
        }
    ],
}


@pytest.mark.parametrize(
    "part",
    [PrivPGDSynthesizer, lambda **given: PrivPGDSynthesizer(epsilon=1.0, **given)],
    ids=["without a budget", "with a budget"],
)
def test_several_tables_made_of_ours_are_refused_with_the_reason(part):
    class Private(HMASynthesizer):
        _synthesizer = staticmethod(part)

    with pytest.raises(SynthesizerInputError, match="one privacy budget over all"):
        Private(Metadata.load_from_dict(FAMILY))


def test_a_call_without_epsilon_is_python_s_own_error():
    with pytest.raises(TypeError, match="epsilon"):
        PrivPGDSynthesizer(sdv_tables.metadata())


@pytest.mark.parametrize("method", [PrivPGDSynthesizer, MSTSynthesizer, AIMSynthesizer])
def test_the_signature_is_that_of_the_arguments(method):
    assert list(inspect.signature(method).parameters)[:3] == ["metadata", "epsilon", "delta"]
    assert method.__new__(method).__class__ is method  # as pickles and copies make it


def test_numbers_of_rows_may_be_numpy_s():
    fitted = MSTSynthesizer(
        sdv_tables.metadata_of({"a": {"sdtype": "boolean"}}), np.float64(1), np.float64(1e-5)
    )
    fitted.fit(pd.DataFrame({"a": [True, False] * 20}))
    assert len(fitted.sample(np.int64(7))) == 7
    assert "12" in fitted.plan(np.int64(12)).text
