"""Threads that ask one curator at once are answered one after the other."""

import contextlib
import functools
import threading

from answers import open_curator

from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import (
    MarginalQuery,
)


class TestThreads:
    """Two threads meet in the middle of a charge: neither is lost."""

    def test_no_charge_is_lost(self, dataset, monkeypatch):
        curator = open_curator(dataset)
        record, both = PrivacyLedger.record, threading.Barrier(2)

        def slowly(ledger, charge):
            after = record(ledger, charge)
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.2)  # would be met by the other thread if it were let in
            return after

        monkeypatch.setattr(PrivacyLedger, "record", slowly)
        part = curator.ledger.budget / 4
        ask = functools.partial(curator.measure, [MarginalQuery(("a",))], part)
        threads = [threading.Thread(target=ask, kwargs={"what": name}) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {charge.what for charge in curator.ledger.charges} == {"one", "two"}
        assert curator.ledger.mu_squared == 2 * part
        assert len(curator.measurements) == 2
