"""What a synthesizer takes and what it refuses: arguments, tables, transformers."""

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import relationship
from sdv.errors import InvalidDataError, InvalidDataTypeError, SynthesizerInputError
from sdv.metadata import Metadata
from sdv.multi_table import HMASynthesizer
from small_synthesizers import boolean, new

from sdv_privpgd import People, PrivPGDSynthesizer, PublicDomainError
from sdv_privpgd.inference import Question
from sdv_privpgd.methods import MST, ParticleGradientDescent

KEYS = {"id": {"sdtype": "id"}, "a": {"sdtype": "boolean"}}
FAMILY = {
    "tables": {"parent": {"columns": KEYS, "primary_key": "id"}, "child": {"columns": KEYS}},
    "relationships": [relationship("parent", "id", "child", "id")],
}


class TestArguments:
    def test_parameters_are_stored_under_their_names_and_a_huge_epsilon_warns(self):
        settings = {
            "epsilon": 0.7, "delta": 1e-6, "adjacency": "add_remove",
            "people": People("id", max_rows=2, weighed=True),
            "public_domain": sdv_tables.PUBLIC_DOMAIN, "public_metadata": True,
            "discovery_share": 0.1,
            "method": MST(engine=ParticleGradientDescent(num_particles=44)),
            "target": {"ward": 6, "age": 2},
            "questions": [Question(what="mean", of="age")],
            "seed": 3, "verbose": True,
            "enforce_min_max_values": True, "enforce_rounding": False, "locales": ["de_DE"],
        }  # fmt: skip
        synthesizer = PrivPGDSynthesizer(sdv_tables.metadata(), **settings)
        assert synthesizer.get_parameters() == settings
        with pytest.warns(UserWarning, match="epsilon=25"):
            boolean(epsilon=25)
        synthesizer = new(enforce_rounding=False)
        synthesizer.fit(sdv_tables.table(50))
        incomes = synthesizer.sample(200)["income"].dropna()
        assert not np.allclose(incomes, incomes.round(2), atol=1e-9)

    @pytest.mark.parametrize(
        ("argument", "wrong"),
        [
            *[("epsilon", wrong) for wrong in (0, -1, float("nan"), float("inf"), "1", None, True)],
            *[("delta", wrong) for wrong in (0, 1, -1e-5, float("nan"), "small")],
            ("adjacency", "add"),
            *[("people", wrong) for wrong in (0, "who", {})],
            # NumPy's, each as its wrong kind.
            *[("epsilon", np.bool_(True)), ("delta", np.bool_(True)), ("verbose", np.int64(1))],
            *[("discovery_share", np.bool_(False)), ("seed", np.float64(0.5))],
        ],
    )
    def test_a_wrong_argument_is_named_with_its_value(self, argument, wrong):
        with pytest.raises(ValueError, match=argument) as raised:
            new(**{argument: wrong})
        assert repr(wrong) in str(raised.value) or str(wrong) in str(raised.value)

    @pytest.mark.parametrize(
        ("domain", "named"),
        [
            ({"nonsense": {"range_min": 0}}, "nonsense"), ({"age": {"minimum": 0}}, "minimum"),
            ({"age": {"range_min": 9, "range_max": 1}}, "range_m"), ("age", "public_domain"),
            ({"age": {"range_values": [1]}}, "range_values"), ({"id": {"range_values": [1]}}, "id"),
        ],
    )  # fmt: skip
    def test_a_wrong_public_domain_is_refused_at_construction(self, domain, named):
        with pytest.raises(ValueError, match=named):
            new(public_domain=domain)

    def test_an_undeclared_domain_stops_fit_before_a_row_is_read(self, monkeypatch):
        def read(*args, **kwargs):
            raise AssertionError("a row was read")

        monkeypatch.setattr("sdv_privpgd.privacy.boundary.encode_table", read)
        with pytest.raises(PublicDomainError, match=r"public_domain.*public_metadata") as raised:
            new(public_domain={"grade": {"range_values": [1, 2, 3]}}, discovery_share=0.0).fit(
                sdv_tables.table(10)
            )
        for name in ("age", "income", "ward", "seen"):
            assert name in str(raised.value)
        assert "smoker" not in str(raised.value)

    def test_ranges_in_public_metadata_are_used_behind_the_public_domain(self):
        columns = {
            "age": {"sdtype": "numerical", "range_min": 5, "range_max": 9, "decimal_places": 0},
            "ward": {"sdtype": "categorical", "range_values": ["A", "B"]},
        }
        table = pd.DataFrame({"age": [5, 9, 7] * 50, "ward": ["A", "B", "A"] * 50})
        metadata = sdv_tables.metadata_of(columns)
        synthesizer = PrivPGDSynthesizer(metadata, 5.0, public_metadata=True, **sdv_tables.SMALL)
        synthesizer.fit(table)
        assert synthesizer.sample(300)["age"].dropna().between(5, 9).all()
        assert synthesizer.get_metadata().to_dict()["tables"]["table"]["columns"] == columns
        columns = {"age": {"sdtype": "numerical", "range_min": 5, "range_max": 9}}
        synthesizer = PrivPGDSynthesizer(
            sdv_tables.metadata_of(columns),
            1.0,
            public_metadata=True,
            public_domain={"age": {"range_min": 100, "range_max": 200, "decimal_places": 0}},
            **sdv_tables.SMALL,
        )
        synthesizer.fit(pd.DataFrame({"age": [150] * 30}))
        assert synthesizer.sample(30)["age"].dropna().between(100, 200).all()


class TestRefusals:
    def test_several_tables_sequences_weights_and_other_metadata_are_refused(self):
        one = {"columns": {"a": {"sdtype": "boolean"}}}
        metadata = Metadata.load_from_dict({"tables": {"first": one, "second": one}})
        with pytest.raises(SynthesizerInputError, match="2 tables"):
            PrivPGDSynthesizer(metadata, 1.0)
        columns = {"who": {"sdtype": "id"}, "a": {"sdtype": "boolean"}}
        metadata = sdv_tables.metadata_of(columns, sequence_key="who")
        with pytest.raises(SynthesizerInputError, match=r"sequence_key.*max_rows"):
            PrivPGDSynthesizer(metadata, 1.0)
        with pytest.raises(SynthesizerInputError, match="'other', and the metadata says 'who'"):
            PrivPGDSynthesizer(metadata, 1.0, people=People("other", max_rows=3))
        with pytest.raises(SynthesizerInputError, match="dict"):
            PrivPGDSynthesizer({"tables": {}}, 1.0)
        with pytest.raises(SynthesizerInputError, match="no bound"):
            new().fit(sdv_tables.table(10), weights=[1.0] * 10)
        with pytest.raises(InvalidDataError, match=r"There is no file table\."):
            new().fit("table")

    def test_a_place_in_a_synthesizer_of_several_tables_is_refused(self):
        parent = pd.DataFrame({"id": [1, 2], "a": [True, False]})
        child = pd.DataFrame({"id": [1, 2, 2, 1], "a": [True, False, True, False]})
        synthesizer = HMASynthesizer(Metadata.load_from_dict(FAMILY))
        own = boolean(metadata=Metadata.load_from_dict({"tables": {"child": {"columns": KEYS}}}))
        synthesizer._table_synthesizers["child"] = own
        with pytest.raises(SynthesizerInputError, match="inside a synthesizer of several tables"):
            synthesizer.fit({"parent": parent, "child": child})
        assert not own.ledger.charges

        class Private(HMASynthesizer):
            _synthesizer = PrivPGDSynthesizer

        with pytest.raises(SynthesizerInputError, match="one privacy budget over all"):
            Private(Metadata.load_from_dict(FAMILY))

    def test_metadata_says_whose_rows_are_and_in_which_order(self):
        columns = {"who": {"sdtype": "id"}, "day": {"sdtype": "numerical"}}
        told = {"sequence_key": "who", "sequence_index": "day"}
        metadata = sdv_tables.metadata_of(columns, **told)
        made = PrivPGDSynthesizer(
            metadata, 1.0, adjacency="add_remove", delta=1e-5, people=People(max_rows=3),
            public_domain={"day": {"range_min": 0, "range_max": 9}},
        )  # fmt: skip
        assert made.people == People("who", max_rows=3, sequence_index="day")
        (kept,) = metadata.to_dict()["tables"].values()
        assert told.items() <= kept.items()  # the caller's is as it was

    @pytest.mark.parametrize("data", [[1, 2], [], None, np.zeros((3, 2))])
    def test_what_is_not_a_table_is_refused(self, data):
        with pytest.raises(InvalidDataTypeError, match=type(data).__name__):
            new().fit(data)

    def test_missing_extra_and_doubled_columns_are_named_and_the_earlier_fit_stays(self, fitted):
        table = sdv_tables.table(5)
        with pytest.raises(InvalidDataError, match=r"\['age'\] are missing"):
            new().fit(table.drop(columns="age"))
        with pytest.raises(InvalidDataError, match=r"\['extra'\] are not present"):
            new().fit(table.assign(extra=1))
        with pytest.raises(InvalidDataError, match=r"\['age'\] are there more than once"):
            new().fit(pd.concat([table, table[["age"]]], axis=1))
        with pytest.raises(InvalidDataError, match="other"):
            new().fit({"other": table})
        before = fitted.ledger
        with pytest.raises(InvalidDataError):
            fitted.fit(sdv_tables.table(5).drop(columns="age"))
        assert fitted.ledger == before
        assert len(fitted.sample(3)) == 3


class TestTransformers:
    @pytest.mark.filterwarnings("ignore:.*have the sdtype id")
    def test_every_column_has_one_that_was_fitted_on_no_table(self):
        synthesizer = new()
        synthesizer.auto_assign_transformers(sdv_tables.table(10))
        assert set(synthesizer.get_transformers()) == set(sdv_tables.COLUMNS)
        metadata = sdv_tables.metadata_of({"a": {"sdtype": "boolean"}, "who": {"sdtype": "id"}})
        synthesizer = PrivPGDSynthesizer(metadata, 1.0, **sdv_tables.SMALL)
        synthesizer.fit(pd.DataFrame({"a": [True, False] * 20, "who": ["G-111"] * 40}))
        assert b"G-111" not in cloudpickle.dumps(synthesizer)
        assert not synthesizer.sample(50)["who"].eq("G-111").any()
        synthesizer = new()
        table = sdv_tables.table(50)
        codes = synthesizer.preprocess({"table": table})
        assert list(codes["table"].columns) == list(sdv_tables.PUBLIC_DOMAIN)
        synthesizer.fit_processed_data(codes)
        assert len(synthesizer.sample(4)["table"]) == 4

    def test_transformers_that_learn_are_refused(self):
        from rdt.transformers import FloatFormatter, PseudoAnonymizedFaker, UniformEncoder

        synthesizer = new()
        synthesizer.auto_assign_transformers(sdv_tables.table(10))
        for name, transformer in (
            ("age", FloatFormatter()),
            ("mail", UniformEncoder()),
            ("mail", PseudoAnonymizedFaker()),
            ("mail", None),
        ):
            with pytest.raises(SynthesizerInputError, match=name):
                synthesizer.update_transformers({name: transformer})
