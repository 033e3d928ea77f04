"""Strategies: which queries to ask, and how to split the budget over them.

A strategy asks the curator and nobody else, and spends all that is left of the budget. Public:
``AllPairs`` (the default), ``Independent``, ``MST``, ``AIM``, ``MWEM``, ``AllKWay``, and the
protocol ``strategy.Strategy`` for one of your own.
"""
