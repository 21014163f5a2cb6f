"""Counters, ranges and memory accounting: exact, nested, and the same on every device."""

import re
import threading

import pytest

import rooflab as rl


def test_counts_are_exact(device):
    a, b = rl.ones(64, 32, device=device), rl.ones(32, 16, device=device)
    with rl.count() as c:
        rl.matmul(a, b, variant="v0_naive" if device != "cpu" else "v0_reference")  # rungs that need no scratch
        rl.exp(a)
    assert (c.ops, c.launches, c.host_calls) == (2, 2, 2)
    assert c.macs == 64 * 32 * 16
    assert c.flops == 2 * c.macs + 64 * 32
    assert c.bytes_read == 4 * (64 * 32 + 32 * 16 + 64 * 32)
    assert c.bytes_written == 4 * (64 * 16 + 64 * 32)
    assert c.by_op["exp"].allocations == 1
    assert c.by_op["exp"].bytes_allocated == 4 * 64 * 32
    assert c.by_op["matmul"].launches == 1
    assert c.by_op["matmul"].bytes_allocated >= 4 * 64 * 16  # and scratch


def test_unfused_gelu_is_eight_launches_and_fused_one(device):
    x = rl.randn(1000, device=device)
    with rl.count() as unfused:
        0.5 * x * (1 + rl.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    with rl.count() as fused:
        rl.gelu(x)
    assert unfused.launches == 8
    assert fused.launches == 1
    assert fused.flops == unfused.flops == 8000


def bytes_read(call):
    with rl.count() as c:
        call()
    return c.bytes_read


def test_each_piece_of_memory_is_read_once(device):
    """However many operands share it, and whatever views of it they are."""
    x = rl.ones(64, 64, device=device)
    whole = x.nbytes
    assert bytes_read(lambda: rl.mul(x, x)) == bytes_read(lambda: x @ x) == bytes_read(lambda: x @ x.T) == whole
    assert bytes_read(lambda: x + x.view(4096).view(64, 64)) == whole
    assert bytes_read(lambda: x[:40] + x[24:]) == whole  # rows 24 to 39 are in both
    assert bytes_read(lambda: x[:32] + x[32:]) == whole
    assert bytes_read(lambda: x + x[0]) == whole
    assert bytes_read(lambda: x[:, ::2] + x[:, ::2]) == whole // 2
    assert bytes_read(lambda: x[:, ::2] + x[:, 1::2]) == whole
    assert bytes_read(lambda: rl.where(x > 0, x, x)) == whole * 2 + 64 * 64  # x > 0 is an op of its own
    q = rl.ones(1, 2, 16, 8, device=device)
    assert bytes_read(lambda: rl.attention(q, q, q)) == q.nbytes
    packed = rl.ones(1, 16, 3, 2, 8, device=device)
    parts = [packed[:, :, i].transpose(1, 2) for i in range(3)]
    assert bytes_read(lambda: rl.attention(*parts)) == packed.nbytes


def test_flops_follow_what_is_asked(device):
    x, weight, bias = rl.ones(8, 16, device=device), rl.ones(16, device=device), rl.ones(16, device=device)

    def flops(call):
        with rl.count() as c:
            call()
        return c.flops / x.numel()

    assert flops(lambda: rl.layer_norm(x)) == 5
    assert flops(lambda: rl.layer_norm(x, weight)) == 6
    assert flops(lambda: rl.layer_norm(x, weight, bias)) == 7
    assert (flops(lambda: rl.rms_norm(x)), flops(lambda: rl.rms_norm(x, weight))) == (3, 4)


def test_what_an_op_calls_inside_is_no_op_of_its_own(device):
    x = rl.ones(6, 8, device=device)
    with rl.count() as c:
        rl.softmax(x.T)  # rows that are not adjacent are copied first
        rl.attention(*[rl.ones(1, 4, 8, dtype="float64", device=device)] * 3, variant="v0_composed")
    assert c.by_op["softmax"].ops == c.by_op["copy"].launches == 1 and c.by_op["copy"].ops == 0
    assert (c.by_op["attention"].ops, c.by_op["matmul"].ops, c.by_op["matmul"].launches) == (1, 0, 2)
    assert c.ops == 3  # softmax, ones, attention


def test_a_call_that_fails_counts_neither_op_nor_work(device):
    x = rl.ones(4, 4, device=device)
    with rl.count() as c:
        with pytest.raises(ValueError):
            rl.gelu(x, variant="nonsense")
        with pytest.raises(ValueError):
            rl.matmul(x, rl.ones(5, 5, device=device), variant="v0_naive")
    assert (c.ops, c.launches, c.flops, c.by_op["gelu"].ops if "gelu" in c.by_op else 0) == (1, 1, 0, 0)  # ones


def test_nothing_is_counted_outside():
    x = rl.ones(10)
    with rl.count() as c:
        rl.exp(x)
    rl.exp(x)
    assert c.launches == 1
    with c:
        rl.exp(x)
        rl.exp(x)
    assert c.launches == 2


def test_counters_nest():
    x = rl.ones(10)
    with rl.count() as outer:
        rl.exp(x)
        with rl.count() as inner:
            rl.tanh(x)
    assert (outer.launches, inner.launches) == (2, 1)


def test_a_counter_that_counts_is_not_entered_again():
    x, errors = rl.ones(10), []

    def enter():
        try:
            c.__enter__()
        except RuntimeError as error:
            errors.append(str(error))

    with rl.count() as c:
        rl.exp(x)
        with pytest.raises(RuntimeError, match=r"^\[count\] this counter is counting already; make another"), c:
            pass
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        rl.exp(x)
    assert c.launches == 2 and len(errors) == 1
    recorder = rl._core.memory.Recorder()
    recorder.start()
    with pytest.raises(RuntimeError, match=r"^\[memory\] this recorder is recording already$"):
        recorder.start()
    rl.exp(x)
    recorder.stop()
    assert recorder.peak_bytes == 40


def test_all_threads_are_counted():
    x = rl.ones(10)
    with rl.count() as c:
        thread = threading.Thread(target=lambda: rl.exp(x))
        thread.start()
        thread.join()
    assert c.launches == 1


def test_counting_ends_when_the_block_raises():
    with pytest.raises(ZeroDivisionError), rl.count() as c:
        1 / 0  # noqa: B018
    rl.exp(rl.ones(3))
    assert c.launches == 0


def test_a_refused_op_counts_nothing():
    x = rl.ones(2, 3)
    with rl.count() as c:
        with pytest.raises(ValueError):
            rl.matmul(x, x)
        with pytest.raises(ValueError):
            rl.gelu(x, variant="nonsense")
    assert c.launches == 0


def test_ranges_are_paths_that_include_what_is_under_them():
    x = rl.ones(10)
    with rl.count() as c, rl.range("mlp"):
        rl.exp(x)
        with rl.range("gate"):
            rl.tanh(x)
            rl.tanh(x)
    assert c.by_range["mlp"].launches == 3
    assert c.by_range["mlp/gate"].launches == 2
    assert c.by_range["mlp/gate"].allocations == 2
    assert set(c.by_range) == {"mlp", "mlp/gate"}


def test_ranges_close_when_the_block_raises():
    with pytest.raises(ZeroDivisionError), rl.range("outer"):
        1 / 0  # noqa: B018
    with rl.count() as c:
        rl.exp(rl.ones(3))
    assert not c.by_range


@pytest.mark.parametrize("name", ["", "a/b"])
def test_range_names_are_checked(name):
    with pytest.raises(ValueError, match="range"), rl.range(name):
        pass


def test_peak_is_above_what_was_held(device):
    held = rl.empty(1000, device=device)
    with rl.count() as c:
        a = rl.empty(250, device=device)
        del a
        rl.empty(500, device=device)
    assert c.peak_bytes == 2000
    assert c.allocations == 2
    assert held.nbytes == 4000


def test_memory_counts_every_byte_once(device, no_garbage):
    before = rl.memory.allocated(device)
    a = rl.empty(1001, device=device)
    view = a[10:20]
    assert rl.memory.allocated(device) == before + 4004
    del a
    assert rl.memory.allocated(device) == before + 4004
    del view
    assert rl.memory.allocated(device) == before
    rl.memory.reset_peak(device)
    b = rl.empty(100, device=device)
    del b
    assert rl.memory.peak(device) == before + 400
    assert rl.memory.reserved(device) >= rl.memory.allocated(device)


def test_freed_memory_is_used_again(device):
    a = rl.empty(12345, device=device)
    address = a.data_ptr()
    del a
    assert rl.empty(12345, device=device).data_ptr() == address


def test_snapshot_names_the_op(device):
    a = rl.ones(100, 100, device=device)
    b = rl.matmul(a, a)
    blocks = rl.memory.snapshot(device)
    assert blocks[-1].op == "matmul"
    assert blocks[-1].bytes == b.nbytes


def test_empty_cache_gives_memory_back(device):
    a = rl.empty(3_000_000, device=device)
    del a
    before = rl.memory.reserved(device)
    rl.memory.empty_cache(device)
    assert rl.memory.reserved(device) <= before - 12_000_000
    assert rl.ones(3, device=device).sum().item() == 3


def test_moves_between_devices_are_host_calls():
    if not rl.cuda.is_available():
        pytest.skip(rl.cuda.unavailable_reason())
    x = rl.ones(1000)
    with rl.count() as c:
        y = x.cuda()
        y.cpu()
    assert (c.ops, c.launches, c.host_calls, c.by_op["memcpy"].host_calls) == (0, 0, 2, 2)
    assert c.bytes_read == c.bytes_written == 8000


def test_cost_adds_up():
    cost = rl.cost.matmul((512, 512), (512, 512))
    assert cost.macs == 134217728
    assert cost.flops == 2 * cost.macs
    assert cost.bytes == 3145728
    assert (cost + cost) == 2 * cost == cost * 2
    assert cost.arithmetic_intensity == pytest.approx(512 / 6)
    with pytest.raises(ValueError, match="op: expected one of"):
        rl.cost.of("nonsense", (2, 2))
    with pytest.raises(ValueError, match="dtype"):
        rl.cost.gelu((2, 2), dtype="int32")
    with pytest.raises(AttributeError):
        rl.cost.nonsense  # noqa: B018


def test_sums_are_wider_than_the_counts_of_an_op():
    m = rl.empty(2**20, 2**20, device="meta")
    with rl.range("step"), rl.count() as c:
        for _ in range(20):
            m @ m
            rl.copy(rl.empty(2**60, dtype="bool", device="meta"))
    for counts in (c, c.by_range["step"]):
        assert (counts.macs, counts.flops) == (20 * 2**60, 20 * 2**61)
        assert counts.bytes_read == counts.bytes_written == 20 * (2**60 + 2**42)
    assert f"macs={20 * 2**60}, flops={20 * 2**61}, bytes_read={20 * 2**42}," in repr(c.by_op["matmul"])
    cost = rl.Cost(flops=2**62, bytes_read=2**62, bytes_written=2**62)
    assert (cost.bytes, cost.arithmetic_intensity) == (2**63, 0.5)


def test_an_op_of_too_many_flops_is_refused():
    m = rl.empty(2**21, 2**20, device="meta")
    q = rl.empty(2**15, 2**15, 2**12, 2**7, device="meta")
    ops = {
        "matmul": (lambda: m @ m.T, "(2097152, 1048576) and (1048576, 2097152)"),
        "attention": (lambda: rl.attention(q, q, q), "(32768, 32768, 4096, 128) and (32768, 32768, 4096, 128)"),
    }
    for name, (op, shapes) in ops.items():
        told = f"[{name}] expected fewer than 2^63 FLOPs, got more for the shapes {shapes}"
        with rl.count() as c, pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
            op()
        assert (c.ops, c.flops) == (0, 0)
    with pytest.raises(ValueError, match="expected counts of 0 or more, got -1"):
        rl.Cost(bytes_read=-1)
    for product in (lambda: rl.Cost(flops=1) * -1, lambda: -1 * rl.Cost()):
        with pytest.raises(ValueError, match=r"\[Cost\] expected a factor of 0 or more, got -1"):
            product()
    assert rl.Cost(flops=1) * 0 == rl.Cost()


def test_out_of_memory_is_told_in_units_that_fit(no_garbage):
    rl.memory.set_limit(rl.memory.allocated() + 1000)
    try:
        with pytest.raises(rl.OutOfMemoryError, match=r"asked for 1\.2 kB, .* the limit is "):
            rl.ones(300)
        with pytest.raises(rl.OutOfMemoryError, match=r"asked for 40\.0 TB, "):
            rl.empty(10**13)
    finally:
        rl.memory.set_limit(None)
