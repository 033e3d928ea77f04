"""Small tables that are made up, and columns in SDV's words."""

import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd


def made_up(number, seed=0, **columns):
    """Random cells: one of some letters or texts, true with a chance, or a number of a range.

    What is neither a text, a float nor a tuple is the column itself.
    """
    rng = np.random.default_rng(seed)
    draw = {
        str: lambda letters: rng.choice(list(letters), number),
        float: lambda chance: rng.random(number) < chance,
        tuple: lambda own: (
            rng.choice(own, number) if isinstance(own[0], str) else rng.integers(*own, number)
        ),
    }
    drawn = {name: draw.get(type(own), lambda own: own)(own) for name, own in columns.items()}
    return pd.DataFrame(drawn)


def kinds(**sdtypes):
    """What SDV's metadata say of columns of these types."""
    return {name: {"sdtype": sdtype} for name, sdtype in sdtypes.items()}


def relationship(parent, parent_key, child, child_key):
    """What SDV's metadata say of two tables that belong together."""
    named = ("parent_table_name", "parent_primary_key", "child_table_name", "child_foreign_key")
    return dict(zip(named, (parent, parent_key, child, child_key), strict=True))


def in_columns(names, rows):
    """Rows, as columns of whatever is in them."""
    cells = [pd.Series([row[place] for row in rows], dtype=object) for place in range(len(names))]
    return dict(zip(names, cells, strict=True))


@contextmanager
def heard():
    """All warnings of what is done."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield said


@contextmanager
def quiet():
    """Without the warnings of a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
