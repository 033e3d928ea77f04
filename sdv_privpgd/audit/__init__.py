"""An audit of a configuration, on tables that it makes up itself: it reads no private row.

``tables`` makes worst-case tables of a schema. ``recorder`` has a curator that writes down what is
asked and answered, and can give the answers of an earlier run; ``subjects`` says what can be
audited, collects everything that a fit lets out, and looks at what is kept. On these stand the
layers: ``replay`` (neighbors under the same noisy answers), ``noise``, ``attack`` (what somebody
gains who knows everything but one person), ``thresholds`` (what nobody declared, and cells and rows
without the others), ``training`` (with a second accountant). Each gives ``Check``s of ``checks``,
which shows them on a page. ``door`` has the doors for users, which ``__init__.pyi`` lists:
``audit_fit``, ``audit_fitted``, ``audit_measure``; ``families`` has ``audit_tables``.

Frozen answers cannot reach a real fit. They are given by ``recorder.AuditedTable`` alone, which
holds a table that ``tables`` made up and takes no other; a fit opens its table as a
``PrivateTable``, whose curators know nothing of it. Nothing global is replaced.
"""

from sdv_privpgd._lazy import attach_stub

__getattr__, __all__ = attach_stub(__name__, __file__)
