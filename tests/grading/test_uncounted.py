"""A call that the runtime cannot count loses the points; a sentence says which, why, and what to write instead."""

import dataclasses
import itertools
import re
from fractions import Fraction
from types import SimpleNamespace

import pytest
from grading.demo_lab import TRUSTED, demo_lab, with_answers

from rooflab.grading.judge.judge import Judge
from rooflab.grading.replay import core_calls
from rooflab.grading.replay.trace import MAX_EVENTS, Trace

ANSWERS = """
import array
import collections
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import rooflab as rl
before, made = rl.Graph(device="cpu"), rl.zeros(2, 2)
history = rl.ones(2, 2, requires_grad=True) * 2
def imports(a, b):
    rl.from_dlpack(made_here := rl.zeros(2, 2)).copy_(a @ b)
    return made_here
def imports_array(a, b):
    return rl.from_numpy(a.numpy() @ b.numpy())
def imports_data(a, b):
    return rl.as_tensor(a.numpy() @ b.numpy())
def exports(a, b):
    return rl.tensor(np.from_dlpack(a) @ np.from_dlpack(b))
def earlier_graph(a, b):
    with before.capture():
        y = a @ b
    before.replay()
    return y
def earlier_history(a, b):
    return (a @ b + history).detach()
def thread(a, b):
    out = []
    one = threading.Thread(target=lambda: out.append(rl.matmul(a, b)))
    one.start()
    one.join()
    return out[0]
def threads(a, b):
    with ThreadPoolExecutor(2) as pool:
        return rl.cat(list(pool.map(lambda row: row @ b, [a[:1], a[1:]])))
def limit(a, b):
    rl.memory.set_limit(rl.memory.allocated() + 100)
    try:
        return rl.zeros(100, 100)
    except rl.OutOfMemoryError:
        return a
    finally:
        rl.memory.set_limit(None)
class OnGpu:
    __cuda_array_interface__ = {}
    def __array__(self, *args):
        raise TypeError("it is on the GPU")
def other_library(a, b):
    try:
        rl.tensor(OnGpu())
    except Exception:
        return a @ b
def generator(a, b):
    yield a @ b
async def coroutine(a, b):
    return a @ b
def callback(a, b):
    return rl.autograd.checkpoint(lambda x: (row for row in x), a)

def of_generator(a, b):
    return rl.cat(a[i : i + 1] @ b for i in range(2))
def of_view(a, b):
    return rl.cat({0: a[:1], 1: a[1:]}.values()) @ b
def of_deque(a, b):
    return rl.cat(collections.deque([a[:1], a[1:]])) @ b
def of_buffers(a, b):
    return rl.tensor(memoryview(a.numpy())) @ b + rl.tensor(array.array("f", [0, 0]))
def pickled(a, b):
    return pickle.loads(pickle.dumps(a)) @ b
def gemm(which, a, b):
    return globals()[which](a, b)
"""
SHARED = (
    "the function called rl.from_numpy, rl.as_tensor or rl.from_dlpack, which shares memory with another library, so "
    "what is written there is not seen. Use rl.tensor(x)."
)
SAID = {
    **dict.fromkeys(("imports", "imports_array", "imports_data"), SHARED),
    "exports": "the function used x.__dlpack__(), which lets another library read and write the tensor unseen. "
    "Use x.numpy().",
    "earlier_graph": "the function used a Graph from before the call. Make it inside of the function.",
    "earlier_history": "the function used a tensor from before the call that still has a graph, and the computation in "
    "that graph is not part of the call. Make the tensor inside of the function, or use x.detach().",
    "thread": "the function called rl.matmul in a thread of its own, and the order of calls in several threads is not "
    "known. Make all calls in the function itself.",
    "threads": "the function called Tensor.__matmul__ in a thread of its own, and the order of calls in several "
    "threads is not known. Make all calls in the function itself.",
    "limit": "the function called rl.memory.set_limit, and its work is counted without a limit. Leave that call out.",
    "other_library": "rl.tensor was given a value of type OnGpu. Use tensors, arrays, numbers, text, or lists and "
    "dicts of them.",
    "generator": "the function returned a value of type generator. Use tensors, arrays, numbers, text, or lists and "
    "dicts of them.",
    "coroutine": "the function returned a value of type coroutine. Use tensors, arrays, numbers, text, or lists and "
    "dicts of them.",
    "callback": "<lambda> returned a value of type generator. Use tensors, arrays, numbers, text, or lists and dicts "
    "of them.",
}
READ = ("of_generator", "of_view", "of_deque", "of_buffers", "pickled")
TEST = """
import rooflab as rl
from rooflab.grading import measure
x = rl.tensor([[1.0, 2.0], [2.0, 1.0]])  # marks, of which no other numbers are made: what is read is taken for good
for which, said in SAID.items():
    try:
        measure.count(gemm, which, x, x)
        assert False, f"{which} was counted."
    except BaseException as error:
        assert str(error) == f"The call could not be counted: {said}", f"{which}: {error}"
for which in READ:
    seen = measure.count(gemm, which, x, x)
    assert seen.value.tolist() == [[5.0, 4.0], [4.0, 5.0]] and seen.macs == 8, f"{which}: {seen}"
"""


def test_each_refusal_is_one_sentence_and_what_can_be_read_is_counted():
    lab = demo_lab()
    source = f"SAID, READ = {SAID!r}, {READ!r}" + TEST
    cells = tuple(
        dataclasses.replace(c, source=source, options={"seconds": 60}) if c.key == "q1_test" else c for c in lab.cells
    )
    lab = dataclasses.replace(lab, cells=cells)
    (result,) = Judge(lab, TRUSTED).grade_question("q1", with_answers(lab, {"q1": ANSWERS})).tests
    assert result.message == ""


@pytest.mark.parametrize("name", core_calls.REFUSED)
def test_what_is_refused_is_there_and_no_trace_may_name_it(name):
    assert callable(core_calls.held_by(name)) or isinstance(core_calls.held_by(name), property)
    assert name not in core_calls.table() and re.fullmatch(r"the function \w.*\. [A-Z].*[^.]", core_calls.REFUSED[name])


def test_a_device_array_says_where_it_was_given():
    trace = Trace(itertools.count(1), {})
    trace.at = "rl.add was given"
    trace.given([1.0, {"x": SimpleNamespace(__cuda_array_interface__={})}])
    assert trace.lost.startswith("rl.add was given a value of type SimpleNamespace. Use tensors")


def test_a_fraction_is_the_number_that_it_crosses_as():
    trace = Trace(itertools.count(1), {})
    assert trace.given({"share": [Fraction(1, 4)]}) == ["m", ["share", ["l", 0.25]]] and not trace.lost
    rows = type("Rows", (list,), {})([type("Whole", (int,), {"__index__": lambda _: 7})(3)])
    assert trace.given(rows) == ["l", 3] and type(trace.given(rows)[1]) is int and not trace.lost


def test_too_many_calls_say_what_to_do():
    trace = Trace(itertools.count(1), {})
    trace.events = [["x", 1]] * (MAX_EVENTS - 1)
    trace.add("x", 1)
    assert trace.lost == ""
    trace.add("x", 1)
    assert trace.lost.startswith("the function made more than 200,000 calls") and trace.lost.endswith("single elements")
