"""Strategies: which queries to ask, and how to split the budget over them.

A strategy asks the curator and nobody else, and spends all that is left of the budget. Public:
``AllPairs`` (the default), ``Independent``, ``MST``, ``AIM``, ``MWEM``, ``PrivSyn``,
``PrivMRF``, ``Adaptive``, ``AllKWay``, ``MeanEmbedding`` (of DP-MERF),
``HalfSpaces`` (of RAP++), and the protocol
``strategy.Strategy`` for one of your own.
"""
