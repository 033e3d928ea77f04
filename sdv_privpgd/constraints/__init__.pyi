"""The public constraints, which ``__init__`` reads."""

from .kinds import FixedCombinations as FixedCombinations
from .kinds import FixedIncrements as FixedIncrements
from .kinds import Inequality as Inequality
from .kinds import OneHotEncoding as OneHotEncoding
from .kinds import ProgrammableConstraint as ProgrammableConstraint
from .kinds import Range as Range
