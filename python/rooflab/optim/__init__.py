"""Optimisers under PyTorch's names, and learning rates as functions of the step."""

from typing import TYPE_CHECKING

from .. import _habits
from . import lr_scheduler
from .adamw import AdamW
from .schedules import warmup_cosine, warmup_flat_linear

__all__ = ["AdamW", "lr_scheduler", "warmup_cosine", "warmup_flat_linear"]

if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
