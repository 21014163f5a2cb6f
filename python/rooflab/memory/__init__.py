"""Bytes held by tensors: now, at the peak of a call, and over time.

    use = rl.benchmark_memory(rl.matmul, a, a)
    use.peak_gb, use.resident_gb
    with rl.memory.record() as timeline:
        rl.softmax(rl.matmul(a, a))
    timeline.by_op()                                # who held what at the peak
    rl.plots.plot_memory_timeline(timeline)
    timeline.save_html("memory.html")

The bytes counted are those that rooflab's tensors asked for: exact, and the same on every run and device. Views add
nothing, and neither do tensors of other libraries.
"""

from .._core.memory import Block, allocated, empty_cache, peak, reserved, reset_peak, set_limit, snapshot
from .records import Allocation, Event, Phase
from .timeline import Timeline, record
from .use import MemoryUse, available, benchmark_memory

__all__ = [
    "Allocation", "Block", "Event", "MemoryUse", "Phase", "Timeline", "allocated", "available", "benchmark_memory",
    "empty_cache", "peak", "record", "reserved", "reset_peak", "set_limit", "snapshot",
]  # fmt: skip
