"""Engines turn noisy measurements into a model that rows can be sampled from.

``engine`` has the two protocols. ``particles`` is PrivPGD, ``pgm`` is Private-PGM, ``gum`` is
PrivSyn's, ``annealed`` is RAP++, ``rap``, ``gem`` and ``private_gsd`` are what they are called,
and ``generator`` is DP-MERF's network. No engine sees the table, so everything here is
post-processing.
"""
