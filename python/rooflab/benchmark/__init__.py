"""How long things take: one call (`latency`), and the rungs of an op beside each other (`rooflab bench OP`)."""

from .timing import Timing, latency, latency_one_time, synchronize

__all__ = ["Timing", "latency", "latency_one_time", "synchronize"]
