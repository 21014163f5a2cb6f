"""The closed codec between the judge and the worker: plain values and tensors, nothing else, and no pickle.

A value is one tag byte and its body; integers are little-endian:

    N T F                 None, True, False
    i  u32 n, bytes       int (signed, n bytes)
    f  8 bytes            float
    c  16 bytes           complex
    s  u32 n, bytes       str (UTF-8)         b  u32 n, bytes    bytes
    l t d  u32 n, items   list, tuple, dict (n key/value pairs)
    a  array              numpy.ndarray       g  array           numpy scalar
    x  str device, array  rooflab.Tensor
    m  str device, head   rooflab.Tensor without memory, on meta
    r  u128 state, u128 increment, u64 buffer   numpy.random.Generator of PCG64, as numpy.random.default_rng makes it
    array := head, raw bytes in C order
    head := u8 n, dtype name; u8 ndim; ndim x u64 sizes

The reader trusts nothing: a size is checked before it is used, and whatever breaks a rule raises `CodecError`.
Types are matched exactly, so no subclass crosses in either direction: what one holds is sent plain. So are fractions
and NumPy's text.
"""

from __future__ import annotations

import collections
import math
import struct
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import GeneratorType
from typing import Any

import numpy as np

MAX_BYTES = 512 * 2**20
MAX_ITEMS = 2_000_000
WEIGHTS = {b"a": 10, b"g": 10, b"x": 100, b"m": 100, b"r": 100}  # plain items of as much time and memory
MAX_DEPTH = 32
MAX_INT_BYTES = 512
MAX_DIMS = 16

_DTYPES = """
bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128"""
DTYPES = frozenset(_DTYPES.split())
CANNOT = "cannot be passed between the tests and the answer"
KEYS = (str, int, float, bool, bytes, tuple, type(None))
SCALARS = (np.bool_, np.int32, np.int64, np.float32, np.float64, np.str_)
INSTEAD: dict[type, str] = {
    Decimal: "an int or a float, by int(x) or float(x)",
    **dict.fromkeys((GeneratorType, map, filter, zip, set, range), "a list of its values, by list(x)"),
}
# Makes, of an instance of such a type or a subclass, one of the builtin type. No method of the subclass is called.
READ: dict[type, Callable[[Any], Any]] = {
    int: int.__index__,
    float: float.__float__,
    str: str.__str__,
    list: lambda value: list.__getitem__(value, slice(None)),
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
    collections.OrderedDict: lambda value: dict(collections.OrderedDict.items(value)),  # a dict's own order is another
    dict: lambda value: dict(dict.items(value)),
}
BUILTIN = frozenset([bool, *READ]) - {collections.OrderedDict}


class CodecError(ValueError):
    """A value that may not cross, or bytes that are not a value."""


def encode(value: Any) -> bytes:
    """Bytes of a plain value.

    Raises
    ------
    CodecError
        The value, or one inside it, is not of a type listed above, or the whole is too large.
    """
    chunks: list[bytes] = []
    _encode(value, chunks, 0)
    body = b"".join(chunks)
    if len(body) > MAX_BYTES:
        raise CodecError(f"a value of {len(body)} bytes is too large, and {CANNOT} (limit {MAX_BYTES})")
    return body


def decode(body: bytes | bytearray) -> Any:
    """The value that `encode` wrote.

    Raises
    ------
    CodecError
        The bytes are not what `encode` writes.
    """
    reader = _Reader(body)
    value = reader.value(0)
    if reader.at != len(body):
        raise CodecError("bytes are left over after the value")
    return value


def plain(value: Any) -> Any:
    """A value as the plain one that it stands for. What an instance of a subclass holds is read by the methods of the
    builtin type, never by those of the subclass.
    """
    kind = type(value)
    if kind in BUILTIN:
        return value
    if kind is Fraction:
        return int(value) if value.denominator == 1 else float(value)
    if issubclass(kind, np.generic):
        return value.item() if kind is np.str_ else value
    return next((read(value) for base, read in READ.items() if issubclass(kind, base)), value)


def _encode(value: Any, out: list[bytes], depth: int) -> None:
    value = plain(value)
    kind = type(value)
    if depth > MAX_DEPTH:
        raise CodecError(f"a value nested deeper than {MAX_DEPTH} levels {CANNOT}")
    if len(out) > 4 * MAX_ITEMS:
        raise CodecError(f"a value of more than {MAX_ITEMS} items {CANNOT}")
    if value is None:
        out.append(b"N")
    elif kind is bool:
        out.append(b"T" if value else b"F")
    elif kind is int:
        size = value.bit_length() // 8 + 1
        if size > MAX_INT_BYTES:
            raise CodecError(f"an int of {size} bytes {CANNOT}")
        out += [b"i", struct.pack("<I", size), value.to_bytes(size, "little", signed=True)]
    elif kind is float:
        out += [b"f", struct.pack("<d", value)]
    elif kind is complex:
        out += [b"c", struct.pack("<dd", value.real, value.imag)]
    elif kind is str:
        out += [b"s", _text(value)]
    elif kind is bytes:
        out += [b"b", struct.pack("<I", len(value)), value]
    elif kind is list or kind is tuple:
        out += [b"l" if kind is list else b"t", struct.pack("<I", len(value))]
        for item in value:
            _encode(item, out, depth + 1)
    elif kind is dict:
        out += [b"d", struct.pack("<I", len(value))]
        keys = [key.item() if type(key) in SCALARS else plain(key) for key in value]
        if len({*keys}) < len(keys):
            raise CodecError(f"a dict with two keys of the same value {CANNOT}")
        for key, item in zip(keys, value.values(), strict=True):
            if type(key) not in KEYS:
                raise CodecError(f"a dict key of type {_name(type(key))} {CANNOT}")
            _encode(key, out, depth + 1)
            _encode(item, out, depth + 1)
    elif kind is np.ndarray:
        out += [b"a", *_array(value)]
    elif issubclass(kind, np.generic) or kind.__module__ == "ml_dtypes":
        array = np.asarray(value)
        if kind is not array.dtype.type:
            raise CodecError(f"a value of type {_name(kind)} {CANNOT}")
        out += [b"g", *_array(array)]
    elif (tensor := _tensor_type()) is not None and kind is tensor and str(value.device).startswith("meta"):
        out += [b"m", _text(str(value.device)), _head(str(value.dtype), value.shape)]
    elif tensor is not None and kind is tensor:
        out += [b"x", _text(str(value.device)), *_array(value.detach().cpu().numpy())]
    elif kind is np.random.Generator and type(value.bit_generator) is np.random.PCG64:
        out += [b"r", _generator(value.bit_generator.state)]
    else:
        use = INSTEAD.get(kind, "tensors, arrays, numbers, text, or lists and dicts of them")
        raise CodecError(f"a value of type {_name(kind)} {CANNOT}: use {use}")


def _text(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise CodecError(f"text that is not valid Unicode {CANNOT}") from None
    return struct.pack("<I", len(data)) + data


def _array(array: np.ndarray) -> list[bytes]:
    name = array.dtype.name
    if name not in DTYPES:
        raise CodecError(f"an array of dtype {name} {CANNOT}")
    if array.nbytes > MAX_BYTES:
        raise CodecError(f"an array of {array.nbytes} bytes is too large, and {CANNOT} (limit {MAX_BYTES})")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return [_head(name, array.shape), array.tobytes()]


def _head(name: str, shape: tuple[int, ...]) -> bytes:
    return struct.pack("<B", len(name)) + name.encode() + struct.pack(f"<B{len(shape)}Q", len(shape), *shape)


def _generator(state: Any) -> bytes:
    """State, increment, and the 32 bits that were drawn but not used yet; one more bit says whether there are any."""
    numbers = (state["state"]["state"], state["state"]["inc"])
    buffer = state["uinteger"] | state["has_uint32"] << 32
    return b"".join(number.to_bytes(16, "little") for number in numbers) + struct.pack("<Q", buffer)


def _name(kind: type) -> str:
    return str(type.__getattribute__(kind, "__name__"))


def _tensor_type() -> type | None:
    """rooflab's Tensor, when rooflab is loaded: the codec itself needs only NumPy."""
    return getattr(sys.modules.get("rooflab"), "Tensor", None)


def _dtype(name: str) -> np.dtype:
    if name not in DTYPES:
        raise CodecError("an array has an unknown dtype")
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


class _Reader:
    def __init__(self, body: bytes | bytearray) -> None:
        self.body, self.at, self.items = memoryview(body), 0, 0

    def take(self, size: int) -> memoryview:
        if size > len(self.body) - self.at:
            raise CodecError("the bytes end too early")
        self.at += size
        return self.body[self.at - size : self.at]

    def unpack(self, form: str) -> tuple:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def sized(self) -> memoryview:
        return self.take(self.unpack("<I")[0])

    def text(self) -> str:
        try:
            return str(self.sized(), "utf-8")
        except UnicodeDecodeError:
            raise CodecError("text is not valid UTF-8") from None

    def value(self, depth: int) -> Any:
        tag = bytes(self.take(1))
        self.items += WEIGHTS.get(tag, 1)
        if depth > MAX_DEPTH or self.items > MAX_ITEMS:
            raise CodecError("a value is nested too deep or has too many items")
        match tag:
            case b"N":
                return None
            case b"T":
                return True
            case b"F":
                return False
            case b"i":
                data = self.sized()
                if not 0 < len(data) <= MAX_INT_BYTES:
                    raise CodecError("an int has a bad size")
                return int.from_bytes(data, "little", signed=True)
            case b"f":
                return self.unpack("<d")[0]
            case b"c":
                return complex(*self.unpack("<dd"))
            case b"s":
                return self.text()
            case b"b":
                return bytes(self.sized())
            case b"l":
                return [self.value(depth + 1) for _ in range(self.unpack("<I")[0])]
            case b"t":
                return tuple([self.value(depth + 1) for _ in range(self.unpack("<I")[0])])
            case b"d":
                return self.mapping(depth)
            case b"a":
                return self.array()
            case b"g":
                array = self.array()
                if array.ndim:
                    raise CodecError("a scalar has dimensions")
                return array[()]
            case b"x":
                return self.tensor()
            case b"m":
                return self.tensor_without_memory()
            case b"r":
                return self.generator()
        raise CodecError("an unknown tag")

    def mapping(self, depth: int) -> dict:
        result: dict = {}
        for _ in range(self.unpack("<I")[0]):
            key = self.value(depth + 1)
            try:
                known = type(key) not in KEYS or key in result
            except TypeError:
                known = True
            if known:
                raise CodecError("a dict has a key twice, or one that cannot be a key")
            result[key] = self.value(depth + 1)
        return result

    def head(self) -> tuple[np.dtype, tuple[int, ...]]:
        """The dtype and the sizes of an array."""
        try:
            dtype = _dtype(str(self.take(self.unpack("<B")[0]), "ascii"))
        except UnicodeDecodeError:
            raise CodecError("an array has an unknown dtype") from None
        ndim = self.unpack("<B")[0]
        if ndim > MAX_DIMS:
            raise CodecError("an array has too many dimensions")
        return dtype, self.unpack(f"<{ndim}Q")

    def array(self) -> np.ndarray:
        dtype, shape = self.head()
        size = math.prod(shape) * dtype.itemsize
        spanned = math.prod(max(n, 1) for n in shape) * dtype.itemsize  # NumPy refuses more, even where a size is 0
        if max(shape, default=0) > MAX_BYTES or size > MAX_BYTES or spanned >= 2**63:
            raise CodecError("an array is too large")
        data = np.frombuffer(self.take(size), np.uint8).copy()
        if dtype.kind == "b" and data.size and data.max() > 1:
            raise CodecError("a bool array holds something else")
        return data.view(dtype).reshape(shape)

    def generator(self) -> np.random.Generator:
        state, increment = (int.from_bytes(self.take(16), "little") for _ in range(2))
        (buffer,) = self.unpack("<Q")
        if increment % 2 == 0 or buffer >> 33:
            raise CodecError("a generator has a bad state")
        bits = np.random.PCG64(0)
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": increment},
            "has_uint32": buffer >> 32,
            "uinteger": buffer & 0xFFFFFFFF,
        }
        return np.random.Generator(bits)

    def tensor_without_memory(self) -> Any:
        if _tensor_type() is None:
            raise CodecError("a tensor came where rooflab is not loaded")
        device, (dtype, shape) = self.text(), self.head()
        if not device.startswith("meta") or math.prod(max(n, 1) for n in shape) * dtype.itemsize >= 2**63:
            raise CodecError("a tensor without memory is not on meta, or too large")
        try:
            return sys.modules["rooflab"].empty(*shape, dtype=dtype.name, device=device)
        except Exception as error:
            raise CodecError(f"a tensor cannot be made: {error}") from None

    def tensor(self) -> Any:
        if _tensor_type() is None:
            raise CodecError("a tensor came where rooflab is not loaded")
        rl = sys.modules["rooflab"]
        device, array = self.text(), self.array()
        try:
            return rl.tensor(array, device=device)
        except Exception as error:
            raise CodecError(f"a tensor cannot be made: {error}") from None
