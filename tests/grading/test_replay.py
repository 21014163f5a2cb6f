"""Replaying a trace: whatever the trace says, it is counted for what it does, or refused."""

import contextlib
import gc
import json
import random

import numpy as np
import pytest

import rooflab as rl
from rooflab import _core
from rooflab.grading.judge.runtime import replayed
from rooflab.grading.replay import core_calls, trace
from rooflab.grading.replay.replay import Refused, Replay


def made(*events, before=(), values=None, state=(0, 0, True, None)):
    return json.dumps({"state": state, "before": before, "events": events}), values or {}


def count(text, values, *args):
    return replayed("count", args, {}, {}, text, values)


PRODUCT = ["c", "matmul", [["h", -1], ["h", -2]], {}, ["h", 1]]
RESULT = ["r", ["h", 1]]
X, Y = ["h", -1], ["h", -2]
FORGED = {
    "a limit": ([["c", "memory.set_limit", [1], {}, None]], "memory.set_limit is nothing that may be counted"),
    "a library": ([["c", "add_library_directory", ["/tmp"], {}, None]], "nothing that may be counted"),
    "a compiler": ([["c", "cuda.compile_source", ["", []], {}, None]], "nothing that may be counted"),
    "an address": ([["c", "from_cuda_array", [X], {}, ["h", 1]]], "nothing that may be counted"),
    "a name of Python": ([["c", "Tensor.__class__", [X], {}, ["h", 1]]], "nothing that may be counted"),
    "a counter": ([["c", "count", [], {}, ["h", 1]]], "nothing that may be counted"),
    "no such handle": ([["c", "exp", [["h", 99]], {}, ["h", 1]], RESULT], "has not made, or what is gone"),
    "a dead handle": ([PRODUCT, ["x", 1], RESULT], "has not made, or what is gone"),
    "another's result": ([PRODUCT, ["c", "exp", [X], {}, ["h", 1]], RESULT], "taken or not allowed"),
    "an argument as a result": ([["c", "exp", [X], {}, ["h", -2]], ["r", Y]], "taken or not allowed"),
    "an argument that does not exist": ([["c", "exp", [X], {}, ["h", -3]], ["r", ["h", -3]]], "taken or not allowed"),
    "a result that does not exist": ([["c", "exp", [X], {}, ["l", ["h", 1]]], RESULT], "a result that does not exist"),
    "a call that fails": ([["c", "matmul", [X, X], {}, ["h", 1]], RESULT], "matmul failed when it was counted"),
    "a call that does not": ([["c", "exp", [X], {}, ["!"]], ["r", X]], "did not fail"),
    "no result": ([PRODUCT], "an event of the trace is malformed"),
    "a range that is not open": (
        [["c", "range", ["r"], {}, ["h", 3]], ["c", "range.__exit__", [["h", 3]], {}, None], ["r", X]],
        "is not open in this thread",
    ),
    "a counter in place of a range": ([["c", "range.__enter__", [X], {}, None], RESULT], "object of another type"),
    "no event": ([["?", 1]], "malformed"),
    "an end of what did not begin": ([["k", "end"], ["r", X]], "malformed"),
    "too much within one another": ([["k", "begin"]] * 65, "malformed"),
    "no value": ([["r", ["q"]]], "malformed"),
    "a write into an argument": ([["w", -1, 5], ["r", X]], "NumPy wrote where it cannot"),
    "a function that nobody called": ([["[", 7, ["t"]], ["]", None], RESULT], "malformed"),
    "a function that tells nothing": (
        [["(", "_autograd.checkpoint", [["l", X], ["f", 1, "f"], ["f", 2, "g"]], {}], [")", ["h", 1]], RESULT],
        "does not say what a function did|failed when it was counted",
    ),
    "nothing": ([["c", "Graph.replay", [None], {}, None], RESULT], "it is called on an object of another type"),
    "a thing of another kind": ([["c", "Graph.replay", [X], {}, None], RESULT], "failed when it was counted"),
    "a program of other sizes": (
        [
            ["(", "Program", [["f", 4, "f"], ["l", X], ""], {}],
            ["[", 4, ["t", ["h", 5]]],
            ["c", "exp", [["h", 5]], {}, ["h", 6]],
            ["]", ["h", 6]],
            [")", ["h", 7]],
            ["c", "Program.__call__", [["h", 7], ["l", Y]], {}, ["h", 1]],
            RESULT,
        ],
        "got tensors that it was not compiled for",
    ),
}


@pytest.mark.parametrize("events, said", FORGED.values(), ids=FORGED)
def test_a_forged_trace_is_refused(events, said):
    text, values = made(*events, values={5: np.zeros((3, 4), "float32")})
    with pytest.raises(Refused) as refused:
        count(text, values, rl.ones(3, 4), rl.ones(4, 5))
    assert any(words in str(refused.value) for words in said.split("|")), refused.value


def test_a_trace_is_counted_for_what_it_does():
    args = rl.ones(3, 4), rl.ones(4, 5)
    honest = count(*made(PRODUCT, RESULT), *args)
    assert (honest["macs"], honest["by_op"], honest["uploaded_bytes"]) == (60, {"matmul": 1}, 0)
    twice = count(*made(PRODUCT, RESULT, ["c", "matmul", [X, Y], {}, ["h", 2]], ["r", ["h", 2]]), *args)
    assert twice["macs"] == 60, "what follows the result is not done"
    ready = ["b", 8, "cpu", "float32", 15, 5], ["u", 1, 8, [3, 5], [5, 1], 0, False, None]
    for before, events in ((ready, ()), ((), ready)):  # in the call only if the trace is forged
        brought = count(*made(*events, RESULT, before=before, values={5: np.full(15, 4.0, "float32")}), *args)
        assert (brought["macs"], brought["launches"], brought["uploaded_bytes"]) == (0, 0, 60)


def test_memory_from_before_the_call_makes_no_room_when_it_is_released_in_it():
    """The call uses it first, because what it does not use is not there."""
    x = rl.ones((100, 100))
    earlier = ["b", 5, "cpu", "float32", 10_000, None], ["u", 6, 5, [100, 100], [100, 1], 0, False, None]
    uses = ["c", "Tensor.copy_", [X, ["h", 6]], {}, None]
    text, values = made(uses, ["x", 6], ["c", "exp", [X], {}, ["h", 1]], RESULT, before=earlier)
    assert count(text, values, x)["peak_bytes"] == 40_000


@pytest.mark.parametrize(
    "earlier",
    [["b", 5, "cpu", "float32", 12, None], ["c", "empty", [12], {}, ["h", 5]], ["c", "ones", [12], {}, ["h", 5]]],
)
def test_memory_from_before_the_call_came_from_outside_whoever_filled_it(earlier):
    uses, does_not = (["c", "exp", [one], {}, ["h", 1]] for one in (["h", 5], X))
    for event, uploaded in ((uses, 48), (does_not, 0)):
        assert count(*made(event, RESULT, before=[earlier]), rl.ones(12))["uploaded_bytes"] == uploaded


def test_what_a_function_was_compiled_with_is_no_memory_from_before_the_call():
    compiled = [
        ["b", 3, "cpu", "float32", 12, None],
        ["u", 5, 3, [3, 4], [4, 1], 0, False, None],
        ["(", "Program", [["f", 4, "f"], ["l", ["h", 5]], ""], {}],
        ["[", 4, ["t", ["h", 6]]],
        ["c", "exp", [["h", 6]], {}, ["h", 7]],
        ["]", ["h", 7]],
        [")", ["h", 8]],
    ]
    run = ["c", "Program.__call__", [["h", 8], ["l", X]], {}, ["h", 1]]
    seen = count(*made(run, RESULT, before=compiled), rl.ones(3, 4))
    assert (seen["launches"], seen["uploaded_bytes"]) == (1, 0)


def test_new_memory_shows_nothing_of_an_earlier_call():
    args = rl.ones(3, 4), rl.ones(4, 5)
    for dtype in ("float32", "bfloat16", "int64"):
        x = rl.ones(3, 5, dtype=dtype)
        gone = ["c", "add", [["h", 5], ["h", 5]], {}, ["h", 6]], ["x", 6]
        ready = ["b", 7, "cpu", dtype, 15, 7], ["u", 5, 7, [3, 5], [5, 1], 0, False, None]
        empty = ["c", "empty", [3, 5], {"dtype": dtype}, ["h", 1]], ["c", "empty_like", [["h", 5]], {}, ["h", 1]]
        for one in empty:
            seen = count(*made(*gone, one, RESULT, before=ready, values={7: x.numpy().ravel()}), *args)
            assert seen["launches"] == 1 and (seen["value"].numpy() != (x + x).numpy()).all()
        bare = ["b", 8, "cpu", dtype, 15, None], ["u", 1, 8, [3, 5], [5, 1], 0, False, None]
        seen = count(*made(RESULT, before=[*ready, *gone, *bare], values={7: x.numpy().ravel()}), *args)
        assert (seen["value"].numpy() != (x + x).numpy()).all()


def test_a_trace_leaves_the_modes_as_they_were():
    begins = ["c", "_autocast.begin", ["bfloat16"], {}, None], ["c", "_autograd.set_grad_enabled", [False], {}, None]
    for state in ((0, 0, True, None), (0, 0, False, "float16")):
        count(*made(*begins, PRODUCT, RESULT, state=state), rl.ones(3, 4), rl.ones(4, 5))
        assert rl.is_grad_enabled() and _core._autocast.low_dtype() is None
    opened = [["c", "range", ["left"], {}, ["h", 9]], ["c", "range.__enter__", [["h", 9]], {}, None]]
    left = count(*made(*opened, PRODUCT, RESULT), rl.ones(3, 4), rl.ones(4, 5))
    after = count(*made(PRODUCT, RESULT), rl.ones(3, 4), rl.ones(4, 5))
    assert (left["by_range"], after["by_range"]) == ({"left": {"matmul": 1}}, {"": {"matmul": 1}})
    with pytest.raises(Refused, match="more than 64 ranges were open at a time"):
        count(*made(opened[0], *[opened[1]] * 65, PRODUCT, RESULT), rl.ones(3, 4), rl.ones(4, 5))
    with pytest.raises(Refused, match="ends an autocast that has not begun"):
        count(*made(["c", "_autocast.end", [None], {}, None], RESULT), rl.ones(3, 4))


def test_a_trace_has_a_size():
    many = made(*[["x", 1]] * (2 * trace.MAX_EVENTS + 1))
    heavy = made(RESULT, values={1: np.broadcast_to(np.float32(0), (2**28,))})
    for text, values in (many, heavy):
        with pytest.raises(Refused, match="more than can be counted again"):
            Replay(text, values)
    for text in (
        "",
        "[]",
        "{}",
        "[" * 10**5,
        '{"state":0,"before":[],"events":3}',
        '{"state":0,"before":[0],"events":[]}',
        3,
    ):
        with pytest.raises(Refused, match="is not a trace"):
            Replay(text, {})


COUNT = 10_000


@pytest.mark.slow
def test_noise_ends_in_an_exception_at_worst():
    """Nothing but an Exception: neither a crash nor an error that the judge would not catch."""
    draw = random.Random(7)
    events = [event for forged, _ in FORGED.values() for event in forged] + [PRODUCT, RESULT]
    parts = [X, Y, ["h", 1], None, -1, 0, 3, "", "x", True, [], ["l", X], ["t", Y], ["s", 1, 2, 0], ["e"], ["v", 5], {}]
    parts += [
        ["D", "float16"],
        ["m", [X, 1]],
        ["f", 1, "f"],
        1e300,
        *core_calls.FUNCTIONS[:40],
        *core_calls.METHODS[:60],
    ]
    args = rl.ones(3, 4), rl.ones(4, 5)
    rl.memory.set_limit(rl.memory.allocated() + 2**28)
    gc.freeze()
    try:
        for _ in range(COUNT):
            chosen = json.loads(json.dumps(draw.sample(events, 3)))
            for event in chosen:
                place = draw.randrange(len(event))
                inner = (
                    event[place] if isinstance(event[place], list) and event[place] and draw.random() < 0.5 else event
                )
                inner[draw.randrange(len(inner))] = draw.choice(parts)
            with contextlib.suppress(Exception):
                count(*made(*chosen, PRODUCT, RESULT, values={5: np.zeros(3)}), *args)
    finally:
        gc.unfreeze()
        rl.memory.set_limit(None)
        rl.set_grad_enabled(True)
