"""Figures of the labs: rooflines, latency over size, kernel and memory timelines, comparisons.

Each function returns a matplotlib Figure and never shows it. Medians are drawn with their 20th and 80th
percentiles.
"""

from .attention import plot_flash_attention_improvement, plot_length_sweep
from .bars import plot_bars
from .counts import plot_lines, plot_shares
from .decoder import plot_decoder_layer
from .diagrams import plot_attention_tiles, plot_memory_hierarchy, plot_online_softmax
from .gpu import plot_bursts, plot_ridges, plot_waves
from .latency import plot_latency_vs_size, plot_samples
from .learning import plot_accuracy_by_layers, plot_accuracy_grid, plot_attention_maps, plot_learning, plot_losses
from .memory import plot_memory_timeline, plot_memory_timelines
from .model_cost import plot_model_cost
from .roofline import plot_roofline
from .steps import plot_memory_phases, plot_step_times, plot_time_shares
from .timeline import plot_timeline, plot_timelines
from .warp_requests import plot_warp_requests

__all__ = [
    "plot_accuracy_by_layers", "plot_accuracy_grid", "plot_attention_maps", "plot_attention_tiles", "plot_bars",
    "plot_bursts", "plot_decoder_layer", "plot_flash_attention_improvement", "plot_latency_vs_size", "plot_learning",
    "plot_length_sweep", "plot_lines", "plot_losses", "plot_memory_hierarchy", "plot_memory_phases",
    "plot_memory_timeline", "plot_memory_timelines", "plot_model_cost", "plot_online_softmax", "plot_ridges",
    "plot_roofline", "plot_samples", "plot_shares", "plot_step_times", "plot_time_shares", "plot_timeline",
    "plot_timelines", "plot_warp_requests", "plot_waves",
]  # fmt: skip
