"""For SDGym, which constructs synthesizers without arguments: classes that know their settings.

    import sdgym
    from sdv_privpgd.plugin.sdgym import variant

    sdgym.benchmark_single_table(custom_synthesizers=[variant(epsilon=1.0), variant(epsilon=5.0)])

SDGym is no dependency. Its scores compare with the real table: they are not private.
"""

from importlib import import_module
from typing import Any

from sdv_privpgd.base.arguments import check_delta, check_epsilon


def variant(
    epsilon: float,
    delta: float | None = None,
    *,
    synthesizer: str = "PrivPGDSynthesizer",
    **settings: Any,
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
    # Only here: SDGym is there for those who have it.
    known: Any = import_module("sdgym.synthesizers.base").BaselineSynthesizer
    import_module("sdgym")  # its synthesizers make themselves known
    bases = known.get_subclasses(include_parents=True)
    if synthesizer not in bases:
        raise ValueError(
            f"synthesizer must be the name of one that SDGym knows, such as 'PrivPGDSynthesizer', "
            f"got {synthesizer!r}."
        )
    parameters = {"epsilon": check_epsilon(epsilon), **settings}
    parameters |= {} if delta is None else {"delta": check_delta(delta)}
    told = [
        f"{name}={value}"
        for name, value in parameters.items()
        if isinstance(value, bool | int | float | str)
    ]
    display = f"{synthesizer.removesuffix('Synthesizer')}({', '.join(told)})"
    # SDGym's own function for this finds each class once: a class with variants is no leaf.
    own = {"__module__": __name__, "_MODEL_KWARGS": parameters, "_NATIVELY_SUPPORTED": False}
    return type(f"Variant:{display}", (bases[synthesizer],), own)
