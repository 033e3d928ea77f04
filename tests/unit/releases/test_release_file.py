"""Release files: what is written comes back, and what was tampered with does not."""

import io
import json
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from made_up import made_up

from sdv_privpgd import Boolean, Categorical, Measured, Numerical, combine, measure
from sdv_privpgd.base.files import digest_of, sealed
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.privacy.queries import DependenceQuery, QuadrantQuery
from sdv_privpgd.releases.site_release import require_agreement

COLUMNS = {
    "ward": Categorical(["A", "B", "C"]),
    "age": Numerical(0, 99, decimal_places=0, num_bins=8),
    "ill": Boolean(),
}


def table(num_rows=600, seed=0):
    return made_up(num_rows, seed, ward="ABC", age=(0, 100), ill=0.3)


@pytest.fixture(scope="module")
def measured():
    return measure(table(), COLUMNS, 1.0, site="North", method=PrivPGD())


@pytest.fixture
def path(measured, tmp_path):
    return measured.save(tmp_path / "north.zip")


def sealed_anew(path):
    """The same file with the digest that it has now, as whoever tampers can write it."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = sealed(b"")
    body = path.read_bytes()[: -len(sealed(b""))]
    path.write_bytes(body + sealed(body))
    return path


def changed(path, change=lambda facts: facts, arrays=None, names=lambda name: name):
    """The same file with other JSON, or other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    facts = json.loads(members["release.json"])
    change(facts)
    facts["ledger"]["digest"] = digest_of(facts["ledger"])  # who tampers can write it anew
    members["release.json"] = json.dumps(facts).encode()
    members |= arrays or {}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if names(name) is not None:
                archive.writestr(names(name), content)
    return sealed_anew(path)


def array(content, **settings):
    out = io.BytesIO()
    np.save(out, content, **settings)
    return out.getvalue()


def test_a_release_comes_back_to_the_bit(measured, path, tmp_path):
    read = Measured.load(path)
    assert read.ledger == measured.ledger
    assert read.schema == measured.schema
    assert (read.site, read.date, read.strategy) == ("North", measured.date, measured.strategy)
    assert read.digest == measured.digest
    for one, two in zip(read.answers, measured.answers, strict=True):
        assert one.query == two.query
        assert one.stddev == two.stddev
        np.testing.assert_array_equal(one.answer, two.answer)
    assert read.save(tmp_path / "again.zip").read_bytes() == path.read_bytes()
    assert repr(read) == "Measured('North': 600 rows, 3 columns, epsilon 1)"
    with zipfile.ZipFile(path) as archive:  # it holds nothing but JSON and whole numbers
        for name in set(archive.namelist()) - {"release.json"}:
            found = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
            assert found.dtype == np.int64


def test_a_pickle_in_it_is_not_run(path):
    class Bad:
        def __reduce__(self):
            return (pytest.fail, ("it was run",))

    bad = np.array([Bad()], dtype=object)
    changed(path, arrays={"answers/00001.npy": array(bad, allow_pickle=True)})
    with pytest.raises(ValueError, match="no release file that can be read"):
        Measured.load(path)
    path.write_bytes(pickle.dumps(3))
    with pytest.raises(ValueError, match="it is a pickle"):
        Measured.load(path)


@pytest.mark.parametrize(
    ("place", "change", "told"),
    [
        (("answers", 1, "stddev"), lambda stddev: stddev / 2, "has not paid for"),
        (("answers",), lambda answers: [*answers, answers[1]], "has not paid for"),
        (("ledger", "charges", 1, "mu_squared"), "1/1000000", "less than its noise costs"),
        (("answers", 1, "columns"), ["ward", "wage"], "wage"),
        (("answers", 1, "columns"), ["ward", "ward"], "different columns"),
        (("answers", 1, "asks"), "everything", "'everything'"),
        (("answers", -1, "groups", "ward"), [0.5, 1, 2, 0], "a whole number"),
        (("answers", -1, "groups", "ward"), [0, 1, 2, 10**6], "below that of codes"),
        (("ledger", "charges", 1, "delta"), "1e999", "delta above 1"),
        (("version",), 2, "version 2"),
        (("format",), "a table", "format is not"),
        (("answers", 1, "stddev"), -1.0, "not negative"),
        (("columns", "ward"), {"sdtype": "categorical"}, "public domain"),
    ],
)
def test_what_was_tampered_with_is_refused(path, place, change, told):
    def tamper(facts):
        *outer, last = place
        for name in outer:
            facts = facts[name]
        facts[last] = change(facts[last]) if callable(change) else change

    with pytest.raises(ValueError, match=told):
        Measured.load(changed(path, tamper))


ALTERED = {
    "raised": lambda counts: counts + 1_000,
    "tripled": lambda counts: 3 * counts,
    "reversed": lambda counts: np.flip(counts),
    "far below 0": lambda counts: np.where(np.arange(counts.size) == 0, -(2**60), counts.flat),
    "turned": lambda counts: np.roll(counts, 1),
}


@pytest.mark.parametrize("change", ALTERED)
@pytest.mark.parametrize("method", ["privpgd", "mst"])
def test_counts_that_were_altered_are_found_by_the_other_tables(change, method, tmp_path):
    one = measure(table(5_000, 3), COLUMNS, 2.0, site="North", method=method)
    whole = one.save(tmp_path / "north.zip").read_bytes()
    assert Measured.load(tmp_path / "north.zip").digest == one.digest
    for place, answer in enumerate(one.answers):
        (tmp_path / "north.zip").write_bytes(whole)
        other = ALTERED[change](answer.answer).reshape(answer.answer.shape).astype("<i8")
        if np.array_equal(other, answer.answer):
            continue
        arrays = {f"answers/{place:05}.npy": array(other)}
        with pytest.raises(ValueError, match="altered"):
            Measured.load(changed(tmp_path / "north.zip", arrays=arrays))


def test_quadrants_that_were_altered_are_found_by_the_tables_of_codes():
    one = measure(table(300, 3), COLUMNS, 2.0, site="North")
    asked = [each for each in one.answers if isinstance(each.query, QuadrantQuery)]
    assert asked
    for each in asked:
        others = [other for other in one.answers if other is not each]
        require_agreement(one.domain, [*others, each])
        with pytest.raises(ValueError, match="altered"):
            require_agreement(one.domain, [*others, replace(each, answer=each.answer + 1_000)])


@pytest.mark.parametrize(
    "content",
    [
        np.zeros((4, 9)),  # no whole numbers
        np.zeros((9, 4), dtype=np.int64),
        np.zeros(100_000, dtype=np.int64),
    ],
)
def test_arrays_of_another_shape_or_kind_are_refused(path, content):
    with pytest.raises(ValueError, match=r"needs 64-bit integers|larger than it can be"):
        Measured.load(changed(path, arrays={"answers/00001.npy": array(content)}))


def test_a_missing_member_and_another_ending_are_told(measured, path, tmp_path):
    changed(path, names=lambda name: None if name == "answers/00001.npy" else name)
    with pytest.raises(ValueError, match="00001"):
        Measured.load(path)
    with pytest.raises(ValueError, match=r"ends in \.zip"):
        measured.save(tmp_path / "north.pkl")


@pytest.mark.parametrize("strategy", ["privsyn", "privmrf"])
def test_what_pairs_depend_comes_back_and_two_holders_combine(strategy, tmp_path):
    releases = []
    for seed, site in enumerate(["North", "South"]):
        one = measure(table(2_000, seed), COLUMNS, 4.0, site=site, method=strategy)
        read = Measured.load(one.save(tmp_path / f"{site}.zip"))
        asked = [each.query for each in read.answers if isinstance(each.query, DependenceQuery)]
        assert asked == [each.query for each in one.answers if each.query in asked]
        assert len(asked) == 3
        releases.append(read)
    if strategy == "privsyn":  # PrivMRF may choose other tables for each site
        assert combine(releases, engine="gum").num_rows == 4_000


@pytest.mark.filterwarnings("ignore:epsilon=")
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 100.0, 300.0])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("method", ["privpgd", "mst"])
def test_an_honest_release_agrees_with_itself(epsilon, adjacency, method):
    """Also where noise is nearly always 0: a 1 is no surprise there."""
    for seed, num_rows in enumerate((30, 600, 5_000)):
        one = measure(
            table(num_rows, seed), COLUMNS, epsilon, 1e-5,
            site="North", method=method, adjacency=adjacency,
        )  # fmt: skip
        require_agreement(one.domain, one.answers)
