"""Asking rl.cost for a cost is no work: nobody who watches sees it, and what runs meanwhile does not change it."""

import threading

import pytest

import rooflab as rl

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
