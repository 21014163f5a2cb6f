"""The CPU's threads: every item once, whoever calls, in forked children, and up to the last moment of a process."""

import copy
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import rooflab as rl

GRAIN = 1 << 15  # elements that elementwise ops give a thread at least
MIB = 1 << 20


@pytest.fixture(params=[1, 2, 3, 7, 512])
def threads(request):
    before = rl.num_threads()
    rl.set_num_threads(request.param)
    yield request.param
    rl.set_num_threads(before)


def run_python(code, **environment):
    """Run a script in its own process, with a time limit. OMP_NUM_THREADS is set only where a test sets it."""
    kept = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=kept | environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "count", [1, GRAIN - 1, GRAIN, 2 * GRAIN - 1, 2 * GRAIN, 2 * GRAIN + 1, 3 * GRAIN + 17, 2**21 - 3]
)
def test_every_item_is_worked_on_once(count, threads):
    x = np.arange(count)
    assert (rl.add(rl.tensor(x), 1).numpy() == x + 1).all()
    assert rl.sum(rl.tensor(x)).item() == x.sum()


@pytest.mark.parametrize("rows, columns", [(1, 70001), (5, 40000), (67, 5001), (2049, 130)])
def test_every_row_is_worked_on_once(rows, columns, threads):
    sums = rl.softmax(rl.randn(rows, columns)).numpy().sum(axis=1)
    assert np.allclose(sums, 1, atol=1e-4)


def test_results_do_not_depend_on_the_number_of_threads():
    x, q = rl.randn(300, 4099), rl.randn(2, 4, 300, 64)

    def results(count):
        rl.set_num_threads(count)
        ops = (rl.exp(x), rl.sum(x), rl.matmul(x, x.T), rl.attention(q, q, q, is_causal=True))
        return [y.numpy() for y in ops]

    before = rl.num_threads()
    one, many = results(1), results(5)
    rl.set_num_threads(before)
    for a, b in zip(one, many, strict=True):
        assert np.allclose(a, b, rtol=1e-5, atol=1e-5)


def test_set_num_threads_is_for_the_whole_process(threads):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(rl.num_threads()))
    thread.start()
    thread.join()
    assert seen == [rl.num_threads()] and seen[0] <= threads


def test_several_python_threads_at_once():
    a, b, x = rl.randn(200, 300), rl.randn(300, 250), rl.randn(300000)
    product, shifted = a.numpy().astype(np.float64) @ b.numpy(), x.numpy() + 1
    wrong = []

    def work():
        for _ in range(30):
            if not np.allclose(rl.matmul(a, b).numpy(), product, atol=1e-3):
                wrong.append("matmul")
            if not (rl.add(x, 1).numpy() == shifted).all():
                wrong.append("add")

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


FORK = """
import os
import rooflab as rl
rl.set_num_threads(4)
x = rl.ones(1 << 20)
def works():
    return rl.sum(x + 1).item() == 2 << 20 and rl.matmul(rl.ones(300, 300), rl.ones(300, 300)).numpy().min() == 300
assert works()
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0 if works() else 1)
    good = works() and os.waitpid(grandchild, 0)[1] == 0
    os._exit(0 if good else 1)
assert works()
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_has_threads_of_its_own():
    run_python(FORK)


@pytest.mark.slow
def test_omp_num_threads_is_honoured():
    code = "import rooflab as rl; print(rl.num_threads(), rl.sum(rl.ones(1 << 20)).item())"
    assert run_python(code, OMP_NUM_THREADS="3") == ["3", "1048576.0"]
    assert run_python(code, OMP_NUM_THREADS="5,2") == ["5", "1048576.0"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bind a process to processors")
def test_affinity_is_honoured():
    code = "import rooflab as rl; print(rl.num_threads())"
    assert 1 <= int(run_python(code)[0]) <= len(os.sched_getaffinity(0))
    assert run_python("import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); " + code) == ["1"]


FEW_THREADS = """
import resource
import rooflab as rl
x = rl.ones(1 << 24)
virtual = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limits = (virtual + (200 << 20),) * 2  # of which each thread's stack takes some
resource.setrlimit(resource.RLIMIT_AS, limits)
print(resource.getrlimit(resource.RLIMIT_AS) == limits)
rl.set_num_threads(512)
y = x + 1  # in 512 pieces
assert rl.sum(y).item() == 1 << 25
print(rl.num_threads())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process from /proc")
def test_where_threads_lack_those_that_started_do_the_work():
    is_limited, threads = run_python(FEW_THREADS)
    if is_limited == "False":
        pytest.skip("memory cannot be limited here: qemu does not pass the limit on")
    assert 1 <= int(threads) < 512


@pytest.mark.slow(last=["sys.exit()", "rl.set_num_threads(1)"])
@pytest.mark.parametrize("last", ["pass", "os._exit(0)", "sys.exit()", "rl.set_num_threads(1)"])
def test_a_process_ends_while_its_threads_wait(last):
    run_python(f"import os, sys, rooflab as rl\nrl.set_num_threads(4)\nrl.ones(1 << 20) + 1\n{last}")


def test_a_process_ends_while_another_thread_works():
    run_python("""
import threading, rooflab as rl
x, started = rl.ones(1 << 20), threading.Event()
def work():
    while True:
        x + 1
        started.set()
threading.Thread(target=work, daemon=True).start()
started.wait()
""")


def test_scratch_is_memory_of_its_op(no_garbage):
    a = rl.randn(1024, 1024)
    held = rl.memory.allocated()
    with rl.count() as c:
        product = rl.matmul(a, a)
    panels = 512 * 1024 * 4  # a panel of B, packed
    assert c.by_op["matmul"].bytes_allocated == c.bytes_allocated == c.peak_bytes
    assert product.nbytes + panels <= c.peak_bytes
    assert rl.memory.allocated() == held + product.nbytes


def test_scratch_grows_with_the_threads_that_work():
    a, peaks = rl.randn(1024, 1024), []
    before = rl.num_threads()
    for count in (1, 2, 3):
        rl.set_num_threads(count)
        with rl.count() as c:
            rl.matmul(a, a, variant="v3_packed_simd")
        peaks.append(c.peak_bytes)
    rl.set_num_threads(before)
    assert peaks[1] - peaks[0] == peaks[2] - peaks[1] > 0


FORK_BESIDE_WORK = """
import os, threading, rooflab as rl
x, started = rl.ones(1 << 16), threading.Event()
def work():
    while True:
        with rl.count():
            x + 1
        started.set()
threading.Thread(target=work, daemon=True).start()
started.wait()
for _ in range(50):
    child = os.fork()
    if child == 0:
        os._exit(0 if (rl.ones(1 << 16) + 1).sum().item() == 2 << 16 else 1)
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""


@pytest.mark.slow
def test_a_child_works_though_another_thread_was_at_work():
    run_python(FORK_BESIDE_WORK)


def test_threads_go_backward_to_one_leaf_while_another_counts():
    leaf, done = rl.ones(1000, requires_grad=True), threading.Event()

    def backward():
        for _ in range(100):
            (leaf * 2).sum().backward()

    def read(counter):
        while not done.is_set():
            assert all(counts.launches >= 0 for counts in counter.by_op.values())

    with rl.count() as c, rl.profile() as prof:
        reader = threading.Thread(target=read, args=(c,))
        workers = [threading.Thread(target=backward) for _ in range(3)]
        for thread in [reader, *workers]:
            thread.start()
        for thread in workers:
            thread.join()
        done.set()
        reader.join()
    np.testing.assert_array_equal(leaf.grad.numpy(), np.full(1000, 600, dtype=np.float32))
    assert all(kernel.duration_us >= 0 for kernel in prof.kernels) and c.by_op["mul"].launches >= 300


WORK = {
    "full": lambda x: rl.full(x.shape, 7, dtype=x.dtype),
    "full_like": lambda x: rl.full_like(x, 7),
    "zeros_like": rl.zeros_like,
    "rand_like": rl.rand_like,
    "randint": lambda x: rl.randint(0, 9, x.shape, dtype="int32"),
    "eye": lambda x: rl.eye(1 << 13),
    "zero_": lambda x: x.zero_(),
    "deepcopy": copy.deepcopy,
    "contains": lambda x: 5 in x,
    "array": lambda x: rl.tensor(x.numpy(), dtype="float64"),
    "copy": lambda x: rl.tensor(x),
    "reshape": lambda x: x.view(8, -1).T.reshape(-1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_python_goes_on_while_a_kernel_runs(name):
    x, ticks, done = rl.zeros(1 << 26), [], threading.Event()

    def tick():
        while not done.is_set():
            time.sleep(0.0005)
            ticks.append(time.perf_counter())

    def ticks_inside():
        begin = time.perf_counter()
        WORK[name](x)
        quarter = (time.perf_counter() - begin) / 4
        return sum(begin + quarter < at < begin + 3 * quarter for at in ticks)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        assert any(ticks_inside() for _ in range(5))
    finally:
        done.set()
        ticker.join()
