"""What a class must have for a protocol, its arguments included."""

import inspect


def differences(protocol, instance) -> list[str]:
    """Methods of a protocol that an instance lacks, or that take other arguments there.

    ``isinstance`` looks at the names of methods alone.
    """
    found = []
    for name, method in vars(protocol).items():
        if name.startswith("_"):
            continue
        if not hasattr(instance, name):
            found.append(f"{name} is missing")
        elif inspect.isfunction(method):
            asked = list(inspect.signature(method).parameters.values())[1:]
            taken = list(inspect.signature(getattr(instance, name)).parameters.values())
            pairs = [[(each.name, each.kind) for each in those] for those in (asked, taken)]
            if pairs[0] != pairs[1]:
                found.append(f"{name} takes {pairs[1]} in place of {pairs[0]}")
    return found


def concrete(kind, package) -> set[type]:
    """The classes of a package that inherit from one, and of which there can be objects."""
    found = set()
    for each in kind.__subclasses__():
        if each.__module__.startswith(package) and not inspect.isabstract(each):
            found.add(each)
        found |= concrete(each, package)
    return found
