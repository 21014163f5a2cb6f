"""What Lab 5 gives its students: answers compared at many sizes, numbers rounded to short formats, published tables.

Letters: M, N, K sizes of a product, T side of a tile, n bytes a number, P parameters, B sequences, L tokens.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.grading import measure
from rooflab.grading.measure.global_array import GlobalArray
from rooflab.grading.measure.global_memory import counted
from rooflab.labs.lab4 import assert_counts
from rooflab.machine.identity import cpu_name
from rooflab.testing import is_count, is_near, is_number

__all__ = [
    "FORMATS", "GELU_ELEMENTS", "PUBLISHED_GELU", "PUBLISHED_MATMUL", "PUBLISHED_MLP", "PUBLISHED_PROFILE",
    "SILICON_GAINS", "assert_counts", "assert_tiles", "assert_values", "draws", "global_array", "load",
    "machine_name", "rounded", "store",
]  # fmt: skip

FORMATS = {
    "fp32": (8, 23), "tf32": (8, 10), "fp16": (5, 10), "bf16": (8, 7), "e4m3": (4, 3), "e5m2": (5, 2),
}  # fmt: skip
"""Bits of the exponent and of the mantissa. ``e4m3`` is the one of machine learning: it has no infinity."""

SILICON_GAINS = {
    "shorter numbers": 16.0,
    "instructions that do more": 12.5,
    "smaller transistors": 2.5,
    "sparsity": 2.0,
}
"""Where ten years of a GPU's gains came from, as a factor each (B. Dally, Hot Chips 2023)."""

PUBLISHED_MATMUL = {1024: (0.22, 9.80), 2048: (1.28, 13.40), 4096: (9.32, 14.74), 8192: (59.71, 18.41),
                    16384: (462.52, 19.02)}  # fmt: skip
"""(ms, TFLOP/s) of N x N products in fp32 on an A100-SXM4-40GB, without tf32."""

PUBLISHED_MLP = {
    "steps": (2.11, 3.81, 5.71, 7.56, 9.43),
    "layers": (2.11, 3.40, 4.79, 6.20, 7.70),
    "batch": (2.11, 1.94, 1.97, 2.02, 2.03),
    "dim": (2.11, 1.92, 1.99, 2.04, 1.97),
}
"""ms of the MLP of 5.3 on that A100, with one size times 1, 2, 3, 4 and 5."""

PUBLISHED_PROFILE = [
    ("add of two 2048 x 2048 matrices", "vectorized_elementwise_kernel", 43.489, 981.2),
    ("product of two 2048 x 2048 matrices", "ampere_sgemm_128x64_nn", 1244.0, 1958.0),
]
"""What ran on that A100, its kernel, µs of the kernel, and µs of the host around it."""

GELU_ELEMENTS = 2**28
"""Elements of the published GeLU; inferred from its times, because they were not published."""

PUBLISHED_GELU = {"mul": 11.686, "add": 3.896, "tanh": 1.545, "fused": 1.545}
"""ms of the kernels of a GeLU written out, added up by operation, and of the fused one."""


def machine_name(device: str) -> str:
    """The name of `device`, ``"cuda"`` or ``"cpu"``, for captions: the GPU, or the CPU and its threads.

    Examples
    --------
    >>> from rooflab.labs.lab5 import machine_name
    >>> "thread" in machine_name("cpu")
    True
    """
    if device == "cuda":
        return rl.cuda.properties().name
    threads = rl.num_threads()
    return f"{cpu_name()}, {threads} thread{'s' * (threads > 1)}"


def draws(*ranges: tuple[int, int], count: int = 20) -> list[tuple[int, ...]]:
    """`count` tuples of whole numbers by `rooflab.grading.measure.draw`, one of each range (first and last included).

    Examples
    --------
    >>> from rooflab.labs.lab5 import draws
    >>> [(a in range(1, 6), b == 7) for a, b in draws((1, 5), (7, 7), count=2)]
    [(True, True), (True, True)]
    """
    return [tuple(measure.draw(low, high) for low, high in ranges) for _ in range(count)]


def _agrees(got: Any, right: Any, relative: float) -> bool:
    got = _plain(got)
    if isinstance(right, (str, bool)) or right is None:
        return type(got) is type(right) and bool(got == right)
    if isinstance(right, int):
        return is_count(got) and got == right
    if isinstance(right, float):
        return is_near(got, right, relative, absolute=1e-15)
    if isinstance(right, dict):
        same = isinstance(got, dict) and set(got) == set(right)
        return same and all(_agrees(got[key], value, relative) for key, value in right.items())
    got = _listed(got)
    pairs = isinstance(got, (tuple, list)) and len(got) == len(right)
    return pairs and all(_agrees(one, other, relative) for one, other in zip(got, right, strict=True))


def _misfit(got: Any, right: Any) -> str:
    """What kind of value is expected, if `got` is of another kind."""
    got = _plain(got)
    if isinstance(right, dict):
        if not isinstance(got, dict) or set(got) != set(right):
            return f"a dict with the keys {', '.join(map(repr, right))}"
        return _misfit_inside("a dict", {f"[{key!r}]": (got[key], value) for key, value in right.items()})
    if isinstance(right, (tuple, list)):
        got = _listed(got)
        what = f"{len(right)} values" if isinstance(right, tuple) else "a list"
        if not isinstance(got, (tuple, list)) or (isinstance(right, tuple) and len(got) != len(right)):
            return what
        return _misfit_inside(what, {f"[{i}]": pair for i, pair in enumerate(zip(got, right, strict=False))})
    if isinstance(right, int) and not isinstance(right, bool):
        return "" if is_count(got) else "a whole number (int)"
    if isinstance(right, float):
        return "" if is_number(got) else "a number"
    return "" if isinstance(got, type(right)) or right is None else f"a {type(right).__name__}"


def _misfit_inside(what: str, pairs: Mapping[str, tuple[Any, Any]]) -> str:
    """The same of the first item that is of another kind; `pairs` are what is at each place and what is expected."""
    kinds = {place: _misfit(got, right) for place, (got, right) in pairs.items()}
    return next((f"{what}, of which {place} is {kind}" for place, kind in kinds.items() if kind), "")


def _plain(got: Any) -> Any:
    """NumPy's text, and its true or false, as Python's."""
    return got.item() if isinstance(got, (np.bool_, np.str_)) else got


def _listed(got: Any) -> Any:
    """An array or a tensor as a list, anything else as it is."""
    return got.tolist() if isinstance(got, (np.ndarray, rl.Tensor)) else got


def assert_values(
    function: Callable[..., Any], expected: Mapping[tuple, Any], hint: str, relative: float = 1e-3
) -> None:
    """Assert that ``function(*arguments)`` is ``expected[arguments]``, for all arguments.

    A float is compared within `relative`, everything else exactly. Tuples, lists and dicts are compared item by item,
    and a tuple or a list may come as the other one or as an array.

    Raises
    ------
    AssertionError
        The call, what it returned, what is expected, and `hint`.

    Examples
    --------
    >>> from rooflab.labs.lab5 import assert_values
    >>> assert_values(lambda a, b: (a + b, a / b), {(3, 2): (5, 1.5)}, "the sum and the quotient")
    """
    for arguments, right in expected.items():
        got = function(*arguments)
        call = f"{function.__name__}({', '.join(map(repr, arguments))})"
        kind = _misfit(got, right)
        assert not kind, f"{call} must return {kind}, got {got!r}"
        assert _agrees(got, right, relative), f"{call} returned {got!r}, expected {right!r}. Hint: {hint}"


def assert_tiles(name: str, order: Iterable[tuple[int, np.ndarray]], N: int, T: int) -> None:
    """Assert that a product of two N x N arrays reads them tile by tile, as `rooflab.grading.measure.accesses` saw it.

    A chip holds the tile of each array that was read last, and only once all of its elements have been read. Each tile
    (i, k) of the first array has to be there together with each tile (k, j) of the second one. Those that make a tile
    (i, j) of the product come one after the other.

    Raises
    ------
    AssertionError
        `name`, and the first two tiles that were never there together, or the first tile of the product that was left
        before it was done.

    Examples
    --------
    >>> from rooflab.labs.lab5 import assert_tiles
    >>> assert_tiles("one tile", [(0, np.arange(4)), (1, np.array([1, 3, 0, 2]))], N=2, T=2)
    """
    tiles = range(-(-N // T))
    read: list[tuple[Any, set[int]]] = [(None, set()), (None, set())]  # the tile of A and of B, and what is there of it
    met: list[tuple[int, int, int]] = []  # (i, j, k)
    for array, numbers in order:
        for number in numbers.tolist():
            tile = (number // N // T, number % N // T)
            before, elements = read[array]
            read[array] = tile, ({number} if tile != before or number in elements else elements | {number})
            if all(one and len(held) == math.prod(min(T, N - T * place) for place in one) for one, held in read):
                (i, k), (other, j) = (one for one, _ in read)
                met += [(i, j, k)] if k == other else []
    for i, j, k in itertools.product(tiles, repeat=3):
        said = f"{name}: tile ({i}, {k}) of A and tile ({k}, {j}) of B were never on the chip at the same moment"
        assert (i, j, k) in met, f"{said}, because a tile leaves it as soon as you read from another tile of its array"
    runs = [(place, {k for *_, k in run}) for place, run in itertools.groupby(met, lambda one: one[:2])]
    done = {place for place, steps in runs if len(steps) == len(tiles)}
    for i, j in itertools.product(tiles, repeat=2):
        said = f"{name}: tile ({i}, {j}) of C was left before it was done, and only one tile of C is on the chip"
        assert (i, j) in done, f"{said}: let the steps along K be the innermost loop over tiles"


def rounded(x: Any, name: str) -> Any:
    """Round x to the nearest number of a format; of two that are equally near, to the one with an even last bit.

    Beyond the largest number the result is infinity, or NaN for ``e4m3``, which has no infinity.

    Parameters
    ----------
    x : number or array
        In float64, which holds every number of these formats.
    name : str
        One of `FORMATS`.

    Raises
    ------
    ValueError
        For a format that is none of these.

    Examples
    --------
    >>> from rooflab.labs.lab5 import rounded
    >>> rounded(1.001, "bf16"), rounded(65520.0, "fp16"), rounded(0.1, "e4m3")
    (1.0, inf, 0.1015625)
    """
    if name not in FORMATS:
        raise ValueError(f"[rounded] name: expected one of {', '.join(FORMATS)}, got {name!r}")
    exponent, mantissa = FORMATS[name]
    bias = 2 ** (exponent - 1) - 1
    values = np.asarray(x, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        binade = np.maximum(np.frexp(values)[1] - 1, 1 - bias)
        step = np.ldexp(1.0, binade - mantissa)
        nearest = np.rint(values / step) * step
        largest = 448.0 if name == "e4m3" else (2 - 2.0**-mantissa) * 2.0**bias
        beyond = math.nan if name == "e4m3" else math.inf
        nearest = np.where(np.abs(nearest) > largest, np.copysign(beyond, values), nearest)
    nearest = np.where(np.isnan(values), math.nan, nearest)
    return float(nearest) if nearest.ndim == 0 else nearest


def global_array(values: Any) -> GlobalArray:
    """An array in global memory, a copy of `values`, that counts each element that is read or written.

    Examples
    --------
    >>> from rooflab.labs.lab5 import global_array
    >>> x = global_array([5.0, 6.0, 7.0])
    >>> x[1:].tolist(), x.reads, x.writes
    ([6.0, 7.0], 2, 0)
    """
    return counted(values)[0]


def load(memory: GlobalArray, offsets: Any, mask: Any) -> np.ndarray:
    """Elements of `memory` at `offsets` where `mask` is true, and 0 elsewhere; only those are read.

    Examples
    --------
    >>> from rooflab.labs.lab5 import global_array, load
    >>> load(global_array([5.0, 6.0]), np.array([1, 2]), np.array([True, False])).tolist()
    [6.0, 0.0]
    """
    offsets, mask = np.broadcast_arrays(np.asarray(offsets), np.asarray(mask, bool))
    found = np.zeros(offsets.shape, memory.dtype)
    found[mask] = memory[offsets[mask]]
    return found


def store(memory: GlobalArray, offsets: Any, values: Any, mask: Any) -> None:
    """Write `values` into `memory` at `offsets` where `mask` is true; nothing else is written.

    Examples
    --------
    >>> from rooflab.labs.lab5 import global_array, store
    >>> y = global_array([0.0, 0.0])
    >>> store(y, np.array([1, 2]), np.array([6.0, 7.0]), np.array([True, False]))
    >>> y[:].tolist(), y.writes
    ([0.0, 6.0], 1)
    """
    offsets, values, mask = np.broadcast_arrays(np.asarray(offsets), np.asarray(values), np.asarray(mask, bool))
    memory[offsets[mask]] = values[mask]
