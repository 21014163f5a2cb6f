"""Views of a tensor, or copies where a view is not possible, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from .._core import Tensor
from ._arguments import checked, place_of, sequence_of, sizes_of

__all__ = [
    "broadcast_to",
    "movedim",
    "narrow",
    "numel",
    "permute",
    "ravel",
    "reshape",
    "select",
    "swapaxes",
    "t",
    "transpose",
    "unbind",
]


@checked
def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; a vector or a number as it is. A view.

    Parameters
    ----------
    x : Tensor
        Up to two dimensions.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For more dimensions.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.t(rl.ones(2, 3)).shape
    (3, 2)
    """
    if x.ndim > 2:
        raise ValueError(f"[t] x: expected at most 2 dimensions, got {x.shape}")
    return x.T


@checked
def ravel(x: Tensor) -> Tensor:
    """One dimension of all, a view if the layout allows it.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    Tensor
        (N,).

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.ravel(rl.ones(2, 3)).shape
    (6,)
    """
    return x.flatten()


@checked
def swapaxes(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """``x.transpose(dim0, dim1)``, a view.

    Parameters
    ----------
    x : Tensor
        (...).
    dim0, dim1 : int
        What changes places.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For dimensions that x lacks.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.swapaxes(rl.ones(2, 3), 0, 1).shape
    (3, 2)
    """
    return x.transpose(dim0, dim1)


@checked
def movedim(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """x with dimensions in other places; the others keep their order. A view.

    Parameters
    ----------
    x : Tensor
        (...).
    source, destination : int or sequence of int
        From where and to where.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For dimensions that x lacks or that appear twice.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.movedim(rl.ones(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    given = (sequence_of(source), sequence_of(destination))
    sources, targets = ([place_of("movedim", x, dim) for dim in dims] for dims in given)
    if len(sources) != len(targets) or len(set(sources)) < len(sources) or len(set(targets)) < len(targets):
        raise ValueError(f"[movedim] expected as many places to go to as to come from, got {source} and {destination}")
    rest = iter(dim for dim in range(x.ndim) if dim not in sources)
    return x.permute(*(sources[targets.index(dim)] if dim in targets else next(rest) for dim in range(x.ndim)))


@checked
def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """``x.expand(shape)``, a view.

    Parameters
    ----------
    x : Tensor
        (...).
    shape : sequence of int
        What x broadcasts to.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For a shape that x does not broadcast to.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.broadcast_to(rl.ones(3), (2, 3)).shape
    (2, 3)
    """
    return x.expand(*shape)


@checked
def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension, views. Backward is that of `rl.split`.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int
        The dimension.

    Returns
    -------
    tuple of Tensor
        Without that dimension.

    Raises
    ------
    ValueError
        For a dimension that x lacks.

    Examples
    --------
    >>> import rooflab as rl
    >>> [y.tolist() for y in rl.unbind(rl.tensor([[1, 2], [3, 4]]), 1)]
    [[1, 3], [2, 4]]
    """
    place = place_of("unbind", x, dim)
    return _core._unbind(x, place)


@checked
def select(x: Tensor, dim: int, index: int) -> Tensor:
    """One slice along a dimension, a view.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int
        The dimension.
    index : int
        Which slice.

    Returns
    -------
    Tensor
        Without that dimension.

    Raises
    ------
    ValueError
        For a dimension that x lacks.
    IndexError
        For an index out of range.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.select(rl.tensor([[1, 2], [3, 4]]), 1, 0).tolist()
    [1, 3]
    """
    return x[(slice(None),) * place_of("select", x, dim) + (index,)]


@checked
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Some slices along a dimension, a view.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int
        The dimension.
    start, length : int
        The first and how many.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For a dimension that x lacks, or slices out of range.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.narrow(rl.arange(5), 0, 1, 3).tolist()
    [1, 2, 3]
    """
    place = place_of("narrow", x, dim)
    start = start + x.shape[place] if start < 0 else start
    if not 0 <= start <= start + length <= x.shape[place]:
        raise ValueError(f"[narrow] expected slices of the {x.shape[place]} there are, got {length} from {start}")
    return x[(slice(None),) * place + (slice(start, start + length),)]


@checked
def reshape(x: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """``x.reshape(shape)``: a view if the layout allows it, else a copy.

    Parameters
    ----------
    x : Tensor
        (...).
    *shape : int, or one sequence of int
        One size may be -1.

    Returns
    -------
    Tensor
        That shape.

    Raises
    ------
    ValueError
        For another number of elements.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.reshape(rl.ones(2, 3), (3, -1)).shape
    (3, 2)
    """
    return x.reshape(*sizes_of("reshape", shape))


@checked
def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """``x.transpose(dim0, dim1)``, a view.

    Parameters
    ----------
    x : Tensor
        (...).
    dim0, dim1 : int
        What changes places.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For dimensions that x lacks.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.transpose(rl.ones(2, 3), 0, 1).shape
    (3, 2)
    """
    return x.transpose(dim0, dim1)


@checked
def permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    """``x.permute(dims)``, a view.

    Parameters
    ----------
    x : Tensor
        (...).
    dims : sequence of int
        Each dimension once.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For dimensions that x lacks or that appear twice.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.permute(rl.ones(2, 3), (1, 0)).shape
    (3, 2)
    """
    return x.permute(*dims)


@checked
def numel(x: Tensor) -> int:
    """How many elements there are.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    int
        ``x.numel()``.

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.numel(rl.ones(2, 3))
    6
    """
    return x.numel()
