"""The device that a call works on is found by what it reaches, in a bounded search."""

import functools
import time
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

import rooflab as rl
from rooflab.benchmark.touched import device_of


class OnGpu:
    """Another library's array on the second GPU. Like PyTorch's, it refuses the interface if it requires grad."""

    def __dlpack_device__(self):
        return (2, 1)

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("requires grad")

    def twice(self):
        return 2


class Module:
    """A module like PyTorch's: dicts hold its parameters, and it is called like a function."""

    def __init__(self, *parameters):
        self._parameters = {str(number): parameter for number, parameter in enumerate(parameters)}

    def parameters(self):
        raise AssertionError("which may be anybody's method")

    def __call__(self, x):
        return x


class Lazy(dict):
    """A mapping that would read its values from a disk."""

    def values(self):
        raise OSError("no such file")


class Hostile:
    """An object whose every attribute has something to say."""

    def __init__(self, inside=None):
        self.inside = inside

    @property
    def device(self):
        raise AssertionError("read")

    parameters = __len__ = __iter__ = device

    def __getattr__(self, name):
        raise AssertionError(f"asked for {name}")


class Deleted(Hostile):
    """An array whose memory is gone."""

    def __dlpack_device__(self):
        raise RuntimeError("deleted")


ARRAY = OnGpu()


def test_the_device_is_found_by_what_the_call_reaches():
    array, here = OnGpu(), rl.ones(3)
    late = None

    def closes_over():
        return array, late

    def default(x=array):
        return x

    def keyword_default(*, x=array):
        return x

    reached = {
        "argument": (abs, (array,), {}),
        "keyword": (abs, (), {"x": array}),
        "list": (abs, ([here, [array]],), {}),
        "dict": (abs, ({"k": (array,)},), {}),
        "closure": (closes_over, (), {}),
        "global": (lambda: ARRAY, (), {}),
        "inner function": (lambda: [ARRAY for _ in range(3)], (), {}),
        "default": (default, (), {}),
        "default of a keyword": (keyword_default, (), {}),
        "partial": (functools.partial(abs, array), (), {}),
        "keyword of a partial": (functools.partial(abs, x=array), (), {}),
        "queue": (abs, (deque([1, array]),), {}),
        "subclass of dict": (abs, (Lazy({"x": array}),), {}),
        "method": (array.twice, (), {}),
        "module": (Module(array), (here,), {}),
        "attribute": (abs, (SimpleNamespace(inner=SimpleNamespace(x=array)),), {}),
    }
    assert {name: device_of(*call) for name, call in reached.items()} == dict.fromkeys(reached, "cuda:1")
    on_cpu = type("Array", (), {"__dlpack_device__": lambda self: (1, 0)})()
    for fn, args in (
        (rl.exp, (here,)),
        (lambda: here.exp(), ()),
        (Module(on_cpu), (1, "text", [])),
        (here.exp, ()),
        (rl.compile(rl.exp), (here,)),
    ):
        assert device_of(fn, args) == "cpu"
    loop = []
    loop.append(loop)
    assert device_of(print, (loop, np.ones(3))) == "cpu"


def test_objects_of_others_are_passed_by_whatever_they_raise():
    array = OnGpu()
    assert device_of(abs, (Deleted(),)) == "cpu"
    assert device_of(abs, (Deleted(), [Hostile()], [array])) == "cuda:1"
    assert device_of(abs, (Hostile(array),)) == "cuda:1"


def test_the_search_is_bounded_and_says_when_it_was_cut_short(recwarn):
    numbers = dict.fromkeys(range(3_000_000), 0)
    start = time.perf_counter()
    assert device_of(lambda: numbers) == "cpu" and not recwarn.list
    assert device_of(lambda: numbers, (OnGpu(),)) == "cuda:1"
    assert time.perf_counter() - start < 0.5
    looked = []

    class Long(list):
        def __iter__(self):
            return (looked.append(number) or number for number in range(5000))

    assert device_of(abs, (Long(),)) == "cpu" and len(looked) == 1000
    chain = [OnGpu()]
    for _ in range(9_990):
        chain = [chain]
    assert device_of(abs, (chain,)) == "cuda:1" and not recwarn.list
    for _ in range(100):
        chain = [chain]
    with pytest.warns(UserWarning, match=r"none of the first 10,000 objects .* write device="):
        assert device_of(abs, (chain,)) == "cpu"
    crowd = [[[] for _ in range(1000)] for _ in range(50)]
    assert device_of(abs, (crowd, [OnGpu()])) == "cuda:1"
    with pytest.warns(UserWarning, match="none of the first 10,000 objects"):
        assert device_of(abs, (crowd,)) == "cpu"
