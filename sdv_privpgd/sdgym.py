"""For SDGym, which constructs synthesizers without arguments: classes that know their settings.

    import sdgym
    from sdv_privpgd.sdgym import variant

    sdgym.benchmark_single_table(custom_synthesizers=[variant(epsilon=1.0), variant(epsilon=5.0)])

SDGym is no dependency. Its scores compare with the real table: they are not private.
"""

from importlib import import_module
from typing import Any

from sdv_privpgd.privacy.accounting import check_delta, check_epsilon


def variant(
    epsilon: float, delta: float = 1e-5, *, synthesizer: str = "PrivPGDSynthesizer", **settings: Any
) -> type:
    """A class for SDGym's ``custom_synthesizers``, under a name that says what it may spend.

    Args:
        epsilon: What each fit may spend.
        delta: As the synthesizers have it.
        synthesizer: ``'PrivPGDSynthesizer'``, ``'MSTSynthesizer'`` or ``'AIMSynthesizer'``.
        settings: Of the synthesizer, but for its metadata. Numbers and words are in the name, too.

    Raises:
        ImportError: Without an SDGym that works with this SDV.
        ValueError: For an epsilon or a delta that is none, and another synthesizer.
    """
    sdgym: Any = import_module("sdgym")  # only here: it is there for those who have it
    parameters = {"epsilon": check_epsilon(epsilon), "delta": check_delta(delta), **settings}
    told = [
        f"{name}={value}"
        for name, value in parameters.items()
        if isinstance(value, bool | int | float | str)
    ]
    display = f"{synthesizer.removesuffix('Synthesizer')}({', '.join(told)})"
    return sdgym.create_synthesizer_variant(display, synthesizer, parameters)
