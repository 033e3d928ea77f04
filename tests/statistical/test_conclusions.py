"""Bootstraps and regressions cover as often as they say, with the real curator and noise.

The truth is known: rows are drawn from a population (``toy``). A number of intervals that hold it
is binomial, and may be as far off as happens by chance once in 50 million on each side.
"""

import numpy as np
import pytest
import toy
from scipy.stats import binom

from sdv_privpgd.inference.bootstrap import bootstrap, imputations, rubin
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.inference.regression import regression
from sdv_privpgd.sampling.sampler import Sampler
from sdv_privpgd.synthesize.pgm import PrivatePGM

LEVEL, ALPHA = 0.95, 2e-8


def sampler_of(model, seed):
    """Rows of the toy: it has no missing values."""
    return Sampler(toy.SCHEMA, model, seed, held={})


def refits_of(codes, engine, epsilon):
    release = toy.questions_of(codes, engine, epsilon=epsilon).release
    return Refits(release=release, engine=engine, sampler_of=sampler_of)


def check(hits, fits, *, off=0.0):
    """The numbers of hits are binomial; ``off`` is what theory lacks, such as small numbers."""
    least = binom.ppf(ALPHA, fits, LEVEL - off)
    most = binom.ppf(1 - ALPHA, fits, min(LEVEL + off, 1.0))
    assert ((least <= hits) & (hits <= most)).all(), np.asarray(hits) / fits


def held_by(ends, truth):
    low, high = (np.asarray(end) for end in ends)
    return (low <= truth) & (truth <= high)


def regressed(fits, epsilon, kind, *, rows=toy.NUM_ROWS, hides=False):
    """How often Wald intervals hold the truth, and those that forget the noise."""
    rng, hits = np.random.default_rng(0), np.zeros(3)
    chances = 1 / (1 + np.exp(np.array([0.5, -0.5])))
    truth = toy.TRUTH if kind == "logistic" else np.array([chances[0], np.ptp(chances), 0.0])
    for _ in range(fits):
        questions = toy.questions_of(toy.drawn(rng, rows), toy.Joints(), epsilon=epsilon)
        found = regression(questions, "y", ["a", "b"], kind)
        square = found.covariance - found.noise if hides else found.covariance
        half = 1.959964 * np.sqrt(np.diagonal(square))
        hits += held_by((found.coefficients - half, found.coefficients + half), truth)
    return hits


def bootstrapped(fits, epsilon, engine, repetitions):
    rng, hits = np.random.default_rng(0), np.zeros(3)
    for fit in range(fits):
        refits = refits_of(toy.drawn(rng), engine, epsilon)
        found = bootstrap(refits, toy.effects, repetitions, seed=fit, num_processes=1)
        ends = found.interval(LEVEL)
        hits += held_by((ends["low"], ends["high"]), toy.TRUTH)
    return hits


@pytest.mark.long
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_regressions_cover_as_often_as_they_say(kind):
    check(regressed(60, 1.0, kind), 60, off=0.01)


@pytest.mark.long
def test_a_bootstrap_covers_as_often_as_it_says():
    check(bootstrapped(10, 1.0, toy.Joints(), 12), 10, off=0.01)


@pytest.mark.long
def test_a_naive_analysis_and_one_that_forgets_the_noise_cover_too_seldom():
    """What all this is for: the shortcuts fail, so the tests here can fail, too."""
    rng, fits, hits = np.random.default_rng(1), 150, np.zeros(3)
    for fit in range(fits):
        questions = toy.questions_of(toy.drawn(rng), toy.Joints(), epsilon=0.2)
        rows = sampler_of(questions.release.model, fit).take(toy.NUM_ROWS)
        found, square = toy.logit(rows)
        half = 1.96 * np.sqrt(np.diagonal(square))
        hits += held_by((found - half, found + half), toy.TRUTH)
    assert (hits / fits).mean() < 0.85
    assert (regressed(100, 0.2, "logistic", hides=True) / 100).mean() < 0.85


def test_rubin_s_rules_cover_where_tables_are_drawn_as_they_say():
    """Means of Gaussian rows, whose posterior is known: 2,000 releases of 20 tables."""
    rng, fits, number, rows, noise = np.random.default_rng(2), 2_000, 20, 400, 0.04
    released = rng.normal(0, np.hypot(1 / np.sqrt(rows), noise), fits)
    draws = rng.normal(released, np.hypot(1 / np.sqrt(rows), noise), (number, fits))
    means = rng.normal(draws, 1 / np.sqrt(rows))
    found = rubin(means, np.full((number, fits), 1 / rows), rows, rows)
    hits = held_by(found.interval(LEVEL), 0.0).sum()
    check(hits, fits, off=0.015)
    # Rules for missing data add the variance that these take off, and cover too often.
    wide = np.sqrt(means.var(axis=0, ddof=1) * (1 + 1 / number) + 1 / rows)
    assert (np.abs(found.estimate) <= 1.96 * wide).mean() > 0.985


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_regressions_cover_as_often_as_they_say_in_many_fits(kind, epsilon):
    hits = regressed(1_000, epsilon, kind)
    assert (np.abs(hits / 1_000 - LEVEL) < 0.03).all(), hits


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_a_bootstrap_covers_as_often_as_it_says_in_many_fits(epsilon):
    hits = bootstrapped(1_000, epsilon, PrivatePGM(), 50)
    assert (np.abs(hits / 1_000 - LEVEL) < 0.03).all(), hits


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_imputations_cover_as_often_as_they_say_in_many_fits(epsilon):
    rng, fits, hits = np.random.default_rng(0), 300, np.zeros(3)
    for fit in range(fits):
        refits = refits_of(toy.drawn(rng), PrivatePGM(), epsilon)
        found = [toy.logit(each) for each in imputations(refits, 50, seed=fit, num_processes=1)]
        values = np.array([value for value, _ in found])
        squares = np.array([np.diagonal(square) for _, square in found])
        ends = rubin(values, squares, toy.NUM_ROWS, toy.NUM_ROWS).interval(LEVEL)
        hits += held_by(ends, toy.TRUTH)
    check(hits, fits, off=0.03)
