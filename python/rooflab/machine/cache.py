"""Keeps measured ceilings between runs: one JSON file per device, host, driver, thread count and rooflab version.

Figures expire: a machine changes in ways that its names do not show, such as its cooling or its other users.
"""

from __future__ import annotations

import datetime
import json
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from platformdirs import user_cache_path

from ..files import replacing

T = TypeVar("T")
EXPIRE_AFTER = datetime.timedelta(days=30)
_AHEAD = datetime.timedelta(days=1)  # that a clock may have been set back since; figures of a later date are not used


def cache_file(identity: Mapping[str, Any]) -> Path:
    """Where the figures of a device are kept: in the user's cache folder, ``~/.cache/rooflab`` on Linux."""
    parts = [re.sub(r"[^A-Za-z0-9.+]+", "_", str(value)) for value in identity.values()]
    return user_cache_path("rooflab") / f"machine-{'-'.join(parts)}.json"


def measured_at(text: str) -> datetime.datetime:
    """The moment that `Ceilings.measured_on` names.

    Examples
    --------
    >>> measured_at("2026-01-31 12:30 UTC").isoformat()
    '2026-01-31T12:30:00+00:00'
    """
    return datetime.datetime.strptime(text, "%Y-%m-%d %H:%M UTC").replace(tzinfo=datetime.UTC)


def load(identity: Mapping[str, Any], parse: Callable[[Mapping[str, Any]], T]) -> T | None:
    """The cached figures of a device, or None where there are none, or they are old, of the future or not ours."""
    try:
        values = json.loads(cache_file(identity).read_text(encoding="utf-8"))
        if any(values[key] != value for key, value in identity.items()):
            return None
        age = datetime.datetime.now(datetime.UTC) - measured_at(values["measured_on"])
        return parse(values) if -_AHEAD <= age < EXPIRE_AFTER else None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return None


def store(identity: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Writes the figures, whole or not at all. A cache that cannot be written is a warning, not an error."""
    try:
        path = cache_file(identity)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(values, indent=2), encoding="utf-8")
    except (OSError, RuntimeError) as error:
        warnings.warn(f"machine ceilings are not kept for the next run: {error}", stacklevel=3)
