"""Asking rl.cost for a cost is no work: nobody who watches sees it, and what runs meanwhile does not change it."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import rooflab as rl
from rooflab import _core
from rooflab.grading import measure

GPT = {"n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 16, "vocab_size": 11, "model_type": "gpt2"}
SPEC = rl.cost.from_config(GPT)


def ask():
    """Costs of an op on shapes, on tensors and on tensors without memory, and of a model."""
    x, h200 = rl.ones(4, 4), rl.empty(4, 4, device=rl.meta("H200"))
    return (
        rl.cost.matmul((512, 512), (512, 512)),
        rl.cost.mul(x, x.T),
        rl.cost.softmax(h200),
        rl.cost.model(SPEC, batch=2, length=8, mode="training", hardware="H100").total.work,
    )


def test_counters_recorders_and_profiles_do_not_see_it():
    x = rl.ones(8, 8)
    expected = ask()
    with rl.count() as alone, rl.profile() as prof_alone, rl.memory.record() as recorded_alone:
        rl.ones(4, 4), rl.empty(4, 4, device=rl.meta("H200"))
        x @ x
    with rl.count() as c, rl.profile() as prof, rl.memory.record() as recorded:
        assert ask() == expected
        x @ x
    assert repr(c) == repr(alone) and c.peak_bytes == alone.peak_bytes
    assert [k.op for k in prof.kernels] == [k.op for k in prof_alone.kernels] and not prof.is_model
    assert [h.name for h in prof.host] == [h.name for h in prof_alone.host]
    assert [e.bytes for e in recorded.events] == [e.bytes for e in recorded_alone.events]


def test_autocast_and_random_numbers_stay_apart():
    expected, state = ask(), rl.get_rng_state()
    with rl.autocast("bfloat16"):
        assert ask() == expected
        assert rl.matmul(rl.ones(2, 2), rl.ones(2, 2)).dtype == "bfloat16"
    assert rl.get_rng_state() == state
    assert rl.matmul(rl.ones(2, 2), rl.ones(2, 2)).dtype == "float32"


def test_an_error_ends_it():
    with rl.count() as c:
        with pytest.raises(ValueError, match="matmul"):
            rl.cost.matmul((2, 3), (2, 3))
        rl.exp(rl.ones(2))
    assert c.by_op["exp"].ops == 1 and "matmul" not in c.by_op


def test_inside_of_a_capture_and_of_a_compiled_function():
    x, expected = rl.ones(4, 4), rl.cost.mul((4, 4), (4, 4)).flops
    with rl.Graph(device="cpu").capture() as graph:
        y = x + rl.cost.mul(x, (4, 4)).flops
    graph.replay()
    assert graph.launches == 1 and y[0, 0].item() == 1 + expected

    @rl.compile
    def compiled(x):
        return rl.exp(x * rl.cost.mul(x, (4, 4)).flops) + 1

    compiled(x)
    with rl.count() as c:
        compiled(x)
    assert c.launches == 1


@pytest.mark.parametrize("profiled", [False, True])
@pytest.mark.filterwarnings("ignore:.*still running in other threads")  # of what the thread runs at the end
def test_other_threads_do_not_change_it(profiled):
    expected, stop, z = ask(), threading.Event(), rl.ones(32, 32)

    def work():
        while not stop.is_set():
            z @ z

    other = threading.Thread(target=work)
    other.start()
    try:
        with rl.profile(source="cpu clock") if profiled else rl.count():
            assert all(ask() == expected for _ in range(40))
    finally:
        stop.set()
        other.join()


def counts_of_work():
    """What counters see of one product on the CPU, and of one on a device without memory."""
    x, m = rl.ones(8, 8), rl.empty(8, 8, device="meta")
    with rl.count() as c:
        x @ x
        m @ m
    return c.ops, c.launches, c.allocations


def test_work_on_tensors_with_memory_stays_public():
    x, m = rl.ones(8, 8), rl.empty(8, 8, device="meta")
    with rl.count() as alone, rl.memory.record() as recorded_alone:
        x @ x
    with rl.count() as c, rl.profile() as prof, rl.memory.record() as recorded, _core._PrivateCount() as own:
        x @ x
        m @ m
        assert rl.exp(rl.empty(0, device="meta")).numel() == 0
    assert repr(c) == repr(alone) and c.flops == own.total.flops == 1024
    assert [k.op for k in prof.kernels] == ["matmul"] and prof.kernels[0].cost.flops == own.total.flops
    assert [e.bytes for e in recorded.events] == [e.bytes for e in recorded_alone.events]


def test_private_counts_end_in_their_thread_and_leave_nothing_behind():
    seen, m = counts_of_work(), rl.empty(8, 8, device="meta")
    one, two = _core._PrivateCount(), _core._PrivateCount()
    with one:
        with pytest.raises(RuntimeError, match="counting already"):
            one.__enter__()
        with pytest.raises(RuntimeError, match="in the thread"):
            in_a_thread(one.__exit__)
        two.__enter__()
        m @ m  # the end of `one` ends `two` as well
    assert counts_of_work() == seen and (one.total.flops, two.total.flops) == (0, 1024)
    two.__exit__()
    two.__enter__()
    del two
    gc.collect()
    assert counts_of_work() == seen


def test_a_private_count_may_be_gone_before_its_thread_goes_on():
    seen, m = counts_of_work(), rl.empty(8, 8, device="meta")

    def begin():
        left.append(_core._PrivateCount())
        left[0].__enter__()
        in_a_thread(left.clear)
        for _ in range(100):
            m @ m

    left = []
    in_a_thread(begin)
    assert counts_of_work() == seen


def in_a_thread(call):
    """Its error is raised here."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()


def test_in_a_counted_test_costs_that_are_asked_for_count():
    def asks():
        with rl.autocast("bfloat16"), rl.Graph(device="cpu").capture():
            return [rl.cost.matmul((8, 8), (8, 8)).bytes_read, rl.cost.softmax((4, 4)).flops]

    seen = measure.count(asks)
    assert seen.value == asks() and seen.value[0] == 2 * 8 * 8 * 4
    assert seen.by_op == {"matmul": 1, "softmax": 1} and seen.macs == 8**3
