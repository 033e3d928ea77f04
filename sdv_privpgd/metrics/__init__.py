"""The papers' metrics of synthetic rows beside real ones, as functions and for SDMetrics.

They read real tables without protection, so no result is private. The functions take codes of a
``Domain``, shape (row, attribute), or data frames. The classes take data frames and metadata, and
``sdmetrics.single_table`` has them, too. ``__init__.pyi`` lists the public names. They are resolved
when they are first used, so the functions do not need SDMetrics.
"""

from importlib import import_module

from sdv_privpgd._lazy import attach_stub, need

_resolve, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name in __all__ and name[0].isupper():
        need(name, "sdmetrics")
        # SDMetrics imports the classes at the end of its own import. If they started the import,
        # SDMetrics would find them half done and go without them.
        import_module("sdmetrics")
    return _resolve(name)


def __dir__() -> list[str]:
    return __all__
