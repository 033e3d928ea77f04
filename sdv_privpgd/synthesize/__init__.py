"""Engines turn noisy measurements into a model that rows can be sampled from.

``engine`` has the two protocols. ``particles`` is PrivPGD, ``pgm`` is Private-PGM. No engine sees
the table, so everything here is post-processing.
"""
