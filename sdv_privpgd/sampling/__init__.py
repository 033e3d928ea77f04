"""Rows of a model, one after another or under conditions: post-processing, free.

``stream`` draws an endless, repeatable sequence of rows, ``conditioning`` draws rows that fit
conditions, and ``sampler`` decodes both into the user's columns. Public: ``sampler.Sampler`` and
``conditions.Between``.
"""
