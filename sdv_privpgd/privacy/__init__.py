"""Accounting, noise and the curator: the only code between the private table and the world."""
