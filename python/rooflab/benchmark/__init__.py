"""How long things take: one call (`latency`), and the rungs of an op beside each other (`rooflab bench OP`)."""

from .gpu_clock import synchronize
from .timing import Timing, latency, latency_one_time

__all__ = ["Timing", "latency", "latency_one_time", "synchronize"]
