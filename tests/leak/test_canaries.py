"""Sentinel values planted in the table occur nowhere outside it."""

import gc
import logging
import traceback
import warnings

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sdv_tables
from canaries import DAY, NUMBER, TEXT, WHOLE, traces
from made_up import heard, quiet
from sdv.metadata import Metadata

from sdv_privpgd import DomainMismatchError, PrivPGDSynthesizer, PublicDomainError
from sdv_privpgd.methods import DPCTGAN, DPDiffusion
from sdv_privpgd.methods.dp_sgd.networks import Adversarial, Diffusion
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset

DOMAIN = {
    **sdv_tables.PUBLIC_DOMAIN,
    "seen": {**sdv_tables.PUBLIC_DOMAIN["seen"], "range_min": "1990-01-01"},
}
"""A fit would stop if nearly all days were beyond their range."""


def canary_table(num_rows: int = 150) -> pd.DataFrame:
    table = sdv_tables.table(num_rows)
    table["id"] = [f"{TEXT}{row}" for row in range(num_rows)]
    table["mail"] = [f"{TEXT}{row}@x.example" for row in range(num_rows)]
    table.loc[0, "ward"] = TEXT
    table["income"] = table["income"].astype(float)
    table.loc[0, "income"] = NUMBER
    table.loc[1, "age"] = WHOLE
    table["seen"] = DAY
    return table


def assert_nothing_was_said(caught, caplog, capsys):
    """No canary is in what was warned of, logged or printed."""
    printed = capsys.readouterr()
    assert traces([str(warning.message) for warning in caught]) == []
    assert traces([record.getMessage() for record in caplog.records]) == []
    assert traces(printed.out + printed.err) == []


def test_the_scan_finds_each_canary_in_a_pickle_of_the_table():
    assert set(traces(cloudpickle.dumps(canary_table()))) == {TEXT, str(NUMBER), str(WHOLE), DAY}


def test_no_canary_leaves_a_fit(caplog, capsys, tmp_path):
    with heard() as caught, caplog.at_level(logging.DEBUG):
        synthesizer = PrivPGDSynthesizer(
            sdv_tables.metadata(), 1.0, public_domain=DOMAIN, verbose=True, **sdv_tables.SMALL
        )
        synthesizer.fit(canary_table())
        sample = synthesizer.sample(300)
        synthesizer.save(tmp_path / "model.pkl")
    # The planted day lies inside the declared range, so synthetic rows may have it by chance.
    assert traces(sample.drop(columns="seen").to_csv()) == []
    assert traces((tmp_path / "model.pkl").read_bytes()) == []
    assert_nothing_was_said(caught, caplog, capsys)
    assert traces(synthesizer.privacy_report()) == []
    assert traces(synthesizer.__dict__) == []


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", [DPDiffusion, DPCTGAN])
def test_no_canary_leaves_a_training(kind, fails, caplog, capsys, monkeypatch):
    """Also where the network's code warns of what it sees, and fails of it."""
    seen = []
    for network in (Diffusion, Adversarial):
        honest = network.losses

        def losses(self, codes, honest=honest):
            seen.append(1)
            warnings.warn(f"{TEXT} {codes}", stacklevel=1)
            if fails and len(seen) > 2:
                raise ValueError(f"{TEXT} {codes}")
            return honest(self, codes)

        monkeypatch.setattr(network, "losses", losses)
    with heard() as caught, caplog.at_level(logging.DEBUG):
        synthesizer = PrivPGDSynthesizer(
            sdv_tables.metadata(), 1.0, public_domain=DOMAIN, method=kind(steps=4, batch=50)
        )
        if fails:
            with pytest.raises(RuntimeError, match="Its budget is spent") as stopped:
                synthesizer.fit(canary_table())
            assert traces("".join(traceback.format_exception(stopped.value))) == []
            assert stopped.value.__cause__ is stopped.value.__context__ is None
        else:
            synthesizer.fit(canary_table())
            assert traces(synthesizer.sample(300).drop(columns="seen").to_csv()) == []
    assert len(seen) == (3 if fails else 4)
    assert traces(cloudpickle.dumps(synthesizer)) == []
    assert_nothing_was_said(caught, caplog, capsys)
    if not fails:
        assert traces(synthesizer.privacy_report()) == []


def test_no_canary_leaves_a_fit_that_discovers_the_domain(caplog, capsys, tmp_path):
    domain = {"seen": sdv_tables.PUBLIC_DOMAIN["seen"]}
    with heard() as caught, caplog.at_level(logging.DEBUG):
        synthesizer = PrivPGDSynthesizer(
            sdv_tables.metadata(), 5.0, public_domain=domain, **sdv_tables.SMALL
        )
        with pytest.raises(
            DomainMismatchError, match=r"outside the declared|no declared values"
        ) as stopped:
            synthesizer.fit(canary_table(3_000))
        synthesizer.resume(canary_table(3_000))
        sample = synthesizer.sample(300)
        synthesizer.save(tmp_path / "model.pkl")
        page = synthesizer.report().html()
    assert set(sample["ward"].dropna()) >= {"A", "B", "C"}, "nothing was discovered"
    assert traces(sample.drop(columns="seen").to_csv()) == []
    assert traces((tmp_path / "model.pkl").read_bytes()) == []
    assert_nothing_was_said(caught, caplog, capsys)
    assert traces(synthesizer.privacy_report() + page + str(stopped.value)) == []
    assert traces(synthesizer.__dict__) == []


def test_metadata_detected_on_the_table_is_stripped_before_any_fit(caplog):
    caplog.set_level(logging.DEBUG)
    table = canary_table()
    detected = Metadata.detect_from_dataframes({"table": table})
    assert traces(detected.to_dict()), "SDV's detection no longer reads values: simplify"
    caplog.clear()  # detection itself logs the metadata: that is the caller's act, not ours
    synthesizer = PrivPGDSynthesizer(detected, 1.0, discovery_share=0.0)
    assert traces(synthesizer.get_metadata().to_dict()) == []
    assert traces(synthesizer.get_metadata("modified").to_dict()) == []
    with quiet():
        assert traces(cloudpickle.dumps(synthesizer)) == []
    with pytest.raises(PublicDomainError) as raised:
        synthesizer.fit(table)
    assert traces(raised.value) == []
    assert traces([record.getMessage() for record in caplog.records]) == []


def test_the_caller_s_metadata_is_not_changed():
    detected = Metadata.detect_from_dataframes({"table": canary_table()})
    before = detected.to_dict()
    PrivPGDSynthesizer(detected, 1.0)
    assert detected.to_dict() == before


@pytest.mark.parametrize(
    "broken",
    [
        lambda table: table.drop(columns="age"),
        lambda table: table.assign(extra=TEXT),
        lambda table: {"other": table},
        lambda table: table.to_numpy(),
        lambda table: table.to_dict(),
        lambda table: [table],
    ],
)
def test_errors_name_columns_only(broken):
    synthesizer = PrivPGDSynthesizer(
        sdv_tables.metadata(), 1.0, public_domain=DOMAIN, **sdv_tables.SMALL
    )
    with pytest.raises(Exception) as raised:  # noqa: PT011 (whatever it is, it must be clean)
        synthesizer.fit(broken(canary_table()))
    assert traces(raised.value) == []
    assert str(len(canary_table())) not in str(raised.value)


def test_nothing_that_is_kept_reaches_the_private_table():
    synthesizer = PrivPGDSynthesizer(
        sdv_tables.metadata(), 1.0, public_domain=DOMAIN, **sdv_tables.SMALL
    )
    synthesizer.fit(canary_table())
    seen, queue = set(), [synthesizer.__dict__]
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, type) or callable(item):
            continue
        seen.add(id(item))
        assert not isinstance(item, (Dataset, Curator))
        if isinstance(item, np.ndarray):
            assert item.dtype != object or TEXT not in repr(item)
        queue.extend(gc.get_referents(item))
