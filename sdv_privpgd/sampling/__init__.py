"""Rows of a model, one after another or under conditions: post-processing, free.

``sampler`` draws an endless, repeatable sequence of rows and decodes it into the user's columns,
``conditions`` draws rows that meet conditions, and ``families`` rows that belong together.
"""
