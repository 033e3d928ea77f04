"""Noisy answers made into tables that agree. Public: post-processing, free, numpy alone.

``noisy_tables`` averages measurements, ``consistency`` makes their margins equal, ``denoising``
shrinks them to what is more than noise (``effects`` and ``signals`` are its steps), and
``structural_zeros`` empties impossible cells. ``support`` decides which values occur at all,
``evidence`` which of them occur for sure, and ``interactions`` makes targets of the tables over
groups.
"""
