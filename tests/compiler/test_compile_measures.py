"""A compiled function that measures itself runs as it is written: while it is recorded nothing runs."""

import pytest

import rooflab as rl

X = rl.ones(4, 4)


def counts(x):
    with rl.count() as c:
        x @ x
    return c.macs


def profiles(x):
    with rl.profile() as prof:
        x @ x
    return len(prof.kernels)


def records_memory(x):
    with rl.memory.record() as timeline:
        rl.exp(x)
    return timeline.peak_bytes


TIMELINE = rl.memory.record()


def records_once(x):
    with TIMELINE:
        rl.exp(x)
    return TIMELINE.peak_bytes


def replays(x):
    GRAPH.replay()
    return (x * 0 + Y).sum().item()


with rl.Graph(device="cpu").capture() as GRAPH:
    Y = X + 1

MEASURES = {
    "count": (counts, 64),
    "profile": (profiles, 1),
    "memory": (records_memory, 64),
    "memory once": (records_once, 64),
    "benchmark_memory": (lambda x: rl.benchmark_memory(lambda: rl.exp(x)).peak_bytes, 64),
    "latency": (lambda x: len(rl.latency(lambda: x @ x, warmup=0, repeat=3).samples_ms), 3),
    "latency_one_time": (lambda x: len(rl.latency_one_time(lambda: x @ x).samples_ms), 1),
    "graph": (lambda x: _captured(x).launches, 1),
    "graph replay": (replays, 32.0),
}


def _captured(x):
    with rl.Graph(device="cpu").capture() as graph:
        x @ x
    return graph


@pytest.mark.parametrize("name", MEASURES)
def test_what_is_measured_inside_is_measured(name):
    function, expected = MEASURES[name]
    called = []

    def with_result(x):
        called.append(function(x))
        return x * 2

    compiled = rl.compile(with_result)
    with pytest.warns(UserWarning, match=rf"runs as it is written.*\[{name.split()[0]}\] a re"):
        compiled(X)
    if name != "memory once":
        compiled(X)
        assert called == [expected] * 2
    assert called[0] == expected


def test_steps_of_a_profile_around_it():
    def function(x):
        prof.step()
        return x * 2

    compiled = rl.compile(function)
    with rl.profile() as prof, pytest.warns(UserWarning, match=r"\[profile\] a recorded function is not run"):
        for _ in range(3):
            compiled(X)
    assert [step.number for step in prof.steps] == [0, 1, 2, 3]


def test_counters_around_it_go_on():
    compiled = rl.compile(lambda x: x * 2 + 1)
    with rl.count() as c, rl.profile() as prof:
        compiled(X)
        compiled(X)
    assert (c.launches, len(prof.kernels)) == (2, 2)
