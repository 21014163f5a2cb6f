"""What a grade rests on, as hashes: rooflab's package with its core, and the lab's source.

They are taken before the first question and after the last. If either has changed meanwhile, no grade is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import rooflab

KINDS = (".py", ".so")


def taken(source: Path | None) -> dict[str, str]:
    """SHA-256 of the package, and of the folder of a lab's source where there is one.

    Examples
    --------
    >>> sorted(taken(None)), len(taken(None)["package"])
    (['package'], 64)
    """
    package = [path for place in dict.fromkeys(rooflab.__path__) for path in Path(place).rglob("*")]
    found = {"package": _hash(path for path in package if path.suffix in KINDS)}
    return found | ({"source": _hash(source.glob("*.py"))} if source else {})


def _hash(paths: Iterable[Path]) -> str:
    """The hash of names and contents, in the order of the paths."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        whole.update(f"{path.name}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()
