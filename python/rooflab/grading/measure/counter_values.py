"""The counters of a call as plain values."""

from __future__ import annotations

from typing import Any

import rooflab as rl

COUNTERS = (
    "launches", "host_calls", "macs", "flops", "bytes_read", "bytes_written", "allocations", "bytes_allocated",
    "peak_bytes",
)  # fmt: skip


def seen_by(counters: rl.count) -> dict[str, Any]:
    """What `rl.count` has counted, and the calls of each op under "by_op".

    Examples
    --------
    >>> with rl.count() as counters:
    ...     _ = rl.ones(3) + 1
    >>> seen_by(counters)["by_op"]
    {'add': 1, 'fill': 1}
    """
    ops = {name: int(op.ops) for name, op in counters.by_op.items() if op.ops}
    return {name: int(getattr(counters, name)) for name in COUNTERS} | {"by_op": ops}
