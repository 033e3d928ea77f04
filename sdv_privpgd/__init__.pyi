"""The public names and where they live, which ``__init__`` reads."""

from .columns.declarations import Boolean as Boolean
from .columns.declarations import Categorical as Categorical
from .columns.declarations import Datetime as Datetime
from .columns.declarations import Key as Key
from .columns.declarations import Numerical as Numerical
from .columns.declarations import Ordinal as Ordinal
from .columns.declarations import TimeOfDay as TimeOfDay
from .columns.links import Link as Link
from .columns.schema import PublicDomainError as PublicDomainError
from .constraints.kinds import FixedCombinations as FixedCombinations
from .drafting.checks import check_domain as check_domain
from .drafting.files import read_domain as read_domain
from .drafting.files import write_domain as write_domain
from .drafting.template import draft_domain as draft_domain
from .drafting.template import draft_metadata as draft_metadata
from .fitting.door import check as check
from .fitting.door import fit_table as fit_table
from .fitting.door import plan_table as plan_table
from .fitting.door import plan_tables as plan_tables
from .fitting.families import FittedTables as FittedTables
from .fitting.fates import ColumnsLostError as ColumnsLostError
from .fitting.fitted_table import FittedTable as FittedTable
from .fitting.linked_tables import fit_tables as fit_tables
from .fitting.mismatch import DomainMismatchError as DomainMismatchError
from .fitting.prior import Prior as Prior
from .fitting.settings import People as People
from .inference.bootstrap import rubin as rubin
from .methods.method import MatchError as MatchError
from .privacy.ledger import PrivacyBudgetError as PrivacyBudgetError
from .privacy.ledger import PrivacyLedger as PrivacyLedger
from .releases.combination import CombinedTable as CombinedTable
from .releases.combination import combine as combine
from .releases.published_tables import PublishedTables as PublishedTables
from .releases.published_tables import from_tables as from_tables
from .releases.site import measure as measure
from .releases.site_release import Measured as Measured
from .report.evaluation import evaluate as evaluate
from .report.page import Report as Report
from .sampling.conditions import Between as Between
from .synthesizer import AIMSynthesizer as AIMSynthesizer
from .synthesizer import MSTSynthesizer as MSTSynthesizer
from .synthesizer import PrivPGDMultiTableSynthesizer as PrivPGDMultiTableSynthesizer
from .synthesizer import PrivPGDSynthesizer as PrivPGDSynthesizer

__version__: str
