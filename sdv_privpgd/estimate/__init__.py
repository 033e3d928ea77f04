"""Noisy answers made into tables that agree. Public: post-processing, free, numpy alone.

``noisy_tables`` averages measurements, ``consistency`` makes their margins equal and empties
impossible cells, and ``denoising`` shrinks them to what is more than noise (``effects`` and
``signals`` are its steps). ``support`` decides which values occur at all, and which occur for sure;
``interactions`` makes targets of the tables over groups.
"""
