"""Tables that belong together: whose rows they are leaves nothing but the noise."""

import copy
import json
import logging
import pickle
import re
import warnings

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from canaries import NUMBER, TEXT, WHOLE, traces
from interference import bar_into
from made_up import heard, relationship
from sdv.metadata import Metadata

from sdv_privpgd import (
    Boolean,
    Categorical,
    Key,
    Link,
    Numerical,
    PrivPGDMultiTableSynthesizer,
    fit_tables,
)
from sdv_privpgd.constraints import Inequality
from sdv_privpgd.inference import Question

LINKS = [
    Link("patients", "visits", "patient", 3, "id", numbered="no"),
    Link("visits", "drugs", "visit", 2),
    Link("patients", "bills", "id", 4, order="due", start="age", count="owes"),
]
COLUMNS = {
    "patients": {
        "id": Key("P[0-9]{4}"),
        "sex": Categorical(["f", "m"]),
        "age": Numerical(0, 99),
        "owes": Numerical(0, 9, decimal_places=0),
    },
    "visits": {
        "visit": Key(),
        "ward": Categorical(["A", "B"]),
        "days": Numerical(),
        "no": Numerical(1, 9, decimal_places=0),
    },
    "drugs": {"drug": Categorical(), "works": Boolean()},
    "bills": {"bill": Key(), "paid": Boolean(), "due": Numerical(0, 120)},
}
LOST = {"visits": ["days", "ward"], "drugs": ["drug"], "patients": ["age", "sex", "owes"]}
ASKED = {"bills": [Question(what="mean", of="due", where={"patients.sex": "f"})]}
UNPAID = {"bills": [Inequality("patients.age", "due")]}


def tables(patients=120, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.array([f"p{number}" for number in range(patients)], dtype=object)
    whose = rng.choice(ids, 2 * patients) if patients else ids
    visits = np.arange(len(whose)).astype(object)
    given = rng.choice(visits, 3 * patients) if patients else visits
    owed = rng.choice(ids, patients) if patients else ids
    return {
        "patients": pd.DataFrame(
            {
                "id": ids,
                "sex": rng.choice(["f", "m"], patients).astype(object),
                "age": rng.normal(50, 20, patients),
                "owes": rng.integers(0, 5, patients),
            }
        ),
        "visits": pd.DataFrame(
            {
                "visit": visits,
                "patient": whose,
                "ward": rng.choice(["A", "B"], len(whose)).astype(object),
                "days": np.exp(rng.normal(1, 1, len(whose))),
                "no": rng.integers(1, 5, len(whose)),
            }
        ),
        "drugs": pd.DataFrame(
            {
                "visit": given,
                "drug": rng.choice([f"drug {i}" for i in range(9)], len(given)).astype(object),
                "works": rng.random(len(given)) < 0.5,
            }
        ),
        "bills": pd.DataFrame(
            {
                "bill": np.arange(len(owed)).astype(object),
                "id": owed,
                "paid": rng.random(len(owed)) < 0.5,
                "due": rng.uniform(0, 120, len(owed)),
            }
        ),
    }  # fmt: skip


def orphans(own):
    return own | {"visits": own["visits"].assign(patient="CANARY")}


def null_keys(own):
    some, first = np.arange(len(own["visits"])) % 3 == 0, own["patients"].index < 9
    return own | {
        "visits": own["visits"].assign(patient=own["visits"]["patient"].mask(some)),
        "patients": own["patients"].assign(id=own["patients"]["id"].mask(first)),
        "drugs": own["drugs"].assign(visit=None),
    }  # fmt: skip


def doubled_keys(own):
    return own | {
        "patients": own["patients"].assign(id="p7"),
        "visits": own["visits"].assign(visit=own["visits"]["visit"] // 2),
    }


def many_children(own):
    return own | {
        "visits": own["visits"].assign(patient="p7"),
        "bills": own["bills"].assign(id="p7"),
    }


def other_spellings(own):
    return own | {"drugs": own["drugs"].assign(visit=own["drugs"]["visit"].map(" 0{}.0".format))}


def one_family_less(own):
    return own | {
        "patients": own["patients"].loc[own["patients"]["id"] != "p3"],
        "visits": own["visits"].loc[own["visits"]["patient"] != "p3"],
    }


def one_root_less(own):
    return own | {"patients": own["patients"].loc[own["patients"]["id"] != "p3"]}


def no_children(own):
    return own | {name: own[name].iloc[:0] for name in ("visits", "drugs", "bills")}


def no_root(own):
    return own | {"patients": own["patients"].iloc[:0]}


def nobody(own):
    return {name: each.iloc[:0] for name, each in own.items()}


def others(own):
    return tables(300, seed=7)


@pytest.fixture(scope="module")
def once():
    """Makes what several tests need once, by its name."""
    made = {}

    def of(name, make):
        if name not in made:
            made[name] = make()
        return made[name]

    return of


def observed(private, caplog, **more):
    told = []
    caplog.clear()
    with heard() as said:
        fitted = fit_tables(
            private, COLUMNS, LINKS, 1.0, 1e-5, allow_lost=LOST, progress=bar_into(told),
            method="independent", constraints=UNPAID, questions=ASKED, **more,
        )  # fmt: skip
    report = fitted.report()
    return {
        "told": told,
        "log": [record.getMessage() for record in caplog.records],
        "warnings": [str(each.message) for each in said],
        "model": pickle.dumps(fitted),
        "rows": {name: own.to_csv() for name, own in fitted.sample(40).items()},
        "dtypes": {n: own.dtypes.astype(str).to_dict() for n, own in fitted.sample(5).items()},
        "ledger": fitted.ledger.to_json(),
        "report": str(report),
        "numbers": json.dumps(report.to_dict()),
        "page": re.sub(r"\d{4}-\d\d-\d\d", "a day", report.html()),
        "number of rows": fitted.num_rows,
    }


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        orphans, null_keys, doubled_keys, many_children, other_spellings, one_family_less,
        one_root_less, no_children, no_root, nobody, others,
    ],
)  # fmt: skip
def test_nothing_depends_on_the_families(change, once, fixed_answers, caplog, **more):
    own = tables()
    first = once(f"observed with {[*more]}", lambda: observed(own, caplog, **more))
    other = observed(change(own), caplog, **more)
    assert {name: first[name] == other[name] for name in first} == dict.fromkeys(first, True)


@pytest.mark.long
@pytest.mark.parametrize("change", [many_children, others])
def test_nothing_depends_on_families_that_lean_on_public_ones(change, once, fixed_answers, caplog):
    prior = tables(200, 9)
    test_nothing_depends_on_the_families(change, once, fixed_answers, caplog, prior=prior)


@pytest.mark.long
def test_nothing_depends_on_the_families_through_sdv(fixed_answers, caplog, tmp_path):
    kinds = {"sex": "categorical", "age": "numerical", "owes": "numerical",
             "ward": "categorical", "days": "numerical",
             "drug": "categorical", "works": "boolean", "paid": "boolean"}  # fmt: skip
    keys = {"patients": "id", "visits": "visit", "bills": "bill"}
    own = tables()
    described = {
        name: {"columns": {each: {"sdtype": kinds.get(each, "id")} for each in own[name]}}
        | ({"primary_key": keys[name]} if name in keys else {})
        for name in own
    }
    relationships = [relationship(e.parent, e.parent_key, e.child, e.key) for e in LINKS]
    metadata = Metadata.load_from_dict({"tables": described, "relationships": relationships})
    synthesizer = PrivPGDMultiTableSynthesizer(
        metadata, 1.0, 1e-5, max_children=3, method="independent",
        public_domain={"patients": {"sex": {"range_values": ["f", "m"]}}},
    )  # fmt: skip
    found = []
    for change in (lambda same: same, null_keys, doubled_keys, nobody):
        caplog.clear()
        fitted = copy.deepcopy(synthesizer)
        with caplog.at_level(logging.DEBUG), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.fit(change(own), allow_lost={**LOST, "patients": ["age", "sex", "owes"]})
        logged = [re.sub(r"datetime\([^)]*\)", "now", each.getMessage()) for each in caplog.records]
        seen = [cloudpickle.dumps(fitted), logged, fitted.sample(30)["drugs"].to_csv()]
        found.append([*seen, fitted._table_sizes, str(fitted.report())])
    assert all(each == found[0] for each in found)


def test_no_canary_is_in_their_file():
    private = {name: each.astype(object) for name, each in tables().items()}
    private["patients"].loc[0, ["id", "sex"]] = TEXT
    private["visits"].loc[0, ["visit", "patient"]] = WHOLE
    private["visits"].loc[1, "days"] = NUMBER
    private["drugs"].loc[0, ["visit", "drug"]] = TEXT
    fitted = fit_tables(private, COLUMNS, LINKS, 5.0, 1e-5, allow_lost=LOST, method="independent")
    assert set(traces(pickle.dumps(private))) >= {TEXT, str(NUMBER), str(WHOLE)}
    assert traces(pickle.dumps(fitted)) == []
    assert traces(repr(fitted)) == []


@pytest.mark.long
def test_the_comparison_notices_a_leak(fixed_answers, caplog, monkeypatch):
    from sdv_privpgd.fitting.fit import Fit

    ask = Fit.ask

    def leaking(self, table, *rest, **more):
        object.__setattr__(self.settings, "seed", table._source.num_rows())
        return ask(self, table, *rest, **more)

    monkeypatch.setattr(Fit, "ask", leaking)
    assert observed(tables(), caplog) != observed(nobody(tables()), caplog)
