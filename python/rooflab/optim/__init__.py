"""Optimisers under PyTorch's names, and learning rates as functions of the step."""

from .adamw import AdamW
from .schedules import warmup_cosine, warmup_flat_linear

__all__ = ["AdamW", "warmup_cosine", "warmup_flat_linear"]
