"""The kinds of answers, which ``__init__`` reads."""

from .answers import Answer as Answer
from .answers import TableAnswer as TableAnswer
from .coefficients import Regression as Regression
from .imputation import Rubin as Rubin
from .replicates import Bootstrap as Bootstrap
