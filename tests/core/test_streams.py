"""Streams: memory that several of them use, streams that are gone, events, and the order that other libraries see."""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest

import rooflab as rl

N = 3 * (1 << 20) + 1000


@pytest.fixture(autouse=True)
def _nothing_cached(no_garbage):
    if rl.cuda.is_available():
        rl.memory.empty_cache("cuda")


def keep_busy():
    """Queues some 50 ms of work on the current stream."""
    a = rl.randn(4096, 4096, device="cuda")
    for _ in range(30):
        a = rl.matmul(a, a) * 1e-3


def empty(size=N):
    return rl.empty(size, device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("owner_is_default", [True, False])
def test_a_block_is_used_again_only_after_all_streams_that_used_it(owner_is_default):
    """Nothing announces that the other stream reads the block. Even so it must not read the next tensor's values."""
    default, other = None, rl.cuda.Stream()
    owner, reader = (default, other) if owner_is_default else (other, default)

    def on(stream, call, *args):
        with stream or nullcontext():
            return call(*args)

    def read_late(tensor):
        keep_busy()
        return tensor + 0

    x = on(owner, lambda: rl.zeros(N, device="cuda"))
    address = x.data_ptr()
    rl.cuda.synchronize()
    y = on(reader, read_late, x)
    del x
    z = on(owner, lambda: rl.ones(N, device="cuda"))
    rl.cuda.synchronize()
    assert z.data_ptr() == address
    assert y.sum().item() == 0


@pytest.mark.gpu
def test_streams_have_caches_of_their_own():
    x = empty()
    address = x.data_ptr()
    del x
    stream = rl.cuda.Stream()
    with stream:
        assert empty().data_ptr() != address
    assert empty().data_ptr() == address


@pytest.mark.gpu
def test_a_stream_inherits_nothing_from_one_that_is_gone():
    for size in range(N, N + 5 * 4096, 4096):  # CUDA likes to give a freed handle to the next stream
        stream = rl.cuda.Stream()
        with stream:
            gone = empty(size)
            keep_busy()
        address = gone.data_ptr()
        del gone, stream
        with rl.cuda.Stream():
            assert empty(size).data_ptr() != address
        rl.memory.empty_cache("cuda")


@pytest.mark.gpu
def test_a_tensor_outlives_its_stream():
    before = rl.memory.allocated("cuda")
    with rl.cuda.Stream() as stream:
        x = rl.ones(N, device="cuda")
    del stream
    assert x.sum().item() == N
    address = x.data_ptr()
    del x
    assert empty().data_ptr() == address
    assert rl.memory.allocated("cuda") == before


@pytest.mark.gpu
def test_a_stream_that_is_current_is_not_destroyed():
    code = """
import rooflab as rl
def current():
    return rl.ones(10, device="cuda").__cuda_array_interface__["stream"]
rl.cuda.Stream().__enter__()
outer = current()
with rl.cuda.Stream() as inner:
    assert current() == inner.cuda_stream != outer
assert current() == outer != 1
try:
    inner.__exit__(None, None, None)
except RuntimeError as error:
    assert "has not entered it" in str(error)
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
def test_events_know_their_device():
    begin, end = rl.cuda.Event(), rl.cuda.Event(device=0)
    assert begin.device == end.device == rl.cuda.Stream().device == 0
    with rl.cuda.Stream() as stream:
        begin.record()
        keep_busy()
        end.record(stream)
    assert begin.elapsed_ms(end) > 1
    with pytest.raises(rl.CudaError, match="does not exist"):
        rl.cuda.Event(device=100)


@pytest.mark.gpu
def test_an_event_is_recorded_on_its_own_gpu():
    if rl.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    rl.ones(10, device="cuda:0")
    begin, end = rl.cuda.Event(1), rl.cuda.Event(1)
    begin.record()
    rl.ones(N, device="cuda:1")
    end.record()
    assert begin.elapsed_ms(end) > 0
    with pytest.raises(ValueError, match="expected one of cuda:1, got one of cuda:0"):
        begin.record(rl.cuda.Stream(0))


@pytest.mark.gpu
def test_dlpack_makes_the_consumer_s_stream_wait():
    consumer = rl.cuda.Stream()
    keep_busy()
    x = rl.ones(N, device="cuda")
    capsule = x.__dlpack__(stream=consumer.cuda_stream)
    with consumer:
        assert rl.from_dlpack(capsule).sum().item() == N
    for stream in (None, 1, 2, -1):
        assert rl.from_dlpack(x.__dlpack__(stream=stream)).shape == (N,)
    for stream in (0, -2):
        with pytest.raises(ValueError, match="stream: expected a stream"):
            x.__dlpack__(stream=stream)


@pytest.mark.gpu
def test_what_a_consumer_s_stream_reads_stays_until_it_has():
    consumer = rl.cuda.Stream()
    x = rl.zeros(N, device="cuda")
    address = x.data_ptr()
    theirs = rl.from_dlpack(x.__dlpack__(stream=consumer.cuda_stream))
    with consumer:
        keep_busy()
        y = theirs + 0
    del x, theirs
    z = rl.ones(N, device="cuda")
    rl.cuda.synchronize()
    assert z.data_ptr() == address
    assert y.sum().item() == 0


class Producer:
    """Passes a tensor on by DLPack, and notes which stream it is asked for."""

    def __init__(self, tensor):
        self.tensor, self.asked = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.tensor.__dlpack__(**options)


@pytest.mark.gpu
def test_dlpack_names_the_current_stream_to_the_producer():
    producer = Producer(rl.ones(10, device="cuda"))
    rl.from_dlpack(producer)
    rl.synchronize()  # the ones are written on another stream than they are read
    with rl.cuda.Stream() as stream:
        assert rl.from_dlpack(producer).sum().item() == 10
        assert producer.asked == [{"stream": 1}, {"stream": stream.cuda_stream}]


def test_on_the_cpu_there_are_no_streams():
    producer = Producer(rl.ones(10))
    assert rl.from_dlpack(producer).sum().item() == 10
    assert producer.asked == [{}]
    assert np.from_dlpack(producer).sum() == 10
    with pytest.raises(ValueError, match="stream: expected None for a tensor on cpu"):
        rl.ones(3).__dlpack__(stream=1)


class Array:
    """Another library's array, that work on `stream` writes."""

    def __init__(self, tensor, stream):
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, "stream": stream}


@pytest.mark.gpu
def test_cuda_arrays_come_with_their_stream():
    producer = rl.cuda.Stream()
    with producer:
        keep_busy()
        x = rl.ones(N, device="cuda")
        assert x.__cuda_array_interface__["stream"] == producer.cuda_stream
    assert x.__cuda_array_interface__["stream"] == 1
    assert rl.from_cuda_array(Array(x, producer.cuda_stream)).sum().item() == N
    assert rl.from_cuda_array(Array(x, None)).shape == (N,)
    with pytest.raises(ValueError, match="stream: expected a stream or None, got 0"):
        rl.from_cuda_array(Array(x, 0))
