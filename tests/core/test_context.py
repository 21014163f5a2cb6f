"""What an error leaves behind in its thread: nothing, wherever it comes from."""

import threading

import pytest

import rooflab as rl


@pytest.fixture
def limited(no_garbage):
    """Let allocations fail from here on; the function that it returns ends that."""
    yield lambda room: rl.memory.set_limit(rl.memory.allocated() + room)
    rl.memory.set_limit(None)


def state():
    return (
        rl.is_grad_enabled(),
        rl.Graph.is_capturing(),
        rl._core._compiler.is_tracing(),
        rl._core._autocast.low_dtype(),
    )


def launches():
    with rl.count() as c:
        rl.ones(2) + 1
    return c.launches, list(c.by_range)


def test_a_capture_that_fails_leaves_no_launch_to_the_next_one(limited):
    x, graph = rl.ones(4), rl.Graph(device="cpu")
    with pytest.raises(rl.OutOfMemoryError), graph.capture():
        w = rl.exp(x)
        limited(16)
        rl.randn(4)
    rl.memory.set_limit(None)
    del w
    assert not rl.Graph.is_capturing()
    with graph.capture():
        y = x + 1
        z = rl.zeros(4)
    assert graph.launches == 2
    with rl.count() as c:
        graph.replay()
    assert c.launches == 2 and y.tolist() == [2.0] * 4 and z.tolist() == [0.0] * 4


def test_random_numbers_after_a_capture_that_failed_differ_at_each_replay(limited):
    graph = rl.Graph(device="cpu")
    with pytest.raises(rl.OutOfMemoryError), graph.capture():
        limited(16)
        rl.randn(4)
    rl.memory.set_limit(None)
    with graph.capture():
        y = rl.randn(4)
    graph.replay()
    first = y.tolist()
    graph.replay()
    assert y.tolist() != first


def test_what_is_allocated_after_a_capture_that_failed_is_not_the_graphs(limited):
    graph = rl.Graph(device="cpu")
    with pytest.raises(rl.OutOfMemoryError), graph.capture():
        limited(16)
        rl.randn(4)
    rl.memory.set_limit(None)
    x = rl.ones(4)
    assert x.tolist() == [1.0] * 4  # it was not captured


CONTEXTS = {
    "capture": lambda: rl.Graph(device="cpu").capture(),
    "profile": lambda: rl.profile(),
    "count": lambda: rl.count(),
    "no_grad": lambda: rl.no_grad(),
    "autocast": lambda: rl.autocast("bfloat16"),
    "range": lambda: rl.range("r"),
    "record": lambda: rl.memory.record(),
}


@pytest.mark.parametrize("outer", CONTEXTS)
@pytest.mark.parametrize("inner", CONTEXTS)
def test_an_error_inside_two_contexts_leaves_nothing(outer, inner, limited):
    if outer == inner and outer in ("capture", "profile"):
        pytest.skip("they do not nest")
    before = state(), launches()
    with pytest.raises(rl.OutOfMemoryError), CONTEXTS[outer](), CONTEXTS[inner]():
        w = rl.ones(4, requires_grad=True)
        limited(64)
        rl.ones(1 << 20) + w.sum()
    rl.memory.set_limit(None)
    assert (state(), launches()) == before


def test_an_error_while_a_function_is_traced_leaves_nothing():
    def fails(x):
        rl.exp(x)
        raise KeyError("mine")

    before = state(), launches()
    with pytest.raises(KeyError):
        rl.compile(fails)(rl.ones(4))
    assert (state(), launches()) == before


def test_a_graph_is_captured_by_one_thread_at_a_time():
    graph, found = rl.Graph(device="cpu"), []

    def capture():
        try:
            with graph.capture():
                pass
        except ValueError as error:
            found.append(str(error))

    with graph.capture():
        y = rl.ones(2)
        other = threading.Thread(target=capture)
        other.start()
        other.join()
    graph.replay()
    assert len(found) == 1 and "captures do not nest" in found[0] and y.tolist() == [1.0, 1.0]


def test_a_thread_that_dies_in_a_capture_takes_it_along():
    graphs = [rl.Graph(device="cpu")]

    def begin():
        capture = graphs[0].capture()
        capture.__enter__()
        rl.ones(2)

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    assert not rl.Graph.is_capturing() and launches()[0] == 2
    graphs.clear()
    assert rl.ones(2).tolist() == [1.0, 1.0]
