"""A machine with two GPUs: work on each, copies between them, and threads that never named one."""

import threading

import numpy as np
import pytest

import rooflab as rl

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not rl.cuda.is_available() or rl.cuda.device_count() < 2, reason="needs two GPUs"),
]
N = 3 * (1 << 20) + 1000
GPUS = ["cuda:0", "cuda:1"]


@pytest.fixture(autouse=True)
def _nothing_cached(no_garbage):
    for gpu in GPUS:
        rl.memory.empty_cache(gpu)


def keep_busy(gpu):
    """Queue some 50 ms of work on the current stream."""
    a = rl.randn(4096, 4096, device=gpu)
    for _ in range(30):
        a = rl.matmul(a, a) * 1e-3


def values(shape=(64, 64)):
    return rl.randn(*shape).numpy()


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_ops_of_every_kind_run_where_their_tensors_are(gpu, dtype):
    x = rl.tensor(values((2, 4, 64, 64)), device=gpu).to(dtype)
    here = x.cpu().to("float32")
    ops = {
        "library": lambda x: rl.matmul(x, x, variant="library"),
        "matmul": lambda x: rl.matmul(x, x),
        "shared memory": lambda x: rl.attention(x, x, x, is_causal=True),
        "softmax": rl.softmax,
        "sum": lambda x: rl.sum(x, dim=-1),
        "fill": lambda x: x * 0 + rl.full_like(x, 3.0),
        "sort": lambda x: rl.sort(x).values,
        "fused": rl.compile(lambda x: rl.exp(x * 0.1) + 1),
    }
    for name, op in ops.items():
        y = op(x)
        assert y.device == gpu, name
        expected = op(here).numpy()
        np.testing.assert_allclose(y.to("float32").cpu().numpy(), expected, rtol=0.05, atol=0.05, err_msg=name)


@pytest.mark.parametrize("gpu", GPUS)
def test_a_thread_that_never_named_a_gpu_works_on_each(gpu):
    x, found = rl.tensor(values(), device=gpu), []

    def work():
        found.append(rl.matmul(x, x, variant="library").cpu().numpy())
        found.append(rl.matmul(x, x).cpu().numpy())
        found.append((rl.ones(64, 64, device=gpu) + x).cpu().numpy())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    product = x.cpu().numpy() @ x.cpu().numpy()
    for got, want in zip(found, [product, product, x.cpu().numpy() + 1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_two_threads_work_on_two_gpus():
    wrong = []

    def work(gpu):
        x = rl.tensor(values((256, 256)), device=gpu)
        want = x.cpu().numpy() @ x.cpu().numpy()
        for _ in range(50):
            if not np.allclose(rl.matmul(x, x).cpu().numpy(), want, atol=1e-2):
                wrong.append(gpu)

    threads = [threading.Thread(target=work, args=(gpu,)) for gpu in GPUS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_is_counted_for_each():
    before = [rl.memory.allocated(gpu) for gpu in GPUS]
    x = rl.empty(N, device="cuda:1")
    assert [rl.memory.allocated(gpu) - b for gpu, b in zip(GPUS, before, strict=True)] == [0, x.nbytes]
    rl.memory.set_limit(rl.memory.allocated("cuda:1") + 1024, "cuda:1")
    try:
        with pytest.raises(rl.OutOfMemoryError, match="out of memory on cuda:1"):
            rl.empty(N, device="cuda:1")
        rl.empty(N, device="cuda:0")
    finally:
        rl.memory.set_limit(None, "cuda:1")
    free = rl.cuda.free_memory(1)
    del x
    rl.memory.empty_cache("cuda:1")
    assert rl.cuda.free_memory(1) > free


@pytest.mark.parametrize("source, destination", [GPUS, GPUS[::-1]])
def test_a_copy_between_them_waits_for_both(source, destination):
    """The block that the copy gets may still be read by work that is queued on its GPU."""
    old = rl.zeros(N, device=destination)
    address = old.data_ptr()
    keep_busy(destination)
    read_late = old + 0
    del old
    keep_busy(source)
    x = rl.ones(N, device=source)
    copied = x.to(destination)
    assert copied.device == destination and copied.data_ptr() == address
    assert copied.sum().item() == N and read_late.sum().item() == 0
    back = copied.to(source)
    assert back.device == source and back.sum().item() == N


def test_gradients_go_back_to_the_gpu_that_they_came_from():
    x = rl.ones(8, device="cuda:0", requires_grad=True)
    (x.to("cuda:1") * 3).sum().backward()
    assert x.grad.device == "cuda:0" and x.grad.tolist() == [3.0] * 8


def test_operands_on_two_gpus_are_refused():
    with pytest.raises(ValueError, match="cuda:1"):
        rl.add(rl.ones(2, device="cuda:0"), rl.ones(2, device="cuda:1"))


def test_streams_and_events_of_the_second():
    stream, done = rl.cuda.Stream(1), rl.cuda.Event(1)
    begin = rl.cuda.Event(1)
    with stream:
        begin.record()
        keep_busy("cuda:1")
        x = rl.ones(N, device="cuda:1")
        y = rl.ones(10, device="cuda:0") + 1  # on the default stream of the other GPU
        done.record()
    stream.synchronize()
    assert begin.elapsed_ms(done) > 0 and x.sum().item() == N and y.tolist() == [2.0] * 10


def test_a_block_of_the_second_is_used_again_only_after_all_streams_that_used_it():
    stream = rl.cuda.Stream(1)
    x = rl.zeros(N, device="cuda:1")
    address = x.data_ptr()
    rl.cuda.synchronize(1)
    with stream:
        keep_busy("cuda:1")
        y = x + 0
    del x
    z = rl.ones(N, device="cuda:1")
    rl.cuda.synchronize(1)
    assert z.data_ptr() == address and y.sum().item() == 0


def test_graphs_with_random_numbers_on_the_second():
    x, graph = rl.ones(4, device="cuda:1"), rl.Graph(device="cuda:1")
    rl.ones(4, device="cuda:0") + 1  # the thread's last work was on the other one
    with graph.capture():
        y = x * 2 + rl.randn(4, device="cuda:1")
        z = rl.matmul(rl.ones(64, 64, device="cuda:1"), rl.ones(64, 64, device="cuda:1"))
    graph.replay()
    first = y.tolist()
    x.fill_(5.0)
    graph.replay()
    assert y.device == "cuda:1" and y.tolist() != first and z[0, 0].item() == 64
    with pytest.raises(ValueError, match="cuda:0, but the graph that is captured is on cuda:1"):
        other = rl.Graph(device="cuda:1")
        with other.capture():
            rl.ones(4, device="cuda:0")


def test_graphs_of_both_are_captured_by_two_threads_at_once():
    results, barrier = {}, threading.Barrier(2)

    def work(gpu):
        x, graph = rl.ones(1024, device=gpu), rl.Graph(device=gpu)
        barrier.wait()
        with graph.capture():
            y = x
            for _ in range(50):
                y = y + 1
        graph.replay()
        results[gpu] = y.sum().item()

    threads = [threading.Thread(target=work, args=(gpu,)) for gpu in GPUS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {gpu: 51 * 1024.0 for gpu in GPUS}


@pytest.mark.parametrize("gpu", GPUS)
def test_a_capture_survives_what_another_thread_does(gpu):
    """Freeing cached memory, waiting for the GPU and destroying graphs would end a capture by themselves."""
    failed, done = [], threading.Event()

    def disturb():
        while not done.is_set():
            try:
                x = rl.empty(N, device=gpu)
                del x
                rl.memory.empty_cache(gpu)
                rl.cuda.synchronize(int(gpu[-1]))
            except Exception as error:
                failed.append(error)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(20):
            x, graph = rl.ones(64, device=gpu), rl.Graph(device=gpu)
            with graph.capture():
                y = x
                for _ in range(50):
                    y = y + 1
            graph.replay()
            assert y.tolist() == [51.0] * 64
    finally:
        done.set()
        thread.join()
    assert not failed, failed[0]


SCALE = """
__global__ void scale(const float* x, float* y, float factor) {
  extern __shared__ float kept[];
  kept[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = factor * kept[threadIdx.x];
}
"""


def test_kernels_of_users_load_on_each():
    module = rl.cuda.compile(SCALE)
    for gpu in (*GPUS, *GPUS):
        x, y = rl.ones(256, device=gpu), rl.zeros(256, device=gpu)
        module["scale"](1, 256, x, y, 3.0, shared_bytes=100_000)
        assert y.tolist() == [3.0] * 256
    with pytest.raises(ValueError, match="expected a tensor on cuda:0"):
        module["scale"](1, 256, rl.ones(256, device="cuda:0"), y, 3.0)


def test_kernels_of_users_are_captured_on_the_second():
    module = rl.cuda.compile(SCALE)
    x, y = rl.ones(256, device="cuda:1"), rl.zeros(256, device="cuda:1")
    graph = rl.Graph(device="cuda:1")
    with graph.capture():
        module["scale"](1, 256, x, y, 3.0, shared_bytes=100_000)
    del x
    graph.replay()
    assert y.tolist() == [3.0] * 256


def test_a_profile_tells_which_gpu_ran_a_kernel():
    tensors = [rl.ones(N, device=gpu) for gpu in GPUS]
    with rl.profile() as prof:
        for x in tensors:
            x + 1
    assert {kernel.device for kernel in prof.kernels if kernel.op == "add"} == set(GPUS)


def test_other_libraries_find_their_current_gpu_again():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    torch.cuda.set_device(0)
    x = rl.ones(N, device="cuda:1")
    rl.matmul(x[:4096].reshape(64, 64), x[:4096].reshape(64, 64))
    rl.memory.empty_cache("cuda:1")
    assert torch.cuda.current_device() == 0
    theirs = torch.from_dlpack(x)
    assert theirs.device.index == 1
    assert rl.from_dlpack(theirs).device == "cuda:1" and torch.cuda.current_device() == 0
