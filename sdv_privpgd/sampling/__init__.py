"""Rows of a model, one after another or under conditions: post-processing, free.

Public: ``sampler.Sampler`` and ``between.Between``.
"""
