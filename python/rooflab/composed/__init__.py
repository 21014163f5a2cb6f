"""Functions under PyTorch's names that are composed of ops with kernels: counters count what runs."""

from .conversions import as_tensor, finfo, from_numpy, iinfo, is_tensor
from .elementwise import exp2, logical_and, logical_not, logical_or, logical_xor, reciprocal, square
from .places import diag, index_add, masked_select, scatter, trace, unique
from .products import addmm, bmm, dot, mm, mv, outer
from .random import Generator, bernoulli, multinomial, randperm
from .rounding import nan_to_num, round, sign
from .shapes import clone, flip, hstack, meshgrid, repeat, roll, tile, vstack
from .statistics import bincount, count_nonzero, equal, logsumexp, median, prod
from .views import broadcast_to, movedim, narrow, numel, permute, ravel, reshape, select, swapaxes, t, transpose, unbind

__all__ = [
    "Generator",
    "addmm",
    "as_tensor",
    "bernoulli",
    "bincount",
    "bmm",
    "broadcast_to",
    "clone",
    "count_nonzero",
    "diag",
    "dot",
    "equal",
    "exp2",
    "finfo",
    "flip",
    "from_numpy",
    "hstack",
    "iinfo",
    "index_add",
    "is_tensor",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "masked_select",
    "median",
    "meshgrid",
    "mm",
    "movedim",
    "multinomial",
    "mv",
    "nan_to_num",
    "narrow",
    "numel",
    "outer",
    "permute",
    "prod",
    "randperm",
    "ravel",
    "reciprocal",
    "repeat",
    "reshape",
    "roll",
    "round",
    "scatter",
    "select",
    "sign",
    "square",
    "swapaxes",
    "t",
    "tile",
    "trace",
    "transpose",
    "unbind",
    "unique",
    "vstack",
]
