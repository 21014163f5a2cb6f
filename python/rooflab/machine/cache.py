"""Keeps measured ceilings between runs: one JSON file per device, host, driver, thread count and rooflab version."""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def cache_file(identity: Mapping[str, Any]) -> Path:
    """Where the figures of a device are kept: in ``$XDG_CACHE_HOME/rooflab`` or ``~/.cache/rooflab``."""
    root = os.environ.get("XDG_CACHE_HOME")
    base = Path(root) if root and Path(root).is_absolute() else Path.home() / ".cache"
    parts = [re.sub(r"[^A-Za-z0-9.+]+", "_", str(value)) for value in identity.values()]
    return base / "rooflab" / f"machine-{'-'.join(parts)}.json"


def load(identity: Mapping[str, Any], parse: Callable[[Mapping[str, Any]], T]) -> T | None:
    """The cached figures of a device, or None when there are none or the file is unreadable or not ours."""
    try:
        values = json.loads(cache_file(identity).read_text(encoding="utf-8"))
        if any(values[key] != value for key, value in identity.items()):
            return None
        return parse(values)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return None


def store(identity: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Writes the figures, whole or not at all. A cache that cannot be written is a warning, not an error."""
    try:
        path = cache_file(identity)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(values, file, indent=2)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except (OSError, RuntimeError) as error:
        warnings.warn(f"machine ceilings are not kept for the next run: {error}", stacklevel=3)
