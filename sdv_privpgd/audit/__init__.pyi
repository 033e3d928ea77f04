"""The public functions, which ``__init__`` reads."""

from .door import audit_fit as audit_fit
from .door import audit_fitted as audit_fitted
from .door import audit_measure as audit_measure
from .families import audit_tables as audit_tables
