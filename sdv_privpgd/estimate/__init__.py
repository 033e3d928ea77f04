"""Noisy answers made into tables that agree. Public: post-processing, free, numpy alone.

``noisy_tables`` averages measurements, ``consistency`` makes their margins equal, ``denoising``
shrinks them to what is more than noise, and ``structural_zeros`` empties impossible cells.
"""
