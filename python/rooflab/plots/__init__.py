"""Figures of the labs: rooflines, latency over size, kernel and memory timelines, comparisons.

Each function returns a matplotlib Figure and never shows it. Medians are drawn with their 20th and 80th
percentiles.
"""

from .attention import plot_flash_attention_improvement, plot_length_sweep
from .bars import plot_bars
from .latency import plot_latency_vs_size
from .memory import plot_memory_timeline
from .roofline import plot_roofline
from .timeline import plot_timeline

__all__ = [
    "plot_bars", "plot_flash_attention_improvement", "plot_latency_vs_size", "plot_length_sweep",
    "plot_memory_timeline", "plot_roofline", "plot_timeline",
]  # fmt: skip
