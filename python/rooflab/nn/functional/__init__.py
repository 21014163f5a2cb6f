"""PyTorch's names of functions that layers are made of.

    import rooflab.nn.functional as F
    F.cross_entropy(F.linear(x, w), target)

Each calls ops of rooflab; none has kernels of its own.
"""

from typing import TYPE_CHECKING

from ... import _habits
from ..._core import embedding, linear, relu, sigmoid, silu, tanh
from .activations import elu, gelu, glu, leaky_relu, log_softmax, logsigmoid, softmax, softplus
from .layers import dropout, layer_norm, rms_norm, scaled_dot_product_attention
from .losses import cross_entropy, l1_loss, mse_loss, nll_loss
from .vectors import cosine_similarity, normalize, one_hot, pad

__all__ = [
    "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding", "gelu", "glu", "l1_loss", "layer_norm",
    "leaky_relu", "linear", "log_softmax", "logsigmoid", "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "relu",
    "rms_norm", "scaled_dot_product_attention", "sigmoid", "silu", "softmax", "softplus", "tanh",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
