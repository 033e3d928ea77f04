"""Differentially private synthetic tables for SDV, and without it.

Start with ``fit_table``, which takes a DataFrame and declarations of its columns, or with
``PrivPGDSynthesizer``, which has SDV's interface. ``draft_domain`` and ``check_domain`` help to
declare a table.

``__init__.pyi`` lists the public names. They are resolved when they are first used, so importing
the package imports neither SDV nor torch, and ``fit_table`` works where SDV is not installed.

>>> from sdv_privpgd import Categorical, Numerical
>>> {"age": Numerical(0, 110, decimal_places=0), "ward": Categorical(["A", "B"])}["ward"]
{'range_values': ['A', 'B']}
"""

from importlib.metadata import version

from sdv_privpgd._lazy import attach_stub

__version__ = version("sdv-privpgd")
__getattr__, __all__ = attach_stub(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
