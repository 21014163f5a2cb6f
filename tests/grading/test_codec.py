"""The codec carries plain values exactly and refuses everything else, whatever the bytes."""

import collections
import contextlib
import enum
import os
import random
import struct
import threading
import time
import typing
from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import rooflab as rl
from rooflab.grading.jail import codec, wire
from rooflab.grading.jail.codec import CodecError, decode, encode

PLAIN = [
    None,
    True,
    False,
    0,
    -1,
    255,
    -(2**63),
    2**400,
    1.5,
    float("inf"),
    2 - 3j,
    "",
    "naïve ✓",
    b"\0\xff",
    [],
    [1, [2.0, (None,)]],
    (),
    {"a": 1, 2: [3], (1, "x"): {}, None: b""},
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_come_back(value):
    back = decode(encode(value))
    assert back == value and type(back) is type(value)


class Point(typing.NamedTuple):
    x: float
    y: int = 1


class Lying(float):
    def __eq__(self, other):
        return False

    __hash__ = float.__hash__
    __float__ = __index__ = __int__ = __abs__ = __round__ = hex = lambda self: 7


class Level(enum.IntEnum):
    LOW = 3


class Word(enum.StrEnum):
    ONE = "one"


class Count(int):
    __index__ = __int__ = bit_length = to_bytes = lambda self, *_: 7


class Text(str):
    __str__ = encode = lambda self, *_: "lies"


class Rows(list):
    __iter__ = __getitem__ = lambda self, *_: iter([7])

    def __len__(self):
        return 7


class Pair(tuple):
    __iter__ = __getitem__ = lambda self, *_: iter([7])

    def __len__(self):
        return 7


class Named(dict):
    __iter__ = items = keys = values = lambda self: iter([7])

    def __len__(self):
        return 7


class Moved(collections.OrderedDict):
    __iter__ = items = keys = values = lambda self: iter([7])


def moved(kind):
    value = kind(a=1, b=2)
    value.move_to_end("a")
    return value


@pytest.mark.parametrize(
    "value, plain",
    [
        ([moved(collections.OrderedDict), moved(Moved)], [{"b": 2, "a": 1}] * 2),
        ([Lying(1.5), Count(2**70), Text("naïve")], [1.5, 2**70, "naïve"]),
        ([Level.LOW, Word.ONE, {Level.LOW: 1, Word.ONE: 2}], [3, "one", {3: 1, "one": 2}]),
        ([Rows([1, 2]), Pair([1, Lying(2)]), Named(a=Named(b=1))], [[1, 2], (1, 2.0), {"a": {"b": 1}}]),
        ({Lying(1.5): 1, Text("a"): 2}, {1.5: 1, "a": 2}),
        (Fraction(405504), 405504),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aa"), {"a": 2}),
        (collections.defaultdict(list, a=[collections.OrderedDict()]), {"a": [{}]}),
        ([Point(2.0)], [(2.0, 1)]),
        ([Fraction(1, 4), np.str_("a")], [0.25, "a"]),
        ({np.int64(1): 2, np.float64(0.5): 3, np.str_("a"): 4}, {1: 2, 0.5: 3, "a": 4}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_subclasses_hold_crosses_as_plain_values(value, plain):
    back = decode(encode(value))
    assert repr(back) == repr(plain)


@pytest.mark.parametrize("dtype", sorted(codec.DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)], ids=str)
def test_arrays_come_back(dtype, shape):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind)
    back = decode(encode(array))
    assert type(back) is np.ndarray and back.dtype == array.dtype and back.shape == shape
    assert back.tobytes() == array.tobytes() and back.flags.writeable
    if shape == ():
        scalar = decode(encode(array[()]))
        assert type(scalar) is type(array[()]) and scalar == array[()]


def test_layout_and_byte_order_do_not_matter():
    array = np.arange(12, dtype=">f4").reshape(3, 4).T[::2]
    back = decode(encode(array))
    assert back.dtype == np.float32 and np.array_equal(back, array)


def test_nan_keeps_its_bits():
    value = struct.unpack("<d", b"\x01\0\0\0\0\0\xf8\x7f")[0]
    assert encode(decode(encode(value))) == encode(value)


class Sub(np.ndarray):
    pass


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(2).view(Sub),
        np.matrix([[1.0]]),
        np.ma.array([1.0]),
        np.array([object()]),
        np.array(["text"]),
        np.zeros(2, [("a", int)]),
        np.datetime64("2020-01-01"),
        {1: 2, Lying(1.0): 1},
        {frozenset(): 1},
        {1, 2},
        object(),
        len,
        type,
        2**10000,
        "\ud800",
        range(3),
        bytearray(b"x"),
        np.random.Generator(np.random.MT19937(0)),
        np.random.RandomState(0),
        np.random.PCG64(0),
    ],
    ids=lambda v: type(v).__name__,
)
def test_nothing_else_crosses(value):
    with pytest.raises(CodecError, match="cannot be passed"):
        encode(value)


@pytest.mark.parametrize(
    "value, use",
    [(Decimal("1.5"), "an int or a float"), ((x for x in [1]), "a list"), (map(int, []), "a list")],
    ids=["Decimal", "generator", "map"],
)
def test_what_may_not_cross_is_refused_with_what_to_write(value, use):
    with pytest.raises(CodecError, match=f"a value of type {type(value).__name__} cannot be passed .*: use {use}"):
        encode(value)


def test_endless_nesting_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(CodecError, match="nested"):
        encode(loop)
    with pytest.raises(CodecError, match="nested"):
        decode(b"l\x01\0\0\0" * 1000 + b"N")


MALFORMED = {
    "empty": b"",
    "unknown tag": b"Z",
    "rest": b"NN",
    "short float": b"f\0",
    "empty int": b"i\0\0\0\0",
    "endless list": b"l\xff\xff\xff\xff",
    "list of nothing": b"l\xff\xff\xff\xff" + b"N" * 10,
    "unhashable key": b"d\x01\0\0\0l\0\0\0\0N",
    "unhashable in key": b"d\x01\0\0\0t\x01\0\0\0l\0\0\0\0N",
    "array as key": b"d\x01\0\0\0" + encode(np.zeros(1)) + b"N",
    "key twice": b"d\x02\0\0\0NNNN",
    "bad text": b"s\x01\0\0\0\xff",
    "object dtype": b"a\x06object\x00" + b"\0" * 8,
    "dtype with shape": b"a\x05(3,)f\x00" + b"\0" * 12,
    "too many sizes": b"a\x05int64\xff",
    "huge array": b"a\x05int64\x02" + struct.pack("<2Q", 2**62, 2**62),
    "huge empty array": b"a\x05int64\x02" + struct.pack("<2Q", 2**62, 0),
    "huge empty array of small sizes": b"a\x05int64\x04" + struct.pack("<4Q", 2**28, 0, 2**28, 2**28),
    "missing data": b"a\x05int64\x01" + struct.pack("<Q", 3) + b"\0" * 8,
    "bool of 2": b"a\x04bool\x01" + struct.pack("<Q", 1) + b"\x02",
    "short generator": encode(np.random.default_rng(0))[:-1],
    "even increment": b"r" + bytes(40),
    "generator with a full buffer": encode(np.random.default_rng(0))[:-1] + b"\xff",
    "scalar with sizes": b"g\x05int64\x01" + struct.pack("<Q", 1) + b"\0" * 8,
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_malformed_bytes_are_refused(body):
    with pytest.raises(CodecError):
        decode(body)


@pytest.mark.parametrize("make", [np.random.default_rng, lambda: rl.zeros(1), lambda: rl.zeros(1, device="meta")])
def test_objects_that_take_more_memory_than_their_bytes_are_few(make):
    body = encode([make()] * 50)
    assert len(decode(body)) == 50
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "MAX_ITEMS", 4000)
        with pytest.raises(CodecError, match="too many items"):
            decode(body)


@pytest.mark.parametrize("one", [np.zeros(1), np.float32(1)], ids=type)
def test_arrays_are_fewer_than_plain_items(one, monkeypatch):
    body = encode([one] * 50)
    monkeypatch.setattr(codec, "MAX_ITEMS", 501)
    assert len(decode(body)) == 50
    monkeypatch.setattr(codec, "MAX_ITEMS", 500)
    with pytest.raises(CodecError, match="too many items"):
        decode(body)


@pytest.mark.parametrize("drawn", [0, 1, 2, 3])
def test_generators_go_on_where_they_were(drawn):
    """A draw of 32 bits leaves 32 bits for the next draw."""
    rng = np.random.default_rng(7)
    for _ in range(drawn):
        rng.integers(2**20, dtype=np.uint32)
    back = decode(encode([rng]))[0]
    assert back is not rng and back.bit_generator.state == rng.bit_generator.state
    for draw in (lambda r: r.integers(100, size=5, dtype=np.uint32), lambda r: r.random(3), lambda r: r.permutation(9)):
        assert draw(back).tolist() == draw(rng).tolist()


def test_random_damage_is_refused_or_harmless():
    rng = random.Random(0)
    values = [
        *PLAIN,
        np.random.default_rng(1),
        np.arange(6.0).reshape(2, 3),
        {"x": [np.float32(2), np.zeros((0, 2), bool)]},
    ]
    for _ in range(20000):
        body = bytearray(encode(rng.choice(values)))
        for _ in range(rng.randint(1, 4)):
            if body and rng.random() < 0.7:
                body[rng.randrange(len(body))] = rng.randrange(256)
            else:
                body = body[: rng.randint(0, len(body))] + rng.randbytes(rng.randint(0, 3))
        with contextlib.suppress(CodecError):
            encode(decode(bytes(body)))


def test_messages_through_a_pipe():
    reader, writer = os.pipe()
    try:
        value = {"big": np.arange(300_000.0)}
        thread = threading.Thread(target=wire.send, args=(writer, wire.message(value)))
        thread.start()
        back = wire.receive(reader, time.monotonic() + 5)
        thread.join()
        assert np.array_equal(back["big"], value["big"])
        os.write(writer, b"RLv1\x05")
        with pytest.raises(TimeoutError):
            wire.receive(reader, time.monotonic() + 0.05)
        os.write(writer, b"hello world, this is no message")
        with pytest.raises(CodecError):
            wire.receive(reader, time.monotonic() + 1)
    finally:
        os.close(writer)
    os.read(reader, 2**16)
    with pytest.raises(EOFError):
        wire.receive(reader)
    os.close(reader)


def test_a_message_that_claims_too_much_is_refused():
    reader, writer = os.pipe()
    os.write(writer, b"RLv1" + struct.pack("<Q", 2**60))
    with pytest.raises(CodecError, match="too large"):
        wire.receive(reader)
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_tensors_come_back(dtype, shape, device):
    tensor = rl.tensor(np.ones(shape), dtype=dtype, device=device)
    back = decode(encode({"x": [tensor]}))["x"][0]
    assert type(back) is rl.Tensor and back.dtype == tensor.dtype and back.device == tensor.device
    assert np.array_equal(back.cpu().numpy(), tensor.cpu().numpy()) and back.cpu().numpy().shape == shape


def test_a_tensor_on_a_device_that_is_not_there_is_refused():
    body = encode(rl.ones((2,)))
    assert body.startswith(b"x\x03\0\0\0cpu")
    with pytest.raises(CodecError, match="cannot be made"):
        decode(body.replace(b"cpu", b"tpu"))
