"""What the reference describes: the public names by subject, the packages and their public names."""

from __future__ import annotations

import importlib
import inspect
import io
import tokenize
from functools import cache
from types import ModuleType

import rooflab

# Packages in `rooflab.__all__` that have packages or modules of their own, which users import by name.
INNER = {
    "cuda": ("cuda.simt",),
    "labs": tuple(f"labs.lab{number}" for number in range(1, 8)),
    "nn": ("nn.functional", "nn.utils"),
    "optim": ("optim.lr_scheduler",),
}
PACKAGES = "packages"  # the last subject of `rooflab.__all__`


def subjects() -> dict[str, list[str]]:
    """The public names of `rooflab`, by the comments that head them in `rooflab.__all__`.

    The names that Python has too follow in a subject of their own.

    Examples
    --------
    >>> subjects()["products"][:3]
    ['addmm', 'bmm', 'dot']
    """
    source = inspect.getsource(rooflab)
    start = source.index("__all__ = [")
    found: dict[str, list[str]] = {}
    for token in tokenize.generate_tokens(io.StringIO(source[start : source.index("\n]", start) + 3]).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string and "fmt" not in token.string:
            found[token.string.removeprefix("# ")] = names = []
        elif token.type == tokenize.STRING:
            names.append(token.string.strip('"'))
    packages = found.pop(PACKAGES)
    found["names that Python has too"] = sorted({*dir(rooflab)} - {*rooflab.__all__})
    return {**found, PACKAGES: packages}


def packages() -> list[str]:
    """The packages by their full names, each followed by those inside of it.

    Examples
    --------
    >>> packages()[-1]
    'rooflab.units'
    """
    names = subjects()[PACKAGES]
    return [f"rooflab.{inner}" for name in names for inner in (name, *INNER.get(name, ()))]


def public_names(package: str) -> list[str]:
    """The names of a package that users see, without the packages inside of it.

    They are those in `__all__`; without one, the functions and classes that are defined there.

    Examples
    --------
    >>> public_names("rooflab.units")
    ['binary', 'binary_power', 'distinct', 'human', 'rounded']
    """
    module = importlib.import_module(package)
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == package and callable(value)
    ]
    names = getattr(module, "__all__", own)
    return sorted(name for name in names if not isinstance(getattr(module, name), ModuleType))


@cache
def documented() -> frozenset[str]:
    """The full names of all that has an entry.

    Examples
    --------
    >>> {"rooflab.exp", "rooflab.nn", "rooflab.nn.Linear"} <= documented()
    True
    """
    names = {f"rooflab.{name}" for subject in subjects().values() for name in subject}
    return frozenset(names.union(packages(), *({f"{one}.{name}" for name in public_names(one)} for one in packages())))
