"""Which rungs take each sample, and so which is the default: tests/golden/rungs.json lists them for several machines.

`pytest tests/ops/test_rungs.py --rewrite-golden` writes the file again; read its diff.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from ops.samples import SPECS, accepts_nothing, as_tuple, lay_out, of_each_rung, prepared

import rooflab as rl
from rooflab._core import _target

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "rungs.json"
TARGETS = ["cpu baseline", "cpu avx2", "cpu neon", "cpu neon_bf16", "T4", "A100 SXM 80GB", "H200"]


def target_parameter(name):
    """Those that lie between others are tried with --all-tests."""
    return pytest.param(name, marks=[pytest.mark.slow] * (name in ("T4", "A100 SXM 80GB", "cpu baseline", "cpu neon")))


@pytest.fixture
def device(request, set_isa):
    """The meta device of a target; a CPU's instruction set is this process's for a while."""
    name = request.param
    rl.matmul(rl.ones(1, 1), rl.ones(1, 1), variant="library")  # takes products once SciPy's BLAS is loaded
    if name.startswith("cpu"):
        set_isa(name.split()[1])
    return name, rl.meta(name.split()[0] if name.startswith("cpu") else name)


def rungs_that_take(spec, dtype, sample, device):
    tensors = [lay_out(a, dtype, device, "contiguous") if isinstance(a, np.ndarray) else a for a in sample.args]
    operands = prepared(spec, tensors, sample)
    for variant in rl.variants(spec.name, "cpu" if device == "meta:cpu" else "cuda"):
        try:
            spec.fn(*operands, **sample.kwargs, variant=variant.name)
        except ValueError as error:
            if not accepts_nothing(error):
                raise
        else:
            yield variant.name


def samples_of(spec):
    for source in (spec.samples, spec.tails):
        if source:
            yield from source(np.random.default_rng(0))


def found(spec, device):
    """The samples by the rungs that take them, fastest first, and by dtypes; the largest group is called the rest."""
    table, samples = {}, list(samples_of(spec))
    for dtype in spec.dtypes:
        by_rungs = {}
        for sample in samples:
            by_rungs.setdefault(" ".join(rungs_that_take(spec, dtype, sample, device)), []).append(sample.label)
        most = max(by_rungs, key=lambda rungs: len(by_rungs[rungs]))
        for rungs, labels in by_rungs.items():
            table.setdefault(rungs, {}).setdefault("the rest" if rungs == most else "; ".join(labels), []).append(dtype)
    return {rungs: {" ".join(dtypes): labels for labels, dtypes in of.items()} for rungs, of in table.items()}


@pytest.mark.parametrize("device", [*map(target_parameter, TARGETS)], indirect=True)
@pytest.mark.slow(id=["cpu avx2"])
def test_each_sample_has_its_rungs(device, request):
    name, meta = device
    tables = {spec.name: found(spec, meta) for spec in SPECS.values() if spec.name in rl.ops()}
    families = {}
    for op, table in tables.items():
        families.setdefault(json.dumps(table), []).append(op)
    now = {" ".join(ops): json.loads(table) for table, ops in families.items()}
    golden = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    if request.config.getoption("--rewrite-golden"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(golden | {name: now}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    else:
        assert now == golden[name]


def first_rung(name, call):
    """The first rung that an H200 takes by name, which is its default unless the rung itself leaves these shapes."""
    return of_each_rung(name, "cuda", call)[0][0]


@pytest.mark.parametrize(
    ("rows", "d", "rung"),
    [
        (264, 640, "v2_few_rows"),  # two for each SM
        (265, 640, "v1_one_pass"),
        (2, 8192, "v2_few_rows"),
        (2, 8200, "v1_one_pass"),
    ],
)
def test_rms_norm_add_of_few_rows(rows, d, rung):
    x, weight = (rl.empty(*shape, dtype="bfloat16", device=rl.meta("H200")) for shape in ((rows, d), (d,)))
    assert first_rung("rms_norm_add", lambda variant: rl.rms_norm_add(x, x, weight, weight, variant=variant)) == rung


@pytest.mark.parametrize(
    ("heads", "lengths", "head", "rung"),
    [
        ((64, 12, 12), (40, 40), 32, "v1_flash"),
        ((64, 12, 12), (9, 9), 64, "v1_flash"),
        ((64, 12, 12), (8, 9), 64, "v1a_split_kv"),
        ((64, 12, 12), (32, 40), 256, "v1a_split_kv"),
        ((64, 12, 12), (33, 40), 256, "v1_flash"),
        ((16, 16, 16), (32, 128), 64, "v1a_split_kv"),
        ((16, 16, 16), (33, 128), 64, "v1_flash"),
        ((16, 16, 16), (32, 127), 64, "v1_flash"),
        ((1, 8, 8), (60, 2000), 64, "v1a_split_kv"),  # blocks share the keys
        ((8, 16, 4), (9, 9), 64, "v1_flash"),
        ((64, 16, 1), (1, 40), 64, "v1a_split_kv"),  # heads of a group share a tile, and v1 would have 1024
        ((16, 16, 1), (1, 40), 64, "v1_flash"),
    ],
)
def test_attention_of_few_queries_in_float32(heads, lengths, head, rung):
    (batch, all_heads, kv_heads), (queries, keys) = heads, lengths
    q = rl.empty(batch, all_heads, queries, head, device=rl.meta("H200"))
    k, v = (rl.empty(batch, kv_heads, keys, head, device=rl.meta("H200")) for _ in "kv")
    assert first_rung("attention", lambda variant: rl.attention(q, k, v, variant=variant)) == rung


@pytest.mark.parametrize(
    ("length", "dtype", "keep", "rung"),
    [
        (513, "float32", 513, "v4_block_radix"),
        (2048, "int64", 2048, "v2_bitonic"),
        (2049, "int64", 2049, "v3_radix"),  # its items need twice the shared memory
        (4096, "float32", 4096, "v4_block_radix"),
        (4096, "bfloat16", 300, "v4_block_radix"),
        (4097, "float32", 4097, "v3_radix"),
    ],
)
def test_lines_that_a_block_sorts(length, dtype, keep, rung):
    x = rl.empty(3, length, dtype=dtype, device=rl.meta("H200"))
    assert first_rung("sort", lambda variant: rl.topk(x, keep, variant=variant)) == rung


@pytest.mark.parametrize(
    ("length", "dtype", "launches"),
    [(4096, "float32", 1), (4096, "int64", 1), (4097, "int64", 2), (8192, "float32", 1), (8193, "float32", 2)],
)
def test_few_of_a_line_are_sorted_at_once_where_a_block_keeps_it(length, dtype, launches):
    x = rl.empty(3, length, dtype=dtype, device=rl.meta("H200"))
    with rl.count() as counted:
        rl.topk(x, 256)
    assert counted.launches == launches


@pytest.mark.parametrize(
    ("shape", "dim", "rung"),
    [
        ((300, 8), 1, "v0_reference"),
        ((300, 9), 1, "v2_shared_axis"),
        ((4, 300), 0, "v0_reference"),
        ((5, 300), 0, "v2_shared_axis"),
    ],
)
def test_lines_that_a_thread_reduces(shape, dim, rung):
    x = rl.empty(*shape, device=rl.meta("H200"))
    assert first_rung("argmax", lambda variant: rl.argmax(x, dim, variant=variant)) == rung


@pytest.mark.parametrize(
    ("rows", "length", "dtype", "rung"),
    [
        (24, 50257, "bfloat16", "v3_split_rows"),
        (25, 50257, "bfloat16", "v2b_long_rows"),
        (1000, 262145, "float32", "v2b_long_rows"),
        (1000, 262145, "float64", "v3_split_rows"),
        (1000, 32768, "float16", "v2_one_pass"),
    ],
)
def test_rows_that_registers_do_not_hold(rows, length, dtype, rung):
    x = rl.empty(rows, length, dtype=dtype, device=rl.meta("H200"))
    assert first_rung("softmax", lambda variant: rl.softmax(x, variant=variant)) == rung


@pytest.mark.parametrize(
    ("rows", "length", "rung"),
    [
        (49, 15404, "v3_split_rows"),  # no rung holds the row
        (20000, 8196, "v3_split_rows"),
        (49, 8188, "v2a_any_alignment"),  # no multiple of 16 bytes
        (49, 8192, "v2_one_pass"),
        (131, 16384, "v3_split_rows"),
    ],
)
@pytest.mark.parametrize("op", ["rms_norm_backward", "layer_norm_backward"])
def test_blocks_share_rows_that_none_holds(op, rows, length, rung):
    x, w = (rl.empty(*shape, dtype="bfloat16", device=rl.meta("H200")) for shape in ((rows, length), (length,)))
    assert first_rung(op, lambda variant: getattr(rl, op)(x, x, w, 1e-6, variant=variant)) == rung


LADDERS = [name for name in SPECS if name in rl.ops()]
CASES = [(name, dtype) for name in LADDERS for dtype in SPECS[name].dtypes if dtype not in SPECS[name].composed_dtypes]


def slow_rungs_of_matmul(a, b):
    """Those that take the operands and run by name alone."""
    k, n = a.shape[-1], b.shape[-1] if b.ndim > 1 else 1
    by_default = {
        "v4_bf16_dot": _target.of("cpu").has_fast_bfloat16_dots,
        "v7_dots": k >= 48,
        "v8_small": k <= 32 and k * n <= 1024,
    }
    return [rung for rung, runs in by_default.items() if not runs]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_the_default_is_the_fastest_that_takes_the_operands(name, dtype):
    spec = SPECS[name]
    for sample in spec.samples(np.random.default_rng(0)):
        if any(isinstance(a, np.ndarray) and a.size == 0 for a in sample.args):
            continue  # nothing runs, or zeros are written
        tensors = [lay_out(a, dtype, "cpu", "contiguous") if isinstance(a, np.ndarray) else a for a in sample.args]
        operands = prepared(spec, tensors, sample)
        with rl.profile() as prof:
            results = as_tuple(spec.fn(*operands, **sample.kwargs))
        if all(result.numel() == 0 for result in results):
            continue
        slow = slow_rungs_of_matmul(*tensors[:2]) if name == "matmul" else []
        fastest = next(rung for rung in rungs_that_take(spec, dtype, sample, "meta:cpu") if rung not in slow)
        expected = next(v.kernel for v in rl.variants(name, "cpu") if v.name == fastest)
        own = expected.split("_cpu_")[0]  # others lay operands out, or fill the result
        assert {k.name for k in prof.kernels if k.name.startswith(f"{own}_cpu_")} == {expected}, sample.label
