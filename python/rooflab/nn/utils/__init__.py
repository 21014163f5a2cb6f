"""`rl.nn.utils`, where PyTorch users look for the clipping of gradients."""

from typing import TYPE_CHECKING

from ... import _habits
from .clip_grad import clip_grad_norm_

__all__ = ["clip_grad_norm_"]

if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
