"""What a class must have for a protocol, its arguments included."""

import inspect
import sys


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


def classes_with(package, method) -> set[type]:
    """The public classes of a package's loaded modules that have a method of their own."""
    return {
        each
        for name, module in list(sys.modules.items())
        if name.startswith(package)
        for each in vars(module).values()
        if inspect.isclass(each)
        and each.__module__ == name
        and not each.__name__.startswith("_")
        and method in vars(each)
        and not getattr(each, "_is_protocol", False)
    }
