"""One model of several holders: what it promises, and what cannot be put together."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Boolean, Categorical, Numerical, PublicDomainError, combine, measure

COLUMNS = {"ward": Categorical(["A", "B"]), "age": Numerical(0, 99, decimal_places=0, num_bins=6)}


def table(num_rows=900, seed=0, share=0.5):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "ward": np.where(rng.random(num_rows) < share, "A", "B"),
            "age": rng.integers(0, 100, num_rows),
        }
    )


def released(holder, *, epsilon=2.0, columns=COLUMNS, **settings):
    return measure(table(seed=len(holder)), columns, epsilon, holder=holder, **settings)


NORTH, SOUTH = released("North"), released("South", epsilon=1.0)


def test_the_sum_of_all_rows_is_modelled(tmp_path):
    parts = {"North": table(4000, share=0.9), "South": table(1000, seed=1, share=0.1)}
    paths = [
        measure(part, COLUMNS, 5.0, holder=name).save(tmp_path / f"{name}.zip")
        for name, part in parts.items()
    ]
    combined = combine(paths, engine="pgm")
    assert combined.num_rows == 5000
    assert combined.sample(2000)["ward"].eq("A").mean() == pytest.approx(0.74, abs=0.05)
    answer = combined.answer("share", where={"ward": "A"})
    low, high = answer.interval("table", level=0.999999)
    truth = pd.concat(parts.values())["ward"].eq("A").mean()
    assert low < truth < high
    assert [holder.name for holder in combined.holders] == ["North", "South"]


def test_everybody_has_the_epsilon_of_the_holders_that_they_are_at():
    combined = combine([NORTH, SOUTH], engine="pgm")
    assert combined.epsilon("North") == pytest.approx(2.0, abs=1e-9)
    assert combined.epsilon("South") == pytest.approx(1.0, abs=1e-9)
    assert combined.epsilon() == combined.epsilon("North")
    # In mu^2 two ledgers add up as two fits of one table do.
    together = NORTH.ledger.followed_by(SOUTH.ledger).spent()
    assert combined.epsilon("North", "South") == pytest.approx(together, abs=1e-9)
    with pytest.raises(ValueError, match="No holder is called"):
        combined.epsilon("West")


def test_the_report_says_what_is_promised_to_whom():
    combined = combine([NORTH, SOUTH], engine="pgm")
    report = combined.report()
    text, page = str(report), report.html()
    assert "Whoever has rows at one holder alone is protected by" in page
    for said in ("at most 2 at its", f"epsilon {combined.epsilon('North', 'South'):.4g}"):
        assert said in " ".join(text.split())
        assert said in page
    facts = report.to_dict()
    assert [holder["holder"] for holder in facts["holders"]] == ["North", "South"]
    assert facts["epsilon_at_all_holders"] == combined.epsilon("North", "South")
    assert combined.privacy_report() == text


def test_it_can_be_kept_and_repeats_itself():
    combined = combine([NORTH, SOUTH], engine="pgm", seed=3)
    again = pickle.loads(pickle.dumps(combined))
    assert again.sample(20).equals(combine([NORTH, SOUTH], engine="pgm", seed=3).sample(20))
    found = combined.bootstrap(lambda rows: rows["ward"].eq("A").mean(), 3, num_processes=1)
    assert 0 < found.estimate < 1


def test_private_numbers_of_rows_add_up_with_their_noise():
    releases = [released(name, adjacency="add_remove", delta=1e-5) for name in ("North", "South")]
    combined = combine(releases, engine="pgm")
    assert combined.num_rows == pytest.approx(1800, abs=300)
    assert "±" in combined.privacy_report()


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (released("South", columns={"ward": COLUMNS["ward"]}), r"other columns: \['age'\]"),
        (released("South", columns=dict(reversed(COLUMNS.items()))), "in another order"),
        (
            released("South", columns=COLUMNS | {"ward": Categorical(["A", "C"])}),
            r"other values of \['ward'\]",
        ),
        (
            released("South", adjacency="add_remove", delta=1e-5),
            "'replace_one' and 'South' under 'add_remove'",
        ),
        (released("North"), "'North' is there twice"),
        (replace(NORTH, holder="Copy"), r"is there as \['North', 'Copy'\]"),
        (released("South", method="mst+particles"), None),
    ],
)
def test_what_cannot_be_combined_is_told(other, told):
    if told is None:  # what only some have measured is left out, or used where it can be
        assert combine([NORTH, other], engine="pgm").num_rows == 1800
        return
    with pytest.raises(ValueError, match=told):
        combine([NORTH, other], engine="pgm")


def test_tables_that_not_all_have_measured_are_named():
    others = [released(name, method="independent") for name in ("South", "West")]
    with pytest.raises(ValueError, match="No table was measured by all"):
        combine([NORTH, others[0]], engine="pgm")
    three = {**COLUMNS, "ill": Boolean()}
    parts = [table().assign(ill=True), table().assign(ill=table()["ward"].eq("A"))]
    found = [
        measure(part, three, 5.0, holder=str(place), method="mst+particles")
        for place, part in enumerate(parts)
    ]
    combined = combine(found, engine="pgm")
    cliques = [set(each.query.clique) for each in combined.fitted.release.measurements[1:]]
    pairs = [
        {each.query.clique for each in one.answers[1:] if len(each.query.clique) == 2}
        for one in found
    ]
    lost = pairs[0] ^ pairs[1]
    assert [clique for clique in cliques if clique in lost] == []
    assert bool(lost) == any("left out" in said for said in combined.warnings)


@pytest.mark.parametrize("releases", [[], "north.zip", NORTH, [3]])
def test_other_things_than_releases_are_refused(releases):
    with pytest.raises(ValueError, match="combine takes"):
        combine(releases)


def test_the_engine_may_not_ask_for_more():
    from sdv_privpgd.methods import ParticleGradientDescent, ProtectedThreshold

    penalty = ProtectedThreshold({"age": 1.0}, b=0.2, weight=0.1)
    with pytest.raises(ValueError, match="protects a statistic"):
        combine([NORTH], engine=ParticleGradientDescent(penalties=(penalty,)))


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"holder": " "}, ValueError, "holder must name"),
        ({"columns": {"ward": Categorical()}}, PublicDomainError, "declare the same domain"),
        ({"columns": {}}, ValueError, "no column"),
        ({"columns": {"wage": Boolean()}}, ValueError, "missing in the data"),
        ({"table": table(0)}, ValueError, "no rows"),
        ({"table": "table.csv"}, ValueError, "There is no file"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"columns": {"ward": {"range_values": ["A"]}}}, ValueError, "sdtype"),
    ],
)
def test_what_cannot_be_measured_is_told_before_a_row_is_read(change, error, told):
    asked = {"table": table(), "columns": COLUMNS, "epsilon": 1.0, "holder": "North", **change}
    with pytest.raises(error, match=told):
        measure(**asked)


def test_dtypes_have_no_say_in_the_codes():
    plain, typed = table(), table().astype({"ward": "category", "age": "Int16"})
    releases = [measure(plain, COLUMNS, 1.0, holder="a"), measure(typed, COLUMNS, 1.0, holder="b")]
    assert combine(releases, engine="pgm").num_rows == 1800
