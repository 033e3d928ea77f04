"""Simulates tables that belong together, with a truth that is known.

``shop``: customers, their orders in time, and the lines of these. Three of five customers have no
order, and a few have many. A customer says how many orders there are. Members order again after 20
days in the mean, others after 58, and prices are those of the region.
``hospital``: patients with visits and with prescriptions, and wards that are public. Most visits of
a patient are in one ward, as long as each other, and drugs follow from the patient's illness.
"""

import numpy as np
import pandas as pd

from sdv_privpgd import Boolean, Categorical, Datetime, Link, Numerical, Ordinal


def shop(number, seed=0):
    """What is declared, the links, and the tables with so many customers."""
    rng = np.random.default_rng(seed)
    customers = pd.DataFrame(
        {
            "customer": [f"C{each:06d}" for each in rng.permutation(10 * number)[:number]],
            "region": rng.choice(list("NESW"), number, p=[0.4, 0.3, 0.2, 0.1]),
            "member": rng.random(number) < 0.4,
            "joined": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 730, number), "D"),
        }
    )
    many = np.floor(rng.pareto(1.2, number) + 1).clip(max=400).astype(int)
    customers["orders"] = np.where(rng.random(number) < 0.6, 0, many)
    whose = np.repeat(np.arange(number), customers["orders"])
    mean = np.where(customers["member"], 19, 59)[whose]
    gaps = rng.exponential(mean).round() + 1
    since = pd.Series(gaps).groupby(whose).cumsum().to_numpy()
    days = customers["joined"].to_numpy()[whose] + pd.to_timedelta(since, "D").to_numpy()
    usual = rng.choice(["web", "shop", "phone"], number, p=[0.5, 0.35, 0.15])
    channel = np.where(
        rng.random(len(whose)) < 0.55,
        usual[whose],
        rng.choice(["web", "shop", "phone"], len(whose)),
    )
    region = customers["region"].to_numpy()[whose]
    level = pd.Series(region).map({"N": 3.0, "E": 3.5, "S": 4.0, "W": 5.0}).to_numpy()
    orders = pd.DataFrame(
        {
            "order": rng.permutation(len(whose)),
            "customer": customers["customer"].to_numpy()[whose],
            "date": days,
            "channel": channel,
            "paid": np.exp(rng.normal(level, 0.7)).round(2),
        }
    )
    orders = orders[orders["date"] <= "2023-12-31"].reset_index(drop=True)
    customers["orders"] = (
        customers["customer"].map(orders["customer"].value_counts()).fillna(0).astype(int)
    )
    lines = 1 + rng.poisson(np.where(orders["channel"] == "web", 0.5, 1.5))
    at = np.repeat(np.arange(len(orders)), lines)
    kind = rng.choice(["book", "food", "tool", "toy"], len(at), p=[0.4, 0.3, 0.2, 0.1])
    kind = np.where((orders["channel"].to_numpy()[at] == "phone"), "food", kind)
    level = pd.Series(kind).map({"book": 2.5, "food": 1.0, "tool": 4.0, "toy": 3.0})
    lines = pd.DataFrame(
        {
            "order": orders["order"].to_numpy()[at],
            "kind": kind,
            "pieces": 1 + rng.poisson(np.where(kind == "food", 3, 0.4)),
            "price": np.exp(rng.normal(level, 0.5)).round(2),
        }
    )
    days = Datetime("2020-01-01", "2023-12-31")
    declared = {
        "customers": {
            "region": Categorical(list("NESW")),
            "member": Boolean(),
            "joined": Datetime("2020-01-01", "2021-12-31"),
            "orders": Numerical(0, 400, decimal_places=0),
        },
        "orders": {
            "date": days,
            "channel": Categorical(["web", "shop", "phone"]),
            "paid": Numerical(0, 5_000, decimal_places=2),
        },
        "lines": {
            "kind": Categorical(["book", "food", "tool", "toy"]),
            "pieces": Numerical(1, 20, decimal_places=0),
            "price": Numerical(0, 500, decimal_places=2),
        },
    }
    links = [
        Link("customers", "orders", "customer", 12, order="date", start="joined", count="orders"),
        Link("orders", "lines", "order", 5),
    ]
    return declared, links, {"customers": customers, "orders": orders, "lines": lines}


def hospital(number, seed=0):
    """The same of patients, visits and prescriptions; of wards only the keys are declared."""
    rng = np.random.default_rng(seed)
    illness = rng.choice(["heart", "lung", "bone", "skin"], number, p=[0.4, 0.3, 0.2, 0.1])
    age = np.where(illness == "heart", rng.normal(70, 10, number), rng.normal(45, 18, number))
    patients = pd.DataFrame(
        {
            "patient": np.arange(number),
            "born": 2023 - age.round().clip(0, 100).astype(int),
            "woman": rng.random(number) < 0.5,
            "illness": illness,
        }
    )
    visits = rng.poisson(np.where(illness == "heart", 3, 1))
    whose = np.repeat(np.arange(number), visits)
    wards = np.array([f"ward {each:02d}" for each in range(12)])
    home = np.where(illness == "heart", rng.integers(0, 3, number), rng.integers(3, 12, number))
    ward = np.where(rng.random(len(whose)) < 0.8, home[whose], rng.integers(0, 12, len(whose)))
    stay = 1 + rng.geometric(np.where(illness == "bone", 0.1, 0.3))[whose]
    visits = pd.DataFrame(
        {
            "patient": whose,
            "admitted": pd.Timestamp("2022-01-01")
            + pd.to_timedelta(rng.integers(0, 700, len(whose)), "D"),
            "ward": wards[ward],
            "days": np.where(rng.random(len(whose)) < 0.05, np.nan, stay),
        }
    )
    given = np.minimum(rng.geometric(0.4, number) - 1, 30) * (rng.random(number) < 0.7)
    at = np.repeat(np.arange(number), given)
    own = pd.Series(illness).map({"heart": "A", "lung": "B", "bone": "C", "skin": "D"}).to_numpy()
    drug = np.where(rng.random(len(at)) < 0.7, own[at], rng.choice(list("ABCDEF"), len(at)))
    prescriptions = pd.DataFrame(
        {
            "patient": at,
            "drug": drug,
            "dose": rng.integers(1, 5, len(at)) + 3 * (drug == "A"),
            "cost": np.exp(rng.normal(3 + (drug == "C"), 0.6)).round(2),
        }
    )
    declared = {
        "patients": {
            "born": Numerical(1920, 2023, decimal_places=0),
            "woman": Boolean(),
            "illness": Categorical(["heart", "lung", "bone", "skin"]),
        },
        "visits": {
            "admitted": Datetime("2022-01-01", "2023-12-31"),
            "ward": Categorical(wards.tolist()),
            "days": Numerical(1, 120, decimal_places=0),
        },
        "prescriptions": {
            "drug": Categorical(list("ABCDEF")),
            "dose": Ordinal(list(range(1, 8))),
            "cost": Numerical(0, 1_000, decimal_places=2),
        },
    }
    links = [
        Link("patients", "visits", "patient", 8, order="admitted"),
        Link("patients", "prescriptions", "patient", 10),
    ]
    return declared, links, {"patients": patients, "visits": visits, "prescriptions": prescriptions}


def shown(tables):
    """What is right by construction, of the shop or of the hospital, as numbers to compare."""
    if "patients" in tables:
        rows = tables["visits"].merge(tables["patients"], on="patient")
        bone = rows["illness"] == "bone"
        in_heart = rows["ward"].isin(["ward 00", "ward 01", "ward 02"])
        found = {"bones in heart's wards": in_heart[bone].mean(), "one ward": _same(rows, "ward")}
        return found | {"days of bones": rows["days"][bone].mean()}
    customers = tables["customers"]
    rows = tables["orders"].merge(customers, on="customer")
    rows = rows.sort_values(["customer", "date"], kind="stable")
    days = rows.groupby("customer")["date"].diff().dt.days.groupby(rows["member"]).mean()
    held = customers["customer"].map(rows["customer"].value_counts()).fillna(0)
    return {
        "gap of members": days[True],
        "of others": days[False],
        "paid in W": rows["paid"][rows["region"] == "W"].mean(),
        "in N": rows["paid"][rows["region"] == "N"].mean(),
        "one channel": _same(rows, "channel"),
        "agree": (held.clip(upper=12) == customers["orders"].clip(upper=12)).mean(),
    }


def _same(rows, name):
    """How often the first row of a parent and the second have the same."""
    key = "patient" if "patient" in rows else "customer"
    rank = rows.groupby(key).cumcount()
    first, second = (rows[rank == each].set_index(key)[name] for each in (0, 1))
    both = pd.concat([first, second], axis=1, join="inner")
    return (both.iloc[:, 0] == both.iloc[:, 1]).mean()
