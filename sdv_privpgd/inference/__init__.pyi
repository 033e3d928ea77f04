"""The kinds of answers, which ``__init__`` reads."""

from .acceptance import Acceptance as Acceptance
from .acceptance import Criterion as Criterion
from .answers import Answer as Answer
from .answers import TableAnswer as TableAnswer
from .bootstrap import Bootstrap as Bootstrap
from .bootstrap import Rubin as Rubin
from .crowds import Crowded as Crowded
from .question_list import Question as Question
from .regression import Regression as Regression
