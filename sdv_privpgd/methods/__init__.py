"""Methods: what to ask of a table, and what makes rows of the answers.

Each file that has ``METHODS`` adds methods to all doors: ``fit_table(method="aim")``, the classes
for SDV, the command line, the audit, the report and the benchmark. ``method`` has what one says of
itself. A method asks the curator and nobody else, and spends all that is left of the budget.

``__init__.pyi`` lists the public names, with those of the engines, which are in ``synthesize/``.
"""

from sdv_privpgd._lazy import attach_stub

__getattr__, __all__ = attach_stub(__name__, __file__)
