"""The arguments of a launch: checked as the GPU's launch checks them, and their arrays as the runner's memory."""

from __future__ import annotations

import contextlib
import mmap
import operator
import os
import reprlib
import resource
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ... import _core
from ..._core import Tensor
from .process import GRANULE

ALIGNED = 32  # bytes: a sector, and a multiple of what any type asks for
_MOST = (1 << 34) - (2 << 20)  # of an arena: a record has 34 bits for an address, and __device__ variables lie behind


@dataclass(frozen=True)
class Place:
    """An array in the arena, as findings name it."""

    label: str
    begin: int
    bytes: int
    item_bytes: int


@dataclass
class _Array:
    label: str
    bytes: np.ndarray  # uint8, over the memory that the argument has
    address: int
    shift: int  # where it would begin on a GPU, beyond a multiple of 32 bytes
    item_bytes: int
    is_written: bool


class Arguments:
    """Arguments of one launch. Arrays that share memory share it in the arena too.

    Attributes
    ----------
    words : list of (int, int)
        Each argument's bits, and what they are: 0 a number, 1 an offset in the arena, 2 a null pointer.
    buffers : list of (int, int, int)
        (begin, bytes, whether it may be written) of each piece of the arena.
    places : list of Place
        The arrays.
    written : list of Tensor
        Tensors that the kernel may write.
    values : list
        What was given.
    """

    def __init__(self, kernel: str, parameters: Sequence[_core.cuda.Parameter], values: Sequence[Any]) -> None:
        if len(values) != len(parameters):
            labels = ", ".join(parameter.label for parameter in parameters)
            got = "a tuple of them" if len(values) == 1 and isinstance(values[0], (tuple, list)) else len(values)
            raise ValueError(f"[{kernel}] expected {len(parameters)} arguments ({labels}), got {got}")
        self._kernel = kernel
        self.values = list(values)
        self._arrays: dict[int, _Array] = {}
        self.written: list[Tensor] = []
        self.words = [
            self._word(i, parameter, value) for i, (parameter, value) in enumerate(zip(parameters, values, strict=True))
        ]
        self._lay_out()

    def _word(self, index: int, parameter: _core.cuda.Parameter, value: Any) -> tuple[int, int]:
        kind = parameter.kind
        is_array = isinstance(value, (Tensor, np.ndarray))
        if kind == "pointer":
            if value is None:
                return 0, 2
            if not is_array:
                self._refuse(parameter, "a tensor or a NumPy array", value)
            self._arrays[index] = self._array(parameter, value)
            return 0, 1
        if kind == "integer":
            if isinstance(value, np.bool_):
                value = bool(value)
            if is_array or not hasattr(value, "__index__"):
                self._refuse(parameter, "an integer", value)
            return self._integer(parameter, operator.index(value)), 0
        if kind == "real":
            if is_array or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
                self._refuse(parameter, "a number", value)
            try:
                with np.errstate(over="ignore"):
                    real = np.array(float(value), np.float32 if parameter.bytes == 4 else np.float64)
            except OverflowError:  # an integer beyond any float
                raise ValueError(f"[{self._kernel}] {parameter.label}: a number of this size does not fit") from None
            return int(real.view(f"u{parameter.bytes}")), 0
        message = f"a kernel's parameters can be pointers and numbers, not {kind}; take its members one by one"
        raise ValueError(f"[{self._kernel}] {parameter.label}: {message}")

    def _refuse(self, parameter: _core.cuda.Parameter, expected: str, value: Any) -> NoReturn:
        kind = type(value)
        name = f"{kind.__module__}.{kind.__name__}" if kind.__module__ != "builtins" else kind.__name__
        how = ""
        if parameter.kind == "integer" and isinstance(value, (float, np.floating)):
            how = "; int(...) makes it one"
        elif isinstance(value, (Tensor, np.ndarray)) and value.ndim == 0:
            how = "; .item() gives it"
        shown = reprlib.repr(value)
        raise ValueError(f"[{self._kernel}] {parameter.label}: expected {expected}, got {name} {shown}{how}")

    def _integer(self, parameter: _core.cuda.Parameter, number: int) -> int:
        bits = 1 if parameter.dtype is not None else 8 * parameter.bytes  # a number's dtype is bool or unknown
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if parameter.is_signed else (0, (1 << bits) - 1)
        if not low <= number <= high:
            room = f"{bits} {'bits' if parameter.is_signed else 'unsigned bits'}" if bits > 1 else "a bool"
            raise ValueError(f"[{self._kernel}] {parameter.label}: {number!r} does not fit into {room}")
        return number & (1 << 64) - 1

    def _array(self, parameter: _core.cuda.Parameter, value: Tensor | np.ndarray) -> _Array:
        where = f"[{self._kernel}] {parameter.label}"
        is_tensor = isinstance(value, Tensor)
        if isinstance(value, Tensor):
            if str(value.device) != "cpu":
                raise ValueError(f"{where}: expected a tensor on the CPU, got one on {value.device}")
            if parameter.is_written:
                self.written.append(value)
            array = each_once(value)
        else:
            array = value
            if isinstance(array, np.ma.MaskedArray):
                raise ValueError(f"{where}: a kernel sees no mask; pass .filled(value), or .data")
            if parameter.is_written and not array.flags.writeable:
                how = "pass a copy, or let the parameter point to const"
                raise ValueError(f"{where}: expected an array that can be written, and this one cannot; {how}")
        if array.dtype.hasobject:
            raise ValueError(f"{where}: expected an array of numbers, got one of Python's objects")
        if any(stride < 0 for stride in array.strides):
            raise ValueError(f"{where}: an array whose strides are negative has no first address; copy it")
        whole = _bytes_of(array)
        address = array.__array_interface__["data"][0] if whole.size else -1 - len(self._arrays)
        label = parameter.label.partition(" (")[0]
        shift = address if is_tensor and whole.size else offset_in_base(array)
        return _Array(label, whole, address, shift % ALIGNED, array.dtype.itemsize, parameter.is_written)

    def _lay_out(self) -> None:
        """Give each piece of memory its place; arrays that overlap are one piece."""
        self.buffers: list[tuple[int, int, int]] = []
        self.places: list[Place] = []
        self._placed: list[_Array] = []  # in the order of the places
        groups: list[list[_Array]] = []
        ends: list[int] = []
        for array in sorted(self._arrays.values(), key=lambda array: array.address):
            if not groups or array.address >= ends[-1]:
                groups.append([])
                ends.append(array.address)
            groups[-1].append(array)
            ends[-1] = max(ends[-1], array.address + array.bytes.size)
        sizes = [0, *(end - group[0].address for group, end in zip(groups, ends, strict=True)), 0]
        gaps = self._gaps(sizes)
        at = gaps[0]
        offsets: dict[int, int] = {}
        for group, size, gap in zip(groups, sizes[1:], gaps[1:], strict=False):
            self._piece(group, size, at, offsets)
            at += _rounded(group[0].shift + size) + gap
        self.arena_bytes = at
        self.words = [
            (offsets[id(self._arrays[i])], 1) if i in self._arrays else word for i, word in enumerate(self.words)
        ]

    def _gaps(self, sizes: list[int]) -> list[int]:
        """Bytes before, between and behind pieces of memory of these sizes, which take none until they are used.

        They are as wide as the arrays beside them, so that an index which is far out of bounds hits no other array, and
        twice as wide between two, so that it is nearest to its own; less where a file cannot be that long.
        """
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        most = min(_MOST, limit) if limit != resource.RLIM_INFINITY else _MOST
        arrays = sum(_rounded(size + ALIGNED) for size in sizes)
        if arrays > _MOST:
            raise ValueError(f"[{self._kernel}] arrays of {arrays / 2**30:.1f} GiB, where a launch can have 16 GiB")
        widest = max((most - arrays) // (len(sizes) - 1) // GRANULE * GRANULE, GRANULE)
        inner = range(1, len(sizes) - 2)
        wanted = [sizes[1], *(2 * max(sizes[i], sizes[i + 1]) for i in inner), sizes[-2]]
        return [min(_rounded(max(each, 1)), widest) for each in wanted]

    def _piece(self, group: list[_Array], size: int, at: int, offsets: dict[int, int]) -> None:
        first = group[0].address
        shift = group[0].shift
        for array in group:
            offsets[id(array)] = at + shift + array.address - first
            self._placed.append(array)
            self.places.append(Place(array.label, offsets[id(array)], array.bytes.size, array.item_bytes))
        self.buffers.append((at + shift, size, any(array.is_written for array in group)))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Without another launch of this process at the same memory, if one of them writes there: what one thread's
        launch copies back would undo what another's has written meanwhile.
        """
        mine = [(each.address, each.address + each.bytes.size, each.is_written) for each in self._placed]
        with _turns:
            _turns.wait_for(lambda: not any(_meet(mine, other) for other in _running.values()))
            _running[id(self)] = mine
        try:
            yield
        finally:
            with _turns:
                del _running[id(self)]
                _turns.notify_all()

    def copy_in(self, arena: mmap.mmap) -> None:
        """The arrays' values, into the arena."""
        self._copy(arena, is_back=False)

    def copy_back(self, arena: mmap.mmap) -> None:
        """What the kernel may have written, into the arrays."""
        self._copy(arena, is_back=True)

    def _copy(self, arena: mmap.mmap, is_back: bool) -> None:
        memory = np.frombuffer(arena, np.uint8)
        for place, array in zip(self.places, self._placed, strict=True):
            inside = memory[place.begin : place.begin + place.bytes]
            if not is_back:
                inside[:] = array.bytes
            elif array.is_written:
                array.bytes[:] = inside
        del memory


_Span = tuple[int, int, bool]  # of memory: begin, end, whether it may be written
_turns = threading.Condition()
_running: dict[int, list[_Span]] = {}  # by launch


def _begin_anew() -> None:
    """In a process that was forked, where none of its parent's launches run."""
    global _turns
    _turns = threading.Condition()
    _running.clear()


os.register_at_fork(after_in_child=_begin_anew)


def _meet(some: list[_Span], others: list[_Span]) -> bool:
    return any(a[0] < b[1] and b[0] < a[1] and (a[2] or b[2]) for a in some for b in others)


def _rounded(size: int) -> int:
    return (size + GRANULE - 1) // GRANULE * GRANULE


def offset_in_base(array: np.ndarray) -> int:
    """Where a view begins in its array. On a GPU the array itself begins on a multiple of 256 bytes."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return array.__array_interface__["data"][0] - base.__array_interface__["data"][0]


def each_once(x: Tensor) -> np.ndarray:
    """The elements of a tensor on the CPU, to be written to; of those that an expanded tensor repeats, the first."""
    return x.detach()[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x.stride())].numpy()


def _bytes_of(array: np.ndarray) -> np.ndarray:
    """The memory from an array's first element to its last, whatever its strides."""
    if array.size == 0:
        return np.empty(0, np.uint8)
    reach = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    first = array[(slice(0, 1),) * array.ndim].reshape(-1) if array.ndim else array.reshape(1)
    return np.lib.stride_tricks.as_strided(first.view(np.uint8), (reach + array.itemsize,), (1,))
