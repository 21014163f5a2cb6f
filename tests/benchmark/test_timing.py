"""Latency keeps every sample, names its units and refuses nonsense. No test depends on how fast anything is."""

import functools
import io
import itertools
import time
import warnings
from concurrent.futures import Future
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import scipy.stats

import rooflab as rl
from rooflab.benchmark import ladder, sampling, timing


def test_calls_are_counted_right():
    calls = []
    timing = rl.latency(calls.append, 1, warmup=3, repeat=7)
    assert len(calls) == 10
    assert timing.samples_ms.shape == (7,)
    assert timing.device == "cpu"
    assert timing.overhead_ms > 0


def test_statistics_are_those_of_the_samples():
    timing = rl.Timing(np.array([1.0, 2.0, 3.0, 4.0, 100.0]), 0.0, "cpu")
    assert timing.median_ms == 3
    assert timing.mean_ms == 22
    assert timing.min_ms == 1
    assert timing.max_ms == 100
    assert timing.p20_ms == pytest.approx(1.8)
    assert timing.p80_ms == pytest.approx(23.2)
    assert timing.std_ms == pytest.approx(np.sqrt(np.mean((timing.samples_ms - 22) ** 2)))
    assert str(timing) == "3 ms (p20 1.8 ms, p80 23.2 ms, n=5)"
    assert str(rl.Timing(np.array([0.0125]), 0.0, "cpu")) == "12.5 µs (one call)"
    assert str(rl.Timing(np.array([123456.0]), 0.0, "cpu")) == "123.5 s (one call)"


def test_a_timing_is_its_own_and_stays_as_it_is():
    buffer = np.array([1.0, 2.0])
    timing = rl.Timing(buffer, 0.0, "cpu")
    buffer[:] = 9.0
    assert timing.samples_ms.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        timing.samples_ms[0] = 5.0
    assert {timing: "found"}[rl.Timing([1.0, 2.0], 0.0, "cpu")] == "found"
    for samples, overhead in (([1.0, np.inf], 0.0), ([1.0], np.inf)):
        with pytest.raises(ValueError, match=r"^\[Timing\] \w+_ms: expected .*finite .*, got inf$"):
            rl.Timing(np.array(samples), overhead, "cpu")


def test_a_device_is_one_by_any_of_its_names():
    assert rl.latency(abs, 1, device="cpu:0", warmup=0, repeat=1).device == "cpu"
    with pytest.raises(ValueError, match="expected 'cpu', 'cuda', 'cuda:N' or 'meta:NAME', got 'tpu'"):
        rl.latency(abs, 1, device="tpu")


def test_sleep_takes_as_long_as_it_says():
    start = time.perf_counter()
    timing = rl.latency(time.sleep, 0.01, warmup=0, repeat=3)
    assert timing.min_ms >= 10 and timing.samples_ms.sum() <= 1e3 * (time.perf_counter() - start)


def test_one_time_is_one_call_without_warm_up():
    calls = []
    timing = rl.latency_one_time(lambda: calls.append(1))
    assert len(calls) == 1
    assert len(timing.samples_ms) == 1


def test_keyword_arguments_reach_the_function():
    seen = {}
    rl.latency(lambda x, *, scale: seen.update(x=x, scale=scale), 2, scale=3, warmup=0, repeat=1)
    assert seen == {"x": 2, "scale": 3}


def test_cold_evicts_between_calls(device):
    x = rl.ones(1000, device=device)
    with rl.count() as c:
        timing = rl.latency(rl.exp, x, warmup=1, repeat=3, l2="cold")
    assert c.by_op["exp"].launches == 4
    assert c.launches == 4 + 3
    assert timing.device.startswith(device)


def test_evicting_is_not_measured(monkeypatch):
    """On a clock that only the two calls move: by 9 ms for evicting, by 2 ms for the call."""
    now = [0]
    monkeypatch.setattr(sampling, "time", SimpleNamespace(perf_counter_ns=lambda: now[0]))

    def takes(ms):
        return lambda *args: now.__setitem__(0, now[0] + ms * 1_000_000)

    monkeypatch.setattr(sampling, "evictor", lambda device: takes(9))
    monkeypatch.setattr(sampling, "overhead_ms", lambda device: 0.0)
    assert rl.latency(takes(2), warmup=1, repeat=3, l2="cold").samples_ms.tolist() == [2.0] * 3
    assert now[0] == (2 + 3 * (9 + 2)) * 1_000_000


def test_evicting_writes_more_than_any_cache_of_a_gpu(device):
    with rl.count() as c:
        sampling.evictor(device)()
    assert c.bytes_written > 250e6


@pytest.mark.parametrize(
    "options",
    [{"warmup": -1}, {"repeat": 0}, {"repeat": 10**30}, {"l2": "hot"}, {"fn": 3}, {"device": "meta:T4"}],
    ids=["warmup", "repeat", "too often", "l2", "fn", "device"],
)
def test_nonsense_is_refused(options):
    fn = options.pop("fn", abs)
    with pytest.raises(ValueError, match=r"\[latency\]"):
        rl.latency(fn, 1, **options)


@pytest.mark.parametrize(
    "options", [{"warmup": 1.5}, {"repeat": 2.5}, {"repeat": "3"}, {"repeat": True}, {"warmup": False}], ids=str
)
def test_numbers_of_calls_are_whole(options):
    with pytest.raises(TypeError, match=r"\[latency\] warmup, repeat: expected integers, got"):
        rl.latency(abs, 1, **options)
    assert len(rl.latency(abs, 1, warmup=np.int64(0), repeat=np.int64(2)).samples_ms) == 2


def test_errors_of_the_function_come_through():
    with pytest.raises(ZeroDivisionError):
        rl.latency(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # before there is memory for the samples
        rl.latency(lambda: 1 / 0, repeat=10**15)


class FakeEvent:
    """Notes which GPU it was made for."""

    made: ClassVar[list[int]] = []

    def __init__(self, device=0):
        self.made.append(device)

    def record(self):
        pass

    def synchronize(self):
        pass

    def elapsed_ms(self, later):
        return 1.0


@pytest.fixture
def events(monkeypatch):
    monkeypatch.setattr(FakeEvent, "made", [])
    for module in (rl._core.cuda, rl.cuda):
        monkeypatch.setattr(module, "Event", FakeEvent)
    monkeypatch.setattr(rl._core.cuda, "synchronize", lambda index: None)
    monkeypatch.setattr(rl._core.cuda, "device_count", lambda: 2)
    sampling.overhead_ms.cache_clear()
    yield FakeEvent.made
    sampling.overhead_ms.cache_clear()  # what was measured by these events


@pytest.mark.parametrize("device, index", [("cuda", 0), ("cuda:1", 1)])
def test_events_are_of_the_gpu_that_is_measured(events, device, index):
    assert rl.latency(lambda: None, device=device, warmup=0, repeat=3).median_ms == 1
    assert ladder._turn(lambda: None, 2, device) == 0.5
    assert set(events) == {index} and len(events) >= 2 * 3 + 2


def test_arrays_of_others_say_which_gpu_they_are_on(events):
    with_dlpack = type("Array", (), {"__cuda_array_interface__": {}, "__dlpack_device__": lambda self: (2, 1)})
    without = type("Array", (), {"__cuda_array_interface__": {}})
    assert rl.latency(lambda x: None, with_dlpack(), warmup=0, repeat=1).device == "cuda:1"
    assert rl.latency(lambda x: None, without()).device == "cuda:0"


def test_nothing_is_searched_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(rl._core.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(timing, "device_of", lambda *call: pytest.fail("searched"))
    assert rl.latency(abs, 1, warmup=0, repeat=1).device == "cpu"


async def waits():
    return 1


def counts():
    yield 1


async def counts_waiting():
    yield 1


class CallsLater:
    __call__ = counts


@pytest.mark.parametrize("helper", [rl.latency, rl.latency_one_time, rl.benchmark_memory], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "fn",
    [waits, counts, counts_waiting, functools.partial(counts), CallsLater()],
    ids=["async", "generator", "async generator", "partial", "object"],
)
def test_functions_whose_work_comes_later_are_refused(helper, fn):
    with pytest.raises(TypeError, match=rf"\[{helper.__name__}\] fn: calling a generator or async function does none"):
        helper(fn)


@pytest.mark.parametrize("helper", [rl.latency, rl.latency_one_time, rl.benchmark_memory], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("fn", "kind", "write"),
    [
        (lambda: waits(), "coroutine", "asyncio.run"),
        (lambda: counts_waiting(), "async_generator", "asyncio.run"),
        (lambda: counts(), "generator", "list"),
        (lambda: map(abs, [1]), "map", "list"),
        (lambda: zip([1], [2], strict=True), "zip", "list"),
        (lambda: itertools.chain([1]), "chain", "list"),
        (lambda: (1, (2, reversed([1]))), "list_reverseiterator", "list"),
        (lambda: Future(), "Future", r"fn\(...\).result"),
    ],
    ids=["coroutine", "async generator", "generator", "map", "zip", "chain", "in a tuple", "future"],
)
def test_results_whose_work_comes_later_are_refused(helper, fn, kind, write, recwarn):
    with pytest.raises(TypeError, match=rf"it returned a {kind}, whose work is not part of the call; .* {write}"):
        helper(fn)
    with pytest.raises(TypeError, match=kind):
        rl.latency(fn, warmup=0, repeat=2)
    assert not recwarn.list, "a coroutine that was never awaited"


def test_files_and_deep_tuples_are_results(tmp_path):
    deep = ()
    for _ in range(5000):
        deep = (deep,)
    for result in ((tmp_path / "text").open("w+", encoding="utf-8"), io.BytesIO(), deep, (1, (io.StringIO(), deep))):
        assert rl.latency(lambda result=result: result, warmup=0, repeat=2).median_ms >= 0
    with pytest.raises(TypeError, match="generator"):
        rl.latency(lambda: (deep, (counts(), deep)))


@pytest.mark.parametrize("asked", ["__getattr__", "__eq__"])
def test_objects_that_raise_when_they_are_asked_are_called(asked):
    def refuses(self, *args):
        raise RuntimeError("not yours")

    fn = type("Refuses", (), {asked: refuses, "__call__": lambda self: 1})()
    assert rl.latency(fn, warmup=0, repeat=2).median_ms > 0
    assert rl.benchmark_memory(fn).peak_bytes == 0


def test_keywords_that_the_function_has_too_are_refused():
    def fn(repeat=1, l2="x"):
        return repeat, l2

    for given in ({"repeat": 100}, {"l2": "warm"}):
        with pytest.raises(TypeError, match=rf"\[latency\] {next(iter(given))}: fn has a parameter of that name too"):
            rl.latency(fn, **given)
    with pytest.raises(
        TypeError, match=r"\[latency\] device: zeros has a parameter of that name too; write rl.latency"
    ):
        rl.latency(rl.zeros, 3, device="cpu")
    with pytest.raises(TypeError, match=r"\[benchmark_memory\] device: zeros has a parameter"):
        rl.benchmark_memory(rl.zeros, 3, device="cpu")
    assert len(rl.latency(fn, warmup=0).samples_ms) == 100
    assert len(rl.latency(lambda repeat, /: repeat, 3, warmup=0, repeat=2).samples_ms) == 2
    assert rl.latency_one_time(rl.zeros, 3, device="cpu").device == "cpu"


def test_samples_come_in_rounds_with_new_memory_and_a_pause(monkeypatch):
    happened = []
    monkeypatch.setattr(sampling.time, "sleep", lambda seconds: happened.append("pause"))
    monkeypatch.setattr(rl._core.memory, "empty_cache", lambda device: happened.append("new memory"))
    found = rl.latency(lambda: happened.append("call"), warmup=4, repeat=40, device="cpu")
    between = ["pause", "new memory"]
    assert happened == ["call"] * 11 + between + ["call"] * 11 + between + ["call"] * 11 + between + ["call"] * 11
    assert found.rounds == 4 and len(found.samples_ms) == 40 and len(found.round_medians_ms) == 4
    happened.clear()
    assert rl.latency(lambda: happened.append("call"), device="cpu").rounds == 6
    assert happened.count("call") == 110 and happened.index("pause") == 5 + 17
    for options, rounds in [({"warmup": 0}, 1), ({"warmup": 1}, 1), ({"repeat": 19}, 1), ({"repeat": 20}, 2)]:
        assert rl.latency(abs, 1, **options).rounds == rounds


def test_medians_of_rounds_show_what_moves_between_them():
    found = rl.Timing(np.array([1.0, 1.1, 0.9, 3.0, 3.1, 2.9]), 0.0, "cpu", 2)
    assert found.round_medians_ms == [1.0, 3.0] and found.p80_ms == 3.0 and found.p20_ms == 1.0


def test_the_interval_of_the_median_is_that_of_the_binomial():
    """Of n ordered samples, those from k to n + 1 - k enclose the median unless a side has fewer than k."""
    for n in (6, 7, 20, 59, 100, 1001):
        low, high = rl.Timing(
            np.random.default_rng(0).permutation(np.arange(1.0, n + 1)), 0.0, "cpu"
        ).median_interval_ms
        assert low + high == n + 1, "it leaves out as many at one end as at the other"
        assert scipy.stats.binom.cdf(low - 1, n, 0.5) <= 0.025 < scipy.stats.binom.cdf(low, n, 0.5)


def test_the_interval_holds_the_true_median_in_95_of_100_cases():
    rng = np.random.default_rng(0)
    found = [rl.Timing(rng.exponential(size=25), 0.0, "cpu").median_interval_ms for _ in range(2000)]
    assert 0.95 <= np.mean([low <= np.log(2) <= high for low, high in found]) <= 0.97  # 25 samples: 0.9567


def test_the_interval_encloses_the_medians_of_the_rounds():
    slow, fast = np.linspace(2.0, 2.1, 50), np.linspace(1.0, 1.1, 20)
    assert rl.Timing(np.concatenate([slow, fast]), 0.0, "cpu").median_interval_ms[0] > 1.9
    low, high = rl.Timing(np.concatenate([slow, fast, slow[:20]]), 0.0, "cpu", 9).median_interval_ms
    assert low == pytest.approx(1.023, abs=0.01) and high == pytest.approx(2.09, abs=0.01)


def test_few_samples_say_nothing_of_their_median():
    few = rl.Timing(np.ones(5), 0.0, "cpu")
    assert np.isnan(few.median_interval_ms).all() and "confidence" not in few._repr_html_()
    enough = rl.Timing(np.arange(1.0, 7.0), 0.0, "cpu")
    assert "The median lies between 1 ms and 6 ms with 95 % confidence." in enough._repr_html_()


@pytest.mark.gpu
def test_closures_are_timed_by_events():
    x = rl.ones(8, device="cuda")
    assert rl.latency(lambda: rl.exp(x), warmup=1, repeat=2).device == "cuda:0"


@pytest.mark.gpu
def test_gpu_time_is_taken_by_events():
    x = rl.randn(4096, 4096, device="cuda")
    timing = rl.latency(rl.gelu, x, warmup=2, repeat=10)
    assert timing.device == "cuda:0"
    # 134 MB cannot move faster than 10 TB/s. Timing only the enqueue would give microseconds.
    assert timing.median_ms > 0.0134


@pytest.mark.gpu
def test_tensors_that_require_grad_are_timed_where_they_live():
    x = rl.ones(8, device="cuda", requires_grad=True)
    assert rl.latency(rl.exp, x, warmup=1, repeat=2).device == "cuda:0"


def test_synchronize_knows_devices_by_name():
    rl.synchronize()
    rl.synchronize("cpu")
    rl.synchronize(rl.device("cpu:0"))
    for name in ("gpu", "cuda:first", "cudax", 3):
        with pytest.raises(ValueError, match=rf'\[synchronize\] device: .* got "{name}"'):
            rl.synchronize(name)


@pytest.mark.gpu
def test_a_replay_of_a_graph_is_timed_on_its_gpu():
    """The host is done long before the kernels are."""
    x = rl.randn(4096, 4096, device="cuda")
    graph = rl.Graph(device="cuda")
    with graph.capture():
        rl.matmul(x, x)
    alone, wrapped = rl.latency(graph.replay), rl.latency(lambda: graph.replay())
    assert alone.device.startswith("cuda")
    assert min(alone.min_ms, wrapped.min_ms) > 0.1  # 1.4e11 FLOPs in a tenth of a millisecond: no GPU does that in fp32


def test_a_call_on_a_meta_device_is_said_to_be_the_time_of_the_host():
    x = rl.ones(3, device=rl.meta("H200"))
    with pytest.warns(UserWarning, match=r"on meta:H200, where nothing runs: this is the time of the host alone"):
        rl.latency(rl.softmax, x, warmup=0, repeat=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rl.latency(rl.softmax, x, warmup=0, repeat=1, device="cpu")
        rl.latency(rl.softmax, rl.ones(3), warmup=0, repeat=1)
