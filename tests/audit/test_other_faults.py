"""The audit finds faults in discovery, encoders, rows in order, releases and sums of charges.

Each is planted in the place of a core function, as in ``test_planted_faults.py``.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from answers import discovering, scaled

from sdv_privpgd import Boolean, Categorical, Numerical, People
from sdv_privpgd.audit import audit_fit, audit_measure
from sdv_privpgd.audit.checks import failed as failed_of
from sdv_privpgd.audit.recorder import Tape
from sdv_privpgd.audit.replay import recorded
from sdv_privpgd.audit.subjects import TableFit
from sdv_privpgd.audit.thresholds import alone_checks, threshold_checks
from sdv_privpgd.columns import encoders
from sdv_privpgd.columns.bins import SIGNED_POWERS
from sdv_privpgd.columns.readings import Reading
from sdv_privpgd.fitting.options import parse_options
from sdv_privpgd.methods import Independent
from sdv_privpgd.privacy import accounting, boundary, streams
from sdv_privpgd.privacy import curator as curating
from sdv_privpgd.privacy import ledger as ledgers
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.releases import site_release
from sdv_privpgd.sources import visits

pytestmark = pytest.mark.long

COLUMNS = {"ill": Boolean(), "town": Categorical()}
DECLARED = {"ill": Boolean(), "age": Numerical(0, 110, decimal_places=0, num_bins=12)}
IN_ORDER = {
    "ill": Boolean(),
    "ward": Categorical(["A", "B", "C"]),
    "day": Numerical(0, 9, decimal_places=0),
}
ORDER = {
    "adjacency": "add_remove",
    "delta": 1e-5,
    "people": People("who", max_rows=3, sequence_index="day", previous=["ward"]),
}


def subject(columns, **settings):
    return TableFit(*parse_options(columns, 6.0, **{"method": "independent+pgm", **settings}))


def failed(columns=DECLARED, **settings):
    known = {"epsilon": 6.0, "method": Independent(engine="pgm"), "discovery_share": 0}
    report = audit_fit(columns, runs=100, false_alarms=1e-7, **{**known, **settings})
    return set(report.to_dict()["failed"])


WEIGHED = {
    "adjacency": "add_remove",
    "delta": 1e-5,
    "people": People("who", max_rows=3, weighed=True),
}


class TestDiscovery:
    @pytest.fixture(scope="class")
    @staticmethod
    def honest():
        own = subject(COLUMNS)
        return recorded(own).tape.events, own.settings

    def found(self, events, settings, runs=600):
        return set(failed_of(threshold_checks(events, settings, runs, 1e-8)))

    def planted(self, columns=COLUMNS, **settings):
        """What is found where the fault was there when the fit was recorded."""
        own = subject(columns, **settings)
        return self.found(recorded(own).tape.events, own.settings)

    def test_nothing_is_found_where_all_is_right(self, honest):
        assert self.found(*honest, 2_000) == set()
        assert self.planted(**WEIGHED) == set()

    @pytest.mark.parametrize(
        "is_exact",
        [lambda value: value is None, lambda value: value is not None],
        ids=["missing", "values"],
    )
    def test_exact_numbers(self, is_exact, plant, honest):
        """Of missing cells; and of values, of which noise decides alone whether they come out."""

        def exact(true, found):
            return [(value, dict(true)[value] if is_exact(value) else n) for value, n in found]

        plant(Curator, "discover", discovering(exact))
        assert self.found(*honest) == {"counts released"}

    def test_rare_values_in_the_number_of_missing_cells(self, plant, honest):
        """As the true rest of all rows, with the noise of missing cells."""

        def with_rest(true, found):
            rest = sum(n for value, n in true if value not in dict(found))
            return [*found[:-1], (None, found[-1][1] + rest)]

        plant(Curator, "discover", discovering(with_rest))
        assert self.found(*honest) == {"counts released"}

    def test_noise_that_is_too_small(self, plant, honest):
        plant(curating, "rounded_gaussian", scaled(0.7))
        assert "counts released" in self.found(*honest)

    def test_a_threshold_for_one_row_of_several(self, plant):
        threshold, delta = curating.threshold_for, curating.thresholded_delta
        one = lambda ledger: replace(ledger, rows_per_person=1)
        plant(curating, "threshold_for", lambda s, d, k, own: threshold(s, d, k, one(own)))
        plant(curating, "thresholded_delta", lambda s, t, k, own: delta(s, t, k, one(own)))
        assert "thresholds" in self.planted(people=People(max_rows=3))

    def test_a_ledger_that_takes_a_person_for_one_row(self, plant):
        real = PrivacyLedger.open.__func__

        def opened(cls, epsilon, delta, adjacency, rows_per_person=1, **more):
            return real(cls, epsilon, delta, adjacency, 1, **more)

        plant(PrivacyLedger, "open", classmethod(opened))
        with pytest.raises(ValueError, match=r"people\.max_rows was 1 and is 3"):
            self.planted(people=People(max_rows=3))

    def test_a_threshold_for_one_column_of_several(self, plant):
        threshold, delta = curating.threshold_for, curating.thresholded_delta
        plant(curating, "threshold_for", lambda s, d, k, *more: threshold(s, d, 1, *more))
        plant(curating, "thresholded_delta", lambda s, t, k, *more: delta(s, t, 1, *more))
        assert "thresholds" in self.planted({**COLUMNS, "job": Categorical()})

    def test_the_undeclared_rest_from_true_counts(self, plant):
        """Whether it is worth a second question is decided by how many rows truly have others."""

        def others(found, stddev, rows):
            (values,) = self.seen[-1].values.values()
            known = [value for value, _ in found]
            rest = sum(n for value, n in values.counted().pairs() if value not in known)
            return rest * (rest > 100)

        self.seen = []
        real = streams.Looking.zero
        plant(streams.Looking, "zero", lambda tally: self.seen.append(real(tally)) or self.seen[-1])
        plant("sdv_privpgd.discovery.first_queries.others", others)
        assert "questions" in failed(COLUMNS, discovery_share=0.2)

    def test_rarer_values_of_more_columns_than_were_charged_for(self, plant):
        real, columns = streams.rarer_counts, {name: Categorical() for name in "abcd"}
        plant(
            "sdv_privpgd.discovery.first_queries.others", lambda *_: 1
        )  # of each column: few rows
        settings = {"discovery_share": 0.2, "adjacency": "add_remove", "delta": 1e-5}
        assert failed(columns, **settings) == set()
        plant(streams, "rarer_counts", lambda rarer, *more: real(rarer._replace(most=4), *more))
        assert "changes" in failed(columns, **settings)


def clipped_at_its_own_quantile(read):
    def own(*given):
        values, missing = read(*given)
        most = np.quantile(values, 0.95) if len(values) else 0
        return np.minimum(values, most).astype(values.dtype), missing

    return own


CELLS = {**DECLARED, "dose": Numerical(0.0, 1.0), "town": Categorical(list("ABC"))}


class TestCells:
    @pytest.fixture(scope="class")
    @staticmethod
    def own():
        grid = SIGNED_POWERS
        readings = [
            Reading(name=name, asks=frozenset(asks), cells=grid)
            for name, asks in (("town", ["categories"]), ("dose", ["grid", "numbers"]))
        ]
        own = subject(CELLS, discovery_share=0)
        tape = Tape(schema=own.description.attributes, readings=readings)
        return tape, own.description, own.settings

    def test_nothing_is_found_where_all_is_right(self, own):
        assert failed_of(alone_checks(*own)) == []

    @pytest.mark.parametrize("kind", ["_ticks_of_numbers", "real_numbers"])
    def test_numbers_that_are_clipped_at_the_columns_own_quantile(self, kind, own, plant):
        plant(encoders, kind, clipped_at_its_own_quantile(getattr(encoders, kind)))
        assert failed_of(alone_checks(*own)) == ["cells"]

    def test_missing_cells_that_become_the_most_frequent_one(self, own, plant):
        real = boundary.encode_table

        def encoded(columns, schema, *rest):
            codes = real(columns, schema, *rest).copy()
            for own, column in zip(codes.T, schema.columns, strict=False):
                own[own == column.num_values] = np.bincount(own).argmax()
            return codes

        plant(boundary, "encode_table", encoded)
        assert failed_of(alone_checks(*own)) == ["cells"]

    def test_a_first_look_at_numbers_on_a_scale_of_their_own(self, own, plant):
        real = Reading.finite_numbers

        def scaled(reading, series):
            numbers = real(reading, series)
            return numbers - np.nanmean(numbers) if np.isfinite(numbers).any() else numbers

        plant(Reading, "finite_numbers", scaled)
        assert failed_of(alone_checks(*own)) == ["cells"]

    def test_an_audit_looks_at_cells(self, plant):
        read = encoders._ticks_of_numbers
        plant(encoders, "_ticks_of_numbers", clipped_at_its_own_quantile(read))
        assert "cells" in failed()


class TestRowsInOrder:
    @pytest.fixture(scope="class")
    @staticmethod
    def own():
        made = subject(IN_ORDER, discovery_share=0, **ORDER)
        return Tape(schema=made.description.attributes), made.description, made.settings

    def test_nothing_is_found_where_all_is_right(self, own):
        assert failed_of(alone_checks(*own)) == []

    @pytest.mark.parametrize("whose", ["person", "table"])
    def test_a_row_that_is_told_of_the_next_row(self, whose, own, plant):
        in_order = visits._in_order

        def of_next(owner, most, starts, *keys):
            stays, before = in_order(owner, most, starts, *keys)
            after = np.full(len(owner), -1)
            there = np.flatnonzero(before >= 0)
            after[before[there]] = there
            table = np.r_[np.arange(1, len(owner)), -1]
            return stays, after if whose == "person" else table

        plant(visits, "_in_order", of_next)
        assert failed_of(alone_checks(*own)) == ["rows in order"]

    def test_a_time_that_is_how_long_until_the_next_row(self, own, plant):
        real = visits.VisitsSource._planned

        def planned(self, people):
            made = real(self, people)
            since = made.added[self._visits.since]
            return made._replace(added={**made.added, self._visits.since: since.iloc[::-1]})

        plant(visits.VisitsSource, "_planned", planned)
        assert failed_of(alone_checks(*own)) == ["rows in order"]


class TestReleases:
    @pytest.mark.parametrize("noise_left", [0.0, 0.5], ids=["exact", "half the noise"])
    def test_a_file_with_other_numbers_than_were_given_out(self, noise_left, plant):
        tables, real, write = {}, Curator.measure, site_release.write_release

        def measure(self, queries, mu_squared, **more):
            answers = real(self, queries, mu_squared, **more)
            for each in answers:
                tables[each.query] = each.query.answer(self._dataset)
            return answers

        def written(path, facts, ledger, answers):
            others = [
                replace(
                    each,
                    answer=np.rint(
                        tables[each.query] + noise_left * (each.answer - tables[each.query])
                    ).astype(np.int64),
                )
                for each in answers
            ]
            return write(path, facts, ledger, others)

        plant(Curator, "measure", measure)
        plant(site_release, "write_release", written)
        report = audit_measure(DECLARED, 6.0, runs=50, false_alarms=1e-7, method="independent")
        assert "answers kept" in report.to_dict()["failed"]


class TestSums:
    def test_a_budget_that_is_too_large_for_its_epsilon(self, plant):
        real = ledgers.mu_squared_of
        plant(ledgers, "mu_squared_of", lambda *asked: 2 * real(*asked))
        plant(
            ledgers,
            "epsilon_of",
            lambda mu_squared, delta: accounting.epsilon_of(mu_squared / 2, delta),
        )
        assert failed() == {"epsilon"}

    def test_charges_of_which_the_last_is_not_added_up(self, plant):
        plant(
            PrivacyLedger,
            "mu_squared",
            property(
                lambda self: sum((each.mu_squared for each in self.charges[:-1]), Fraction(0))
            ),
        )
        assert "epsilon" in failed(method="mst+particles")

    def test_choices_that_cost_more_than_is_said(self, plant):
        real = curating.range_epsilon_of
        plant(curating, "range_epsilon_of", lambda mu_squared: 4 * real(mu_squared))
        assert {"epsilon", "charges"} <= failed({**DECLARED, "ward": Categorical(["A", "B"])},
                                              method="mst+particles")  # fmt: skip

    def test_a_mechanism_that_no_check_knows_is_told(self, plant):
        real = curating.Charge

        def renamed(**facts):
            return real(**{**facts, "mechanism": facts["mechanism"].replace("Gaussian", "Cauchy")})

        plant(curating, "Charge", renamed)
        report = audit_fit(
            DECLARED, 6.0, runs=50, method="independent+pgm", discovery_share=0
        ).to_dict()
        verdicts = {check["name"]: check["verdict"] for check in report["checks"]}
        assert verdicts["Cauchy, rounded"] == "not looked at"
