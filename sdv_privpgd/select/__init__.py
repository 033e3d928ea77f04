"""Strategies: which queries to ask, and how to split the budget over them."""
