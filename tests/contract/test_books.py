"""What a fit spends, what a plan promises and what penalties are charged for."""

import re

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sdv_tables
from small_synthesizers import boolean, new

from sdv_privpgd import People, PrivacyBudgetError, PrivPGDSynthesizer
from sdv_privpgd.methods import (
    DifferentiablePenalty,
    ParticleGradientDescent,
    PrivPGD,
    ProtectedThreshold,
)
from sdv_privpgd.methods.k_way import AllKWay
from sdv_privpgd.privacy.curator import Curator


class TestBooks:
    @pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
    @pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
    def test_a_fit_spends_exactly_what_was_asked_for(self, adjacency, epsilon):
        synthesizer = boolean(epsilon=epsilon, adjacency=adjacency, delta=1e-5)
        synthesizer.fit(pd.DataFrame({"a": [True, False] * 20}))
        assert synthesizer.ledger.spent(delta=1e-5) == pytest.approx(epsilon, abs=1e-9)
        info = synthesizer.get_info()
        assert info["epsilon_spent"] == pytest.approx(epsilon, abs=1e-9)
        assert info["delta_spent"] == 1e-5

    def test_nothing_is_spent_before_a_fit_and_a_second_warns_with_the_total(self):
        assert new().ledger.spent() == 0
        assert new().get_info()["delta_spent"] == 0
        synthesizer = boolean(epsilon=1.0)
        table = pd.DataFrame({"a": [True, False] * 20})
        synthesizer.fit(table)
        with pytest.warns(UserWarning, match=r"Together the fits spend epsilon (\S+)") as caught:
            synthesizer.fit(table)
        (said,) = [w for w in caught if "Together" in str(w.message)]
        total = float(re.search(r"spend epsilon (\S+)", str(said.message)).group(1))
        # mu² adds up: two fits at (1, 1e-5) are sqrt(2) mu, which is epsilon 1.465 (exact GDP).
        assert total == pytest.approx(1.465, abs=2e-3)
        assert synthesizer.ledger.spent() == pytest.approx(total, rel=1e-3)

    def test_a_plan_over_the_limit_is_refused_before_the_table_is_counted(self, monkeypatch):
        def counted(*args):
            raise AssertionError("the table was read")

        monkeypatch.setattr("sdv_privpgd.privacy.dataset.Dataset.counts", counted)
        with pytest.raises(PrivacyBudgetError, match="allow a larger epsilon"):
            boolean(people=People(max_rows=10**13)).fit(pd.DataFrame({"a": [True, False]}))

    def test_the_report_says_what_its_words_mean_and_fits_a_hundred_columns(self, fitted):
        report = " ".join(fitted.privacy_report().split())
        assert "replace-one" in report
        assert "for one row" in report
        assert "count as neighbors by add-remove instead" in report
        assert "given the answers without noise" in report
        several = boolean(adjacency="add_remove", delta=1e-5, people=People(max_rows=3))
        several.fit(pd.DataFrame({"a": [True, False] * 20}))
        assert "up to 3 rows of one person" in several.privacy_report()
        assert "given the answers without noise" not in several.privacy_report()
        for text in map(str, (fitted.privacy_report(), fitted.plan(1_000_000), fitted.plan(10))):
            assert max(map(len, text.splitlines())) <= 100
            header = next(line for line in text.splitlines() if line.startswith("question"))
            for word in ("values", "replaced", "noise sd", "share"):
                assert word in header
                assert any(
                    line.startswith((f"- {word}:", f"- {word},")) for line in text.splitlines()
                )
            assert "e+" not in text

    def test_rows_per_person_scale_the_noise_and_seeds_do_not_reach_it(self):
        def stddev(rows):
            synthesizer = boolean(people=People(max_rows=rows))
            synthesizer.fit(pd.DataFrame({"a": [True, False] * 20}))
            return synthesizer.ledger.charges[-1].stddev

        assert stddev(4) == pytest.approx(4 * stddev(1), rel=1e-12)
        import random

        import torch

        def noisy():
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002
            torch.manual_seed(0)
            synthesizer = new(method=PrivPGD(engine=ParticleGradientDescent(num_particles=50)))
            synthesizer.fit(sdv_tables.table(20))
            return synthesizer._release.measurements[-1].answer.tobytes()

        assert noisy() != noisy()

    def test_the_curator_is_the_only_way_to_the_table(self, monkeypatch):
        """With a curator that answers nothing, the pipeline gets nothing."""
        monkeypatch.setattr(Curator, "measure", lambda self, *args, **kwargs: [])
        with pytest.raises(IndexError, match="out of range"):
            boolean().fit(pd.DataFrame({"a": [True, False] * 20}))


@pytest.mark.usefixtures("few_epochs")
class TestPenalties:
    def test_a_protected_statistic_is_charged_and_dropped_with_the_tables(self):
        penalty = ProtectedThreshold({"age": 1.0, "income": 1.0}, b=0.5, weight=0.5)
        synthesizer = new(method=PrivPGD(engine=ParticleGradientDescent(penalties=[penalty])))
        synthesizer.fit(sdv_tables.table(300))
        named = [charge.what for charge in synthesizer.ledger.charges]
        assert sum(what.startswith("smoothed") for what in named) == 1
        assert 0.999 < synthesizer.ledger.spent() <= 1.0
        kept = [m.query.describe() for m in synthesizer._release.measurements]
        assert kept == ["number of rows"]

    def test_a_penalty_without_a_statistic_costs_nothing(self):
        # A strategy whose questions do not depend on answers.
        penalties = [DifferentiablePenalty(mean_age, weight=1.0)]
        synthesizer = new(
            method=AllKWay(degree=2, engine=ParticleGradientDescent(penalties=penalties)),
            discovery_share=0,
        )
        synthesizer.fit(sdv_tables.table(100))
        plain = new(method=AllKWay(degree=2), discovery_share=0)
        plain.fit(sdv_tables.table(100))
        assert synthesizer.ledger == plain.ledger

    def test_a_synthesizer_with_penalties_is_saved(self, tmp_path):
        synthesizer = new(
            method=PrivPGD(
                engine=ParticleGradientDescent(penalties=[DifferentiablePenalty(mean_age)])
            )
        )
        synthesizer.fit(sdv_tables.table(30))
        loaded = cloudpickle.loads(cloudpickle.dumps(synthesizer))
        assert loaded.get_parameters()["method"] == synthesizer.get_parameters()["method"]
        pd.testing.assert_frame_equal(loaded.sample(30), synthesizer.sample(30))


def mean_age(positions):
    return positions["age"].mean()


CUT = {"age": [30, 50, 70], "income": [50, 100, 200], "seen": ["2020-04-01", "2020-09-01"]}


class TestPlan:
    @pytest.mark.parametrize("strategy", ["privpgd", "independent", "mst"])
    def test_a_plan_has_the_noise_of_the_fit_and_spends_nothing(self, strategy):
        """With cells that are declared: answers choose the others, in plan and fit alike."""
        domain = dict(sdv_tables.PUBLIC_DOMAIN)
        for name, points in CUT.items():
            facts = {key: fact for key, fact in domain[name].items() if key != "num_bins"}
            domain[name] = {**facts, "cut_points": points}
        synthesizer = new(method=strategy, public_domain=domain)
        plan = synthesizer.plan(200).text
        assert synthesizer.ledger.charges == ()
        synthesizer.fit(sdv_tables.table(200))
        header = next(line for line in plan.splitlines() if line.startswith("question"))
        width = header.index("mechanism")
        questions = " ".join(line[:width].strip() for line in plan.splitlines())
        for charge in synthesizer.ledger.charges:
            what = charge.what.split(": ")[0]  # which of them depends on answers
            assert what in questions
            if not what.startswith("2-way marginals that promise most"):  # so does how often
                assert f"{charge.stddev:,.4g}" in plan

    def test_plans_follow_rows_alone_and_change_nothing(self, fitted):
        def mean(num_rows):
            return new().plan(num_rows).to_dict()["expected"]["pairs_mean"]["displaced_by_noise"]

        assert mean(100_000) < mean(10_000) < 1
        metadata = sdv_tables.metadata_of({"id": {"sdtype": "id"}}, primary_key="id")
        assert "marginals" not in PrivPGDSynthesizer(metadata, 1.0).plan(50).text
        before = cloudpickle.dumps(fitted)
        fitted.plan(50)
        assert cloudpickle.dumps(fitted) == before
