"""Counters, ranges and memory accounting: exact, nested, and the same on every device."""

import pytest

import rooflab as rl


def test_counts_are_exact(device):
    a, b = rl.ones(64, 32, device=device), rl.ones(32, 16, device=device)
    with rl.count() as c:
        rl.matmul(a, b)
        rl.exp(a)
    assert (c.launches, c.host_calls) == (2, 2)
    assert c.macs == 64 * 32 * 16
    assert c.flops == 2 * c.macs + 64 * 32
    assert c.bytes_read == 4 * (64 * 32 + 32 * 16 + 64 * 32)
    assert c.bytes_written == 4 * (64 * 16 + 64 * 32)
    assert (c.allocations, c.bytes_allocated) == (2, 4 * (64 * 16 + 64 * 32))
    assert c.by_op["matmul"].launches == 1
    assert c.by_op["matmul"].bytes_allocated == 4 * 64 * 16


def test_unfused_gelu_is_eight_launches_and_fused_one(device):
    x = rl.randn(1000, device=device)
    with rl.count() as unfused:
        0.5 * x * (1 + rl.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    with rl.count() as fused:
        rl.gelu(x)
    assert unfused.launches == 8
    assert fused.launches == 1
    assert fused.flops == unfused.flops == 8000


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


def test_memory_counts_every_byte_once(device):
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


def test_moves_between_devices_are_launches():
    if not rl.cuda.is_available():
        pytest.skip(rl.cuda.unavailable_reason())
    x = rl.ones(1000)
    with rl.count() as c:
        y = x.cuda()
        y.cpu()
    assert c.by_op["memcpy"].launches == 2
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
