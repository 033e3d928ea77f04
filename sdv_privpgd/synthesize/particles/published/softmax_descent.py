"""Adam on the logits of a table's cells in sliced W1, compiled by numba and cached on disk."""

import math
from typing import no_type_check

import numpy as np

from sdv_privpgd.synthesize.particles.compiler import njit

_MEAN_DECAY, _SQUARE_DECAY, _EPS = 0.9, 0.999, 1e-8
"""Adam's constants."""

_DIGIT_BITS, _NUM_DIGITS = 8, 3


@njit()
@no_type_check
def descend(centers, signed, directions, num_before, rates, logits, moments):
    """Takes one step for each set of directions, the first of them number ``num_before``."""
    num_cells, num_slices = len(signed), directions.shape[1]
    weights, lacks, gradient = np.empty(num_cells), np.empty(num_cells), np.empty(num_cells)
    places = np.empty(num_cells)
    order, spare = np.empty(num_cells, np.uint64), np.empty(num_cells, np.uint64)
    starts = np.empty((_NUM_DIGITS, 1 << _DIGIT_BITS), np.int64)
    for step in range(len(directions)):
        _softmax(logits, weights)
        for i in range(num_cells):
            lacks[i] = weights[i] - signed[i]
            gradient[i] = 0
        for s in range(num_slices):
            _project(centers, directions[step, s], places)
            _sort(places, order, spare, starts)
            _add_gradient(lacks, places, order, gradient)
        mean = 0.0
        for i in range(num_cells):
            mean += weights[i] * gradient[i]
        num_steps = num_before + step + 1
        unbias = 1 / (1 - _MEAN_DECAY**num_steps)
        unbias_square = 1 / (1 - _SQUARE_DECAY**num_steps)
        for i in range(num_cells):
            slope = weights[i] * (gradient[i] - mean) / num_slices  # by the softmax's Jacobian
            moments[0, i] += (1 - _MEAN_DECAY) * (slope - moments[0, i])
            moments[1, i] += (1 - _SQUARE_DECAY) * (slope * slope - moments[1, i])
            scale = math.sqrt(moments[1, i] * unbias_square) + _EPS
            logits[i] -= rates[step] * moments[0, i] * unbias / scale


@njit()
@no_type_check
def _softmax(logits, weights):
    largest, total = logits[0], 0.0
    for i in range(len(logits)):
        largest = max(largest, logits[i])
    for i in range(len(logits)):
        weights[i] = math.exp(logits[i] - largest)
        total += weights[i]
    for i in range(len(logits)):
        weights[i] /= total


@njit()
@no_type_check
def _project(centers, direction, places):
    for i in range(len(places)):
        places[i] = 0
    for dim in range(len(direction)):
        theta = direction[dim]
        for i in range(len(places)):
            places[i] += theta * centers[dim, i]


@njit()
@no_type_check
def _sort(places, order, spare, starts):
    """Sorts the cells by their places into the lower halves of the order's words (radix sort).

    Places nearer to each other than 2^-24 of their range may stay in the order of their cells;
    float32 would not tell them apart. Six times faster than a sort by comparisons.
    """
    low, high = places[0], places[0]
    for i in range(len(places)):
        low, high = min(low, places[i]), max(high, places[i])
    num_keys = 1 << (_DIGIT_BITS * _NUM_DIGITS)
    scale = (num_keys - 1) / (high - low) if high > low else 0.0
    last_digit = np.uint64((1 << _DIGIT_BITS) - 1)
    for digit in range(_NUM_DIGITS):
        for value in range(1 << _DIGIT_BITS):
            starts[digit, value] = 0
    for i in range(len(places)):
        key = np.uint64(np.int64((places[i] - low) * scale))
        spare[i] = key << np.uint64(32) | np.uint64(i)
        for digit in range(_NUM_DIGITS):
            starts[digit, (key >> np.uint64(_DIGIT_BITS * digit)) & last_digit] += 1
    for digit in range(_NUM_DIGITS):
        above = 0
        for value in range(1 << _DIGIT_BITS):
            above, starts[digit, value] = above + starts[digit, value], above
    for digit in range(_NUM_DIGITS):
        # An odd number of passes ends in ``order``.
        source, goal = (spare, order) if digit % 2 == 0 else (order, spare)
        shift = np.uint64(32 + _DIGIT_BITS * digit)
        for i in range(len(source)):
            value = (source[i] >> shift) & last_digit
            goal[starts[digit, value]] = source[i]
            starts[digit, value] += 1


@njit()
@no_type_check
def _add_gradient(lacks, places, order, gradient):
    """Adds the gradient of the sum of |partial sums of lacks| * gaps, up to a constant.

    A cell enters the partial sums from its own place on, so its entry is the sum of sign * gap
    from there on. This adds minus the sum up to there instead. The two differ by the total, which
    is the same for all cells, and the softmax takes it out.
    """
    half = np.uint64(0xFFFFFFFF)
    partial, before = 0.0, 0.0
    cell = order[0] & half
    for j in range(1, len(order)):
        following = order[j] & half
        partial += lacks[cell]
        gap = places[following] - places[cell]
        before += gap if partial > 0 else -gap
        gradient[following] -= before
        cell = following
