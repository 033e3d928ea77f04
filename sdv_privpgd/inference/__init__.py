"""How sure an answer is: estimates from noisy tables with their exact variance. Public.

``questions`` answers what a user asks (``intervals`` knows its error) from ``linear``, the best
linear estimate from all noisy tables; ``tables`` writes these tables themselves. ``bootstrap``
repeats a fit on answers to rows of its own model (``refits``), also for Rubin's rules, and
``regression`` fits linear and logistic models to the noisy pairs.
``analyses`` has the doors, whose answers are of the types in ``__init__.pyi``.

All of this is post-processing of noisy answers: free, and as public as they are.
"""

from sdv_privpgd._lazy import attach_stub

__getattr__, __all__ = attach_stub(__name__, __file__)
