"""The public methods and engines, which ``__init__`` reads."""

from sdv_privpgd.synthesize.engine import Engine as Engine
from sdv_privpgd.synthesize.generator import GeneratorNetwork as GeneratorNetwork
from sdv_privpgd.synthesize.genetic import PrivateGSD as PrivateGSD
from sdv_privpgd.synthesize.gum import GUM as GUM
from sdv_privpgd.synthesize.particles.descent import (
    ParticleGradientDescent as ParticleGradientDescent,
)
from sdv_privpgd.synthesize.particles.penalties import (
    DifferentiablePenalty as DifferentiablePenalty,
)
from sdv_privpgd.synthesize.particles.penalties import ProtectedThreshold as ProtectedThreshold
from sdv_privpgd.synthesize.pgm import PrivatePGM as PrivatePGM
from sdv_privpgd.synthesize.rap_plus_plus import AnnealedProjection as AnnealedProjection
from sdv_privpgd.synthesize.relaxed_projection import GenerativeNetwork as GenerativeNetwork
from sdv_privpgd.synthesize.relaxed_projection import RelaxedProjection as RelaxedProjection

from .adaptive import AIM as AIM
from .adaptive import MWEM as MWEM
from .adaptive import Adaptive as Adaptive
from .dp_merf import DPMERF as DPMERF
from .dp_sgd import DPCTGAN as DPCTGAN
from .dp_sgd import DPDiffusion as DPDiffusion
from .k_way import AllKWay as AllKWay
from .k_way import Independent as Independent
from .method import EngineMethod as EngineMethod
from .method import Method as Method
from .mst import MST as MST
from .privmrf import PrivMRF as PrivMRF
from .privpgd import PrivPGD as PrivPGD
from .privsyn import PrivSyn as PrivSyn
from .rap_plus_plus import RAPPlusPlus as RAPPlusPlus
