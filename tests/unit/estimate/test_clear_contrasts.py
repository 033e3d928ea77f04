"""Single contrasts that stand out of the noise stay, and noise has hardly any."""

import numpy as np
import pytest
from answers import noisy_answers, number_of_rows

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.consistency import consistent_tables
from sdv_privpgd.estimate.denoising import denoised, signal_variances
from sdv_privpgd.estimate.effects import (
    ClearContrasts,
    Residual,
    contrast_bases,
    contrasts,
    directions,
    residuals_of,
)
from sdv_privpgd.privacy.dataset import Dataset

ROWS, NOISE = 20_000, 68.0
DOMAIN = Domain(("ward", "lab", *"abcdefgh"), (5, 17, *[16] * 8))
WARDS = [0.08, 0.30, 0.40, 0.12, 0.10]


def rows(seed, *, depends):
    """Rows of which those in the first, rare ward have high values of ``lab``, or none depends."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(5, ROWS, p=WARDS)
    value = rng.normal(size=ROWS) + 2.0 * depends * (ward == 0)
    lab = np.clip((16 * (value + 2) / 4.5).astype(int), 0, 15)
    lab[rng.random(ROWS) < 0.2] = 16  # missing
    return np.column_stack([ward, lab, rng.integers(0, 16, (ROWS, 8))])


def measured(codes, seed):
    """Consistent tables of all pairs, as loud as in a fit at epsilon 1."""
    tables = {clique: Dataset(DOMAIN, codes).counts(clique) for clique in DOMAIN.cliques(2)}
    return consistent_tables(DOMAIN, [number_of_rows(ROWS), *noisy_answers(tables, NOISE, seed)])


def mean_lab(table):
    """The mean code of ``lab`` in the rare ward, missing ones aside."""
    return table[0, :16] @ np.arange(16.0) / table[0, :16].sum()


def test_what_one_rare_category_has_with_one_column_is_kept_and_asked_for_again():
    codes = rows(0, depends=True)
    known = codes[codes[:, 1] < 16]
    true, usual = (known[known[:, 0] == ward, 1].mean() for ward in (0, 2))
    kept = [
        (mean_lab(denoised(measured(codes, seed)).tables["ward", "lab"]) - usual) / (true - usual)
        for seed in range(12)
    ]
    assert min(kept) > 0.3
    assert np.mean(kept) > 0.6
    tables = measured(rows(0, depends=True), seed=1)
    found = signal_variances(tables)
    strengths = {clique: own.sum() for clique, own in found.items()}
    assert max(strengths, key=strengths.get) == ("ward", "lab")


def test_noise_has_a_clear_contrast_in_one_fit_of_a_hundred():
    """More than three of 60 draws have a chance of 3 in 10,000."""
    codes, number = rows(0, depends=False), 0
    for seed in range(60):
        tables = measured(codes, seed)
        bases = contrast_bases(tables)
        residuals = residuals_of(tables, bases)
        clear = ClearContrasts(bases, residuals)
        number += any(clear.has_any(each) for each in residuals)
    assert number <= 3


@pytest.mark.parametrize("size", [2, 3, 4, 9])
def test_directions_are_of_unit_length_and_hold_each_code(size):
    basis = contrasts(size)
    found = directions(basis)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1.0)
    own = np.eye(size)[0] - 1 / size
    np.testing.assert_allclose(basis @ found[:, 0], own / np.linalg.norm(own), atol=1e-12)


def test_a_contrast_is_found_whatever_its_sign_and_taken_out_once():
    bases = {"a": contrasts(6), "b": contrasts(4)}
    rows_of, columns_of = directions(bases["a"]), directions(bases["b"])
    for sign in (-1.0, 1.0):
        planted = sign * 30.0 * np.outer(rows_of[:, 2], columns_of[:, 1])
        residual = Residual(("a", "b"), planted, variance=1.0)
        found, variances = ClearContrasts(bases, [residual]).within(residual, 0 * planted)
        np.testing.assert_allclose(found, planted * (1 - 1 / 900), atol=1e-9)
        assert variances == pytest.approx([899.0])
        again, _ = ClearContrasts(bases, [residual]).within(residual, planted)
        np.testing.assert_array_equal(again, 0)
