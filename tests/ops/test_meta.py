"""Tensors without memory: every op runs on them and counts what it would on the machine that they stand for."""

import functools
import math

import numpy as np
import pytest
from ops.samples import (
    LAYOUTS,
    SPECS,
    accepts_nothing,
    as_tuple,
    dtypes_of_ops,
    prepared,
    rungs,
    samples_of,
    tensors_of,
)

import rooflab as rl
from rooflab.roofline.datasheets import SPECS as MACHINES

WORK = ["ops", "macs", "flops", "bytes_read", "bytes_written"]
EVENTS = ["launches", "host_calls", "allocations", "bytes_allocated", "peak_bytes"]


def twin(device):
    """The meta device that stands for `device`."""
    return "meta:cpu" if device == "cpu" else "meta:cuda:0"


def counts(run, device, rung=""):
    """What is counted, by name. On a GPU a vendor's library runs products unless a rung of rooflab's own is asked for,
    and only that library knows what it launches and allocates."""
    with rl.count() as c:
        run()
    library = device != "cpu" and "matmul" in c.by_op and not rung.startswith("matmul v")
    return {field: getattr(c, field) for field in (WORK if library else WORK + EVENTS)}


@pytest.mark.slow(device=["cpu"], but_every=2)
@pytest.mark.slow(name=["attention_backward"], dtype=["bfloat16"])
@pytest.mark.slow(device=["cpu"], dtype=["float16"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "dtype"), dtypes_of_ops())
@pytest.mark.slow(name=["attention_backward"], dtype=["float64"])
def test_counts_are_those_of_the_device(name, dtype, layout, device):
    for sample in samples_of(name):
        check_counts(SPECS[name], dtype, sample, layout, device)


def check_counts(spec, dtype, sample, layout, device):
    on_device, on_meta = (
        prepared(spec, tensors_of(sample, dtype, on, layout), sample) for on in (device, twin(device))
    )
    for variant in ["", *rungs(spec, device)]:
        options, rung = {"variant": variant} if variant else {}, f"{spec.name} {variant}"
        real, meta = (
            functools.partial(spec.fn, *operands, **sample.kwargs, **options) for operands in (on_device, on_meta)
        )
        try:
            expected = counts(real, device, rung)
        except ValueError as error:
            if not variant or not accepts_nothing(error):
                raise
            with pytest.raises(ValueError, match="does not accept these operands"):
                meta()
            continue
        assert counts(meta, device, rung) == expected, f"{sample.label} {rung}"


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.differentiable])
def test_gradients_count_as_on_the_device(name, device):
    spec = SPECS[name]
    dtype = "float32"

    def backward(on, sample):
        leaves = [
            rl.tensor(a, dtype=dtype if a.dtype == np.float64 else None, device=on) if isinstance(a, np.ndarray) else a
            for a in sample.args
        ]
        for leaf in leaves:
            if isinstance(leaf, rl.Tensor) and leaf.dtype == dtype:
                leaf.requires_grad_()
        y = as_tuple(spec.fn(*leaves, **sample.kwargs))[0]
        dy = rl.ones(*y.shape, dtype=y.dtype, device=on)
        return counts(lambda: y.backward(dy), device)

    for sample in spec.differentiable(np.random.default_rng(0)):
        assert backward(twin(device), sample) == backward(device, sample), sample.label


def test_shape_dtype_strides_and_device_are_known_and_values_are_not():
    x = rl.randn(4, 6, dtype="bfloat16", device="meta:H200")
    y = rl.softmax(x.T, dim=0)
    assert (y.shape, y.dtype, y.strides, y.device) == ((6, 4), "bfloat16", (1, 6), "meta:H200")
    assert repr(x) == "tensor(shape=(4, 6), dtype=bfloat16, device='meta:H200')"
    for read in (x.numpy, x.item, x.tolist, x.cpu, lambda: np.asarray(x), lambda: rl.ones(4, 6).copy_(x)):
        with pytest.raises(ValueError, match=r"meta:H200|one element"):
            read()
    with pytest.raises(ValueError, match=r"\[add\] operands are on meta:H200 and cpu"):
        x + rl.ones(4, 6, dtype="bfloat16")
    with pytest.raises(BufferError, match="meta"):
        x.__dlpack__()


def test_it_has_no_memory_but_counts_it(no_garbage):
    x = rl.empty(1 << 20, 1 << 20, device="meta:H200")  # 4 TiB
    before = rl.memory.allocated("meta:H200")
    y = rl.exp(x)
    assert rl.memory.allocated("meta:H200") - before == y.nbytes == 4 << 40
    assert rl.memory.reserved("meta:H200") == 0
    del y
    assert rl.memory.allocated("meta:H200") == before


def test_only_what_leaves_the_cpu_is_copied():
    x = rl.ones(8)

    def bytes_moved(move):
        with rl.count() as c:
            assert move().shape == (8,)
        return c.bytes_read, c.bytes_written, c.allocations

    for to_cpu in (lambda: x.to("meta"), lambda: rl.tensor([1.0] * 8, device="meta")):
        assert bytes_moved(to_cpu) == (0, 0, 1)
    assert bytes_moved(lambda: x.to("meta:H200")) == (32, 32, 1)


def test_machines_are_known_by_name():
    assert rl.meta() == "meta:cpu" and rl.meta("H200") == "meta:H200"
    assert rl.ones(3, device="meta").device == "meta:cpu"
    for gpu in (machine for machine in MACHINES.values() if machine.kind == "gpu"):
        assert rl.empty(2, device=rl.meta(gpu.name)).device == f"meta:{gpu.name}"
    with pytest.raises(ValueError, match=r"\[meta\] name: expected one of cpu, .*H200.*; got \"H2000\""):
        rl.meta("H2000")


def test_the_machine_decides_which_kernel_runs():
    """v3_hopper is for sm_90a alone, and a GPU's rungs are not a CPU's."""
    q = {gpu: rl.empty(1, 8, 1024, 128, dtype="bfloat16", device=rl.meta(gpu)) for gpu in ("H200", "A100 SXM 80GB")}
    rl.attention(*[q["H200"]] * 3, variant="v3_hopper")
    with pytest.raises(ValueError, match="v3_hopper does not accept these operands"):
        rl.attention(*[q["A100 SXM 80GB"]] * 3, variant="v3_hopper")
    with pytest.raises(ValueError, match=r"expected one of .*v2_flash_simd"):
        rl.attention(*[rl.empty(1, 8, 16, 64, device="meta")] * 3, variant="v3_hopper")


def test_several_launches_of_one_op_are_counted():
    """Few queries over many keys are split over the keys and then combined: two kernels and the parts between them."""
    q = rl.empty(1, 8, 1, 128, dtype="bfloat16", device="meta:H200")
    k = rl.empty(1, 8, 8192, 128, dtype="bfloat16", device="meta:H200")
    with rl.count() as c:
        rl.attention(q, k, k)
    assert (c.ops, c.launches, c.host_calls) == (1, 2, 2)
    assert c.peak_bytes > q.nbytes and c.allocations == 2


def decoder(x, layers, heads, weights):
    """A pre-norm decoder with a gated MLP, made of ops. All layers share their weights, which costs the same."""
    batch, length, d_model = x.shape
    q_w, k_w, v_w, o_w, gate, up, down, gain = weights
    for _ in range(layers):
        h = rl.rms_norm(x, gain)
        q, k, v = ((h @ w).reshape(batch, length, heads, d_model // heads).transpose(1, 2) for w in (q_w, k_w, v_w))
        out = rl.attention(q, k, v, is_causal=True)
        x = x + out.transpose(1, 2).reshape(batch, length, d_model) @ o_w
        h = rl.rms_norm(x, gain)
        x = x + (rl.silu(h @ gate) * (h @ up)) @ down
    return x


@pytest.mark.parametrize(("name", "bytes_of_part"), [("softmax", 8), ("rms_norm", 8), ("layer_norm", 24)])
def test_blocks_that_share_a_row_leave_what_they_found_to_a_second_launch(name, bytes_of_part):
    x, parts = rl.empty(2, 40000, device="meta:H200"), 40000 // 2048
    with rl.count() as c:
        getattr(rl, name)(x)
    assert (c.launches, c.peak_bytes) == (2, x.nbytes + 2 * parts * bytes_of_part)
    with rl.count() as c:
        getattr(rl, name)(rl.empty(4000, 8000, device="meta:H200"))
    assert c.launches == 1


def test_a_large_model_is_counted_on_any_machine():
    """The 2.7B transformer, forward and backward: 2560 wide, 10240 in the MLP, 32 layers, 32 heads."""
    d, i, layers, length = 2560, 10240, 32, 512
    shapes = [(d, d)] * 4 + [(d, i), (d, i), (i, d), (d,)]
    weights = [rl.empty(*s, dtype="bfloat16", device="meta:H200", requires_grad=True) for s in shapes]
    x = rl.empty(1, length, d, dtype="bfloat16", device="meta:H200", requires_grad=True)
    with rl.count() as forward:
        y = decoder(x, layers, 32, weights)
    pairs = length * (length + 1) // 2
    products = layers * length * sum(math.prod(s) for s in shapes[:-1])
    assert forward.macs == products + layers * 2 * d * pairs
    with rl.count() as backward:
        y.backward(rl.empty(*y.shape, dtype="bfloat16", device="meta:H200"))
    assert backward.macs == 2 * products + layers * 5 * d * pairs
    assert [w.grad.shape for w in weights] == [w.shape for w in weights]
