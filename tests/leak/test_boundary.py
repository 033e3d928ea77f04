"""A record is reachable from the core and the encoders alone: by imports, and while a fit runs."""

import copy
import gc
import pickle
import re
import sys
import types
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sdv_tables
from made_up import made_up, quiet

from sdv_privpgd import Boolean, Categorical, Datetime, MSTSynthesizer, Numerical, fit_table
from sdv_privpgd.columns.dtypes import dtypes_kept, is_of_days
from sdv_privpgd.columns.facts import CategoryFacts, NumberFacts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.units import is_aware
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.methods import MST, PrivatePGM, pipeline
from sdv_privpgd.privacy import boundary
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.counting import Weights
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset, Records
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery
from sdv_privpgd.privacy.streams import ClusterRecords
from sdv_privpgd.privacy.value_counts import ValueCounts
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.people import PeopleSource
from sdv_privpgd.sources.source import SourceError

PEOPLE = "who", 3, True
ROOT = Path(__file__).parents[2]
RULE = "A record is reachable from privacy/ and the encoders alone"
COMPARES = {"metrics", "benchmark"}
"""Packages that hold real tables by their nature: what they say is not private."""


@pytest.fixture(scope="module")
def options():
    tomllib = pytest.importorskip("tomllib")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    return next(each for each in contracts if each["name"] == RULE)


@pytest.fixture(scope="module")
def holds(options):
    """Whether the rule holds with one more import."""
    grimp = pytest.importorskip("grimp")
    forbidden = pytest.importorskip("importlinter.contracts.forbidden")
    pytest.importorskip("importlinter.configuration").configure()
    graph = grimp.build_graph("sdv_privpgd", cache_dir=None)
    own = {key: value for key, value in options.items() if key not in ("name", "type")}
    own["allow_indirect_imports"] = str(own["allow_indirect_imports"])
    session = {"root_packages": ["sdv_privpgd"]}
    contract = forbidden.ForbiddenContract(RULE, session, own)

    def check(importer=None, imported=None):
        own = copy.deepcopy(graph)  # the check takes out what is ignored
        if importer is not None:
            own.add_import(importer=importer, imported=imported)
        return contract.check(own, verbose=False).kept

    return check


class TestImports:
    def test_the_rule_holds(self, holds):
        assert holds()

    @pytest.mark.parametrize(
        ("importer", "imported"),
        [
            ("discovery.plan", "privacy.dataset"),
            ("fitting.fit", "columns.encoders"),
            ("fitting.door", "privacy.value_counts"),
            ("plugin.base", "privacy.dataset"),
            ("report.evaluation", "columns.encoders"),
            ("methods.adaptive", "privacy.dataset"),
            ("synthesize.pgm", "columns.encoders"),
            ("synthesizer", "privacy.dataset"),
        ],
    )
    def test_a_planted_import_breaks_it(self, importer, imported, holds):
        assert not holds(f"sdv_privpgd.{importer}", f"sdv_privpgd.{imported}")

    def test_it_is_about_every_package(self, options):
        folder = ROOT / "sdv_privpgd"
        here = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
        asked = {name.removeprefix("sdv_privpgd.") for name in options["source_modules"]}
        assert here - {"__init__", "__main__", "__pycache__"} == asked | COMPARES | {
            "privacy",
            "columns",
            "sources",
        }


CORE = ("sdv_privpgd.privacy", "sdv_privpgd.columns", "sdv_privpgd.sources")
HANDED = {
    ("fit_table", "table"),
    ("fit_table", "named"),
    ("fit", "data"),
    ("fit_processed_data", "processed_data"),
}
"""The arguments of those whom the user hands the table, and its named columns."""

OPAQUE = PrivateTable, EncodedTable, Curator
"""What is passed on: nothing outside the core looks into them."""

SKIPPED = types.ModuleType, type, types.FrameType, *OPAQUE


def referents(item):
    """What an object holds; of a function what it closes over, and not its module."""
    if isinstance(item, types.FunctionType):
        return [*(item.__closure__ or ()), *(item.__defaults__ or ())]
    return gc.get_referents(item)


def held_by(frame, private):
    """The local names of a frame from which a record is reached."""
    found = []
    for name, value in list(frame.f_locals.items()):
        if (frame.f_code.co_name, name) in HANDED:
            continue
        queue, seen = [value], set()
        while queue:
            item = queue.pop()
            if id(item) in seen or isinstance(item, SKIPPED):
                continue
            seen.add(id(item))
            is_record = isinstance(item, np.ndarray) and any(
                np.may_share_memory(item, own) for own in private
            )
            if is_record or isinstance(item, Records | ValueCounts):
                found.append(f"{frame.f_code.co_name}: {name}")
                break
            queue.extend(referents(item))
    return found


def holders(fit, table, monkeypatch):
    """Where outside the core a record is reached from, while a fit asks and makes its model."""
    private, found, looked = [], [], []
    take = PrivateTable.__init__

    def taken(self, source, **bound):
        held = getattr(source, "columns", source)
        private.extend(column.to_numpy() for column in held.values())
        take(self, source, **bound)

    def look():
        frame = sys._getframe(2)
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if module.startswith("sdv_privpgd.") and not module.startswith(CORE):
                looked.append(module)
                found.extend(f"{module}, {each}" for each in held_by(frame, private))
            frame = frame.f_back

    def looking(function):
        def called(*args, **settings):
            look()
            return function(*args, **settings)

        return called

    def encoded(*args, encode=boundary.encode_table):
        private.append(encode(*args))
        look()
        return private[-1]

    with monkeypatch.context() as patch:
        patch.setattr(PrivateTable, "__init__", taken)
        patch.setattr(boundary, "encode_table", encoded)
        for name in ("measure", "discover", "select"):
            patch.setattr(Curator, name, looking(getattr(Curator, name)))
        patch.setattr(pipeline, "fit", looking(pipeline.fit))
        with quiet():
            fit(table)
    assert {"sdv_privpgd.fitting.fit", "sdv_privpgd.discovery.plan"} <= set(looked)
    return found


def through_the_door(table):
    columns = {
        "ward": Categorical(["A", "B"]),
        "town": Categorical(),
        "age": Numerical(0, 99),
        "weight": Numerical(),
        "seen": Datetime(),
        "ill": Boolean(),
    }
    fit_table(table, columns, 5.0, method=MST(engine=PrivatePGM()), allow_lost=list(columns))


def through_sdv(table):
    facts = {name: {"sdtype": "categorical"} for name in ("ward", "town")}
    facts |= {name: {"sdtype": "numerical"} for name in ("age", "weight")}
    facts |= {"seen": {"sdtype": "datetime"}, "ill": {"sdtype": "boolean"}}
    metadata = sdv_tables.metadata_of({name: facts[name] for name in table.columns})
    MSTSynthesizer(metadata, 5.0, verbose=False).fit(table, allow_lost=list(table))


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    made = made_up(
        600, ward="AB", town="xy", age=(20, 60), weight=rng.exponential(30, 600), ill=0.5
    )
    days = pd.to_timedelta(rng.integers(0, 900, 600), "D")
    return made.assign(seen=pd.Timestamp("2020-05-05") + days).astype(
        {"town": object, "ward": object}
    )


@pytest.mark.parametrize("fit", [through_the_door, through_sdv])
class TestWhileAFitRuns:
    def test_nobody_outside_the_core_holds_a_record(self, fit, table, monkeypatch):
        assert holders(fit, table, monkeypatch) == []

    def test_one_who_did_would_be_found(self, fit, table, monkeypatch):
        discover = Fit.discover

        def holding(self, private, *rest, **more):
            self.kept = private._source.columns["age"]
            discover(self, private, *rest, **more)

        monkeypatch.setattr(Fit, "discover", holding)
        assert any("self" in each for each in holders(fit, table, monkeypatch))


CANARY = pd.DataFrame({"a": ["CANARYTEXT", "B"], "b": [98765, 2]})
SCHEMA = Schema.from_sdv(
    {"a": {"sdtype": "categorical"}, "b": {"sdtype": "boolean"}},
    public_domain={"a": {"range_values": ["B", "CANARYTEXT"]}},
)


def shared(adjacency=Adjacency.REPLACE_ONE):
    return FitLedger(PrivacyLedger.open(1.0, 1e-5, adjacency))


@pytest.mark.parametrize(
    "held", [PrivateTable(dict(CANARY.items())), EncodedTable(CANARY)], ids=["table", "codes"]
)
class TestOpaqueTables:
    def test_it_shows_nothing_and_is_never_pickled(self, held):
        for shown in (repr(held), str(held), f"{held}"):
            assert "CANARY" not in shown
            assert shown == f"{type(held).__name__}()"
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(held)
        assert not hasattr(held, "__dict__")

    def test_its_number_of_rows_is_told_where_it_is_public(self, held):
        assert held.known_rows(Adjacency.REPLACE_ONE) == 2
        assert held.known_rows(Adjacency.ADD_REMOVE) is None


class TestCuratorsOfATable:
    def test_one_answers_for_the_codes_of_a_schema(self):
        own = shared()
        curator = PrivateTable(dict(CANARY.items())).curator(SCHEMA, own)
        assert curator.domain == SCHEMA.domain()
        assert curator.ledger is own.ledger
        assert curator._dataset.counts(("a",)).tolist() == [1, 1, 0]

    def test_encoded_columns_may_come_in_any_order(self):
        codes = pd.DataFrame({"b": [1, 2, 0], "a": [0, 1, 1]})
        for table in (codes, codes[["a", "b"]]):
            curator = EncodedTable(table).curator(SCHEMA, shared())
            assert curator._dataset.counts(("a", "b")).sum() == 3
            assert curator._dataset.counts(("a",)).tolist() == [1, 2, 0]

    def test_without_a_table_it_knows_what_was_answered(self):
        (known,) = (
            PrivateTable(dict(CANARY.items()))
            .curator(SCHEMA, shared())
            .measure([CountQuery()], 0, what="rows")
        )
        curator = boundary.without_table(SCHEMA, shared(), [known])
        assert curator.measurements == (known,)
        assert curator._dataset.counts(()) == 0

    def test_a_table_of_no_columns_has_no_rows(self):
        assert PrivateTable({}).known_rows(Adjacency.REPLACE_ONE) == 0


FACTS = {"a": CategoryFacts(values=("B",)), "b": NumberFacts()}


class TestOpening:
    COLUMNS: ClassVar = {"a": {"sdtype": "categorical"}, "b": {"sdtype": "numerical"}}

    def test_columns_are_taken_by_their_described_names_and_order(self):
        table, errors = PrivateTable.opened(CANARY[["b", "a"]], self.COLUMNS, FACTS)
        assert errors == []
        assert sorted(table._source.names) == ["a", "b"]

    @pytest.mark.parametrize(
        ("table", "said"),
        [
            (CANARY.assign(c=1), r"\['c'\] are not present in the metadata"),
            (CANARY[["a"]], r"\['b'\] are missing in the data"),
            (CANARY[["a", "b", "a"]], r"\['a'\] are there more than once"),
            (
                CANARY.assign(b=pd.to_timedelta([98765, 2])),
                "No type of column reads .*'timedelta64",
            ),
        ],
    )
    def test_what_does_not_fit_is_said_without_a_value_and_nothing_is_kept(self, table, said):
        opened, (error,) = PrivateTable.opened(table, self.COLUMNS, FACTS)
        assert re.search(said, error)
        assert "98765" not in error
        assert "CANARY" not in error
        assert opened.known_rows(Adjacency.REPLACE_ONE) == 0

    def test_dtypes_that_no_cell_chose_are_kept_without_values(self):
        own = {
            "a": CANARY["a"].astype("category"),
            "b": CANARY["b"].astype("Int64"),
            "c": CANARY["b"],
            "d": CANARY["b"],
            "e": CANARY["b"],
        }
        ids = {"c": {"sdtype": "id"}, "e": {"sdtype": "id"}}
        described = {**self.COLUMNS, **ids, "d": {"sdtype": "numerical"}}
        kept = dtypes_kept(PrivateTable(own).dtypes, described, ["a", "b", "d"], keys=["c"])
        assert {name: str(dtype) for name, dtype in kept.items()} == {
            "a": "category", "b": "Int64", "c": "int64",
        }  # fmt: skip
        assert "CANARY" not in repr(kept["a"])

    @pytest.mark.parametrize("settings", [{"people": PEOPLE}, {"visits": ("a", "b")}, {}])
    def test_rows_of_people_are_asked_for_as_was_said(self, settings, monkeypatch):
        """The column that tells people apart is read, and needs a dtype that can be."""
        source = FrameSource({**CANARY, "who": pd.to_timedelta(CANARY["b"])})
        known = {**self.COLUMNS, "a": {"sdtype": "categorical", "range_values": ["B"]}}
        asked = []
        for name in ("open_source", "of_people", "of_visits"):
            noted = lambda *args, name=name, **rest: asked.append((name, *args, rest)) or source
            monkeypatch.setattr(boundary.locate, name, noted)
        opened, errors = PrivateTable.opened(CANARY, known, FACTS, has_others=True, **settings)
        person = "who" if "people" in settings else None
        assert (opened._source is source, len(errors)) == (person is None, int(person is not None))
        assert asked == [
            ("open_source", CANARY, known, person, {}),
            *((f"of_{each}", source, *rest, {"columns": known})
              for each, rest in settings.items()),
        ]  # fmt: skip

    def test_a_column_of_weights_is_there_and_read_as_numbers_if_it_is_not_declared(
        self, monkeypatch
    ):
        asked, opens = [], boundary.locate.open_source
        noted = lambda table, told, name: asked.append((told, name)) or opens(table, told, name)
        monkeypatch.setattr(boundary.locate, "open_source", noted)
        settings = {"columns": self.COLUMNS, "facts": FACTS, "has_others": True}
        for name in ("w", "b"):
            weights = Weights(name, 1.0, 9.0)
            table, errors = PrivateTable.opened(CANARY.assign(w=1), people=weights, **settings)
            assert (table._bound, table._weighing, errors) == (weights, (name, weights), [])
        assert asked == [({**self.COLUMNS, "w": {"sdtype": "numerical"}}, "w"), (self.COLUMNS, "b")]
        with pytest.raises(SourceError, match=r"no column 'w' to weigh rows by\.$"):
            PrivateTable.opened(CANARY, people=Weights("w", 1.0, 9.0), **settings)

    def test_tables_that_belong_together_are_rows_of_families_and_pairs(self, monkeypatch):
        own, row, pair, key = (FrameSource({"a": CANARY["a"]}) for _ in range(4))
        asked, rest = [], ("tree", "columns", "siblings", 3, "clocks")
        noted = lambda *said: (
            asked.append(said) or ({"homes": row}, {"people": pair}, {"homes": key})
        )
        monkeypatch.setattr(boundary.locate, "of_families", noted)
        rows, pairs, keys = PrivateTable.together({"homes": PrivateTable(own)}, *rest)
        assert asked == [({"homes": own}, *rest)]
        found = rows["homes"], pairs["people"], keys["homes"]
        assert [each._source for each in found] == [row, pair, key]


class TestBounds:
    weighed = PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, 3, people="who", weighed=True)

    def test_columns_may_be_rows_of_people_that_are_counted(self):
        columns = {"number": pd.Series([None, "B"]), "b": CANARY["b"]}
        table = PrivateTable(columns, bound=PEOPLE)
        assert table._weighing == ("number_", PEOPLE)
        assert table._source.names == ["number", "b"]
        assert table._source.columns["number_"].tolist() == [1, 1]
        plain = PrivateTable(columns, bound=("who", 3, False))
        assert (plain._weighing, list(plain._source.columns)) == (None, ["number", "b"])

    def test_made_up_rows_count_as_one_where_rows_have_weights(self):
        weights = Weights("number", 1.0, 30.0)
        ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, weights=weights)
        codes = pd.DataFrame({"a": [1, 0], "b": [2, 2]})
        tables = (
            PrivateTable({"number": CANARY["b"], **CANARY}, bound=weights),
            EncodedTable(codes, bound=weights),
        )
        for table in tables:
            counted = table.curator(SCHEMA, FitLedger(ledger))._dataset.counts(("a",))
            assert counted.tolist() == [3_000, 3_000, 0]
            with pytest.raises(ValueError, match="people"):
                table.curator(SCHEMA, FitLedger(self.weighed))
        none = boundary.without_table(SCHEMA, FitLedger(ledger), [])
        assert none._dataset.units == 3_000
        assert not none._dataset.counts(())

    @pytest.mark.parametrize(
        "table",
        [
            lambda bound: PrivateTable(dict(CANARY.items()), bound=bound),
            lambda bound: EncodedTable(pd.DataFrame({"a": [1, 0], "b": [2, 2]}), bound=bound),
        ],
    )
    def test_ledger_of_another_bound_are_refused(self, table):
        counted = table(PEOPLE).curator(SCHEMA, FitLedger(self.weighed))._dataset.counts(("a",))
        assert (counted / self.weighed.units).tolist() == [1, 1, 0]
        for bound, ledger in ((None, self.weighed), (PEOPLE, shared().ledger)):
            with pytest.raises(ValueError, match="people"):
                table(bound).curator(SCHEMA, FitLedger(ledger))
        with pytest.raises(ValueError, match="people"):
            PrivateTable(dict(CANARY.items())).first_queries([], FitLedger(self.weighed))

    def test_codes_may_be_those_of_people_of_so_many_rows(self):
        table = EncodedTable(pd.DataFrame({"a": [1, 0], "b": [2, 2]}), bound=PEOPLE, rows=2)
        curator = table.curator(SCHEMA, FitLedger(self.weighed))
        assert (curator._dataset.counts(("a",)) / self.weighed.units).tolist() == [0.5, 0.5, 0]
        none = boundary.without_table(SCHEMA, FitLedger(self.weighed), [])
        assert none._dataset.units == self.weighed.units
        assert none._dataset.counts(("a", "b")).shape == (3, 3)


def test_what_was_known_is_passed_on_and_what_is_read_is_a_stage():
    stages = []
    seen = lambda items, stage: stages.append(stage) or items
    table = PrivateTable(dict(CANARY.items()))
    (known,) = table.curator(SCHEMA, shared()).measure([CountQuery()], 0, what="rows")
    codes = EncodedTable(pd.DataFrame({"a": [1, 0], "b": [2, 2]}))
    for each in (table, codes):
        curator = each.curator(SCHEMA, shared(), known=[known], progress=seen)
        assert curator.measurements == (known,)
    assert table.codes(SCHEMA, seen).tolist() == [[1, 2], [0, 2]]
    table.first_queries([], shared(), seen)
    weighed = PrivateTable(dict(CANARY.items()), bound=PEOPLE)
    weighed.first_queries([], FitLedger(TestBounds.weighed), seen)
    weighed.curator(SCHEMA, FitLedger(TestBounds.weighed), progress=seen)
    assert stages == ["encode", "encode", "look", "look", "encode"]


def test_rows_are_coded_in_memory_or_where_they_are():
    workers = type("Workers", (), {"total": len, "of_people": len})()
    for source, records in ((dict(CANARY.items()), Dataset), (workers, ClusterRecords)):
        held = PrivateTable(source).curator(SCHEMA, shared())._dataset
        assert type(held) is records
    assert held._source is workers


def test_dtypes_say_whether_dates_have_zones_and_times():
    columns = {
        "days": pd.Series([None], dtype=pd.ArrowDtype(pa.date32())),
        "zone": pd.Series([None], dtype="datetime64[ns, Asia/Tokyo]"),
    }
    table = PrivateTable(columns)
    assert [is_of_days(table.dtypes[name]) for name in columns] == [True, False]
    assert [is_aware(table.dtypes[name]) for name in columns] == [False, True]


def test_codes_of_rows_that_are_not_in_memory_are_refused():
    with pytest.raises(SourceError, match="in memory alone"):
        PrivateTable(PeopleSource(FrameSource(dict(CANARY.items())), "a", 1)).codes(SCHEMA)
