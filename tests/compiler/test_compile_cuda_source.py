"""The CUDA C++ that chains become: it compiles, for every op and dtype, and computes what the functors compute."""

import re

import pytest
from compiler.functions import chains, compiled

import rooflab as rl

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns

DTYPES = {"float64": 2, "float32": 4, "float16": 8, "bfloat16": 8, "int64": 2, "int32": 4, "bool": 16}


MOVES = {"where", "cast", "copy", "cat"}
ELEMENTWISE = [op for op in rl.ops() if rl.variants(op, "cpu")[0].kernel.startswith("elementwise_") and op not in MOVES]


def each_of(ops, x):
    """The ops that take the dtype, one after the other, then those that join their chains; and the names of them."""
    taken, y = [], x
    left_out = () if x.dtype.is_floating_point else ("floor_divide", "remainder")  # they look for zeros themselves
    if x.dtype == "bool":  # computed in int32, so each is four instructions
        left_out += ("add", "mul", "maximum", "minimum")
    for op in [op for op in ops if op not in left_out]:
        for operands in ((y,), (y, x), (y, 0, 1)):
            try:
                made = getattr(rl, op)(*operands)
            except (TypeError, ValueError):  # another number of operands, another dtype
                continue
            if made.dtype not in (x.dtype, "bool"):  # the operand would be converted first
                continue
            y = rl.where(made, x, y) if str(made.dtype) == "bool" else made
            taken.append(op)
    for dtype in DTYPES:
        y = y.to(dtype)
    return y.to(x.dtype), taken


@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=[pytest.mark.slow] * (d not in ("bfloat16", "bool"))) for d in DTYPES]
)
def test_every_op_compiles(dtype):
    x = rl.ones(4, 5, device=rl.meta("H200")).to(dtype)
    every = [*ELEMENTWISE, "gelu"]
    halves = every[::2], every[1::2]  # of which each fits a chain
    taken = [op for half in halves for op in each_of(half, x)[1]]
    assert len(taken) >= (9 if dtype == "bool" else 15)
    assert "clamp" in taken or dtype == "bool"
    for half in halves:
        for width in (1, DTYPES[dtype]):
            (source,) = chains(lambda x, half=half: each_of(half, x)[0], x, width=width)
            assert ".entry fused_cuda_v1_nvrtc_kernel" in compiled(source)


def test_16_bytes_an_access():
    x = rl.ones(64, dtype="bfloat16", device=rl.meta("H200"))
    (source,) = chains(lambda x: x * 2 + 1, x, width=8)
    ptx = compiled(source)
    assert re.search(r"ld\.global(\.\w+)*\.v4", ptx) and re.search(r"st\.global(\.\w+)*\.v4", ptx)
    assert "cvt.rn.bf16.f32" in ptx


def test_only_what_lies_between_packs_is_read_one_by_one():
    x, w = (rl.ones(*shape, dtype="bfloat16", device=rl.meta("H200")) for shape in ((8, 33), (33,)))
    (source,) = chains(lambda x, w: (x + w) * x, x, w, width=8, contiguous=0b01, loose=0b10)
    ptx = compiled(source)
    loads = re.findall(r"ld\.global(?:\.\w+)*?\.(v4|[bu]16)", ptx)
    assert loads.count("v4") == 1 and loads.count("b16") + loads.count("u16") == 8 + 8  # of w, and of x at the end
    (source,) = chains(lambda x, w: (x + w) * x, x, x, width=8, contiguous=0b11)
    assert "rem." not in compiled(source) and "div." not in compiled(source)  # nor does it need to know the row


def softmax(x):
    exponentials = rl.exp(x - x.amax(-1, keepdim=True))
    return exponentials / exponentials.sum(-1, keepdim=True)


@pytest.mark.parametrize(("dtype", "width", "packs"), [("float32", 1, 8), ("bfloat16", 1, 8), ("bfloat16", 8, 4)])
def test_no_branch_lies_between_the_elements_of_a_row(dtype, width, packs):
    x = rl.ones(64, 1001, dtype=dtype, device=rl.meta("H200"))
    (source,) = chains(softmax, x, width=width, threads=128, packs=packs)
    blocks = re.split(r"\n\$L__BB\w+:|\n\s+(?:@%p\d+ )?bra", compiled(source))
    assert max(block.count("ex2.approx") for block in blocks) >= width * packs


def test_only_the_last_packs_of_a_row_ask_whether_they_are_there():
    x = rl.ones(64, 1001, dtype="bfloat16", device=rl.meta("H200"))
    tests = [
        len(re.findall(r"setp\.\w+\.s32", compiled(source)))
        for whole in (0, 7, 8)
        for source in chains(softmax, x, width=1, threads=128, packs=8, whole=whole)
    ]
    assert tests[0] - tests[1] >= 2 * 6 and tests[1] > tests[2]


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_120"])
def test_other_architectures(architecture):
    x = rl.ones(64, dtype="bfloat16", device=rl.meta("H200"))
    (source,) = chains(lambda x: rl.gelu(x * 2) + 1, x, width=8)
    compiled(source, architecture)


def test_the_source_reads_as_the_chain():
    (source,) = chains(lambda x: rl.where(x > 0, x * 2, x), rl.ones(8, device=rl.meta("H200")), width=4)
    lines = [line.strip() for line in source.splitlines()]
    body = lines[lines.index("for (int i = 0; i < kWidth; ++i) {") + 1 :]
    assert body[:4] == [
        "const auto v0 = widen(operand0[i]);",
        "const compute_t<bool> v3 = holds(outcomes(kGt), v0, v1);",
        "const compute_t<float> v4 = evaluate<kMul>(v0, v2);",
        "const compute_t<float> v5 = v3 ? v4 : v0;",
    ]


def test_what_an_extreme_is_made_of_is_rounded_step_by_step():
    """Otherwise a pass may take a fused multiply-add where another does not, and no element equals the largest."""
    x, w = (rl.empty(256, 40000, device=rl.meta("H200")) for _ in "xw")

    def function(x, w):
        shifted = x * w - 1.0
        return rl.where(shifted == rl.amax(shifted, dim=-1, keepdim=True), x * w + 1.0, 0.0)

    (source,) = chains(function, x, w, width=4, threads=512, packs=4, keeps=False)
    rounded = re.findall(r"v(\d+) = rounded_(product|sum)\(", source)
    assert len(set(rounded)) == 2 and len(rounded) == 2 * 4  # in two passes, whose last parts have code of their own
    assert source.count("evaluate<kAdd>(") == 2  # what is no part of it


def test_squares_and_cubes_hold_no_code_for_other_powers():
    x = rl.empty(64, device=rl.meta("H200"))
    for exponent, products in ((2, 1), (3, 2), (2.5, 0), (1, 0)):
        (source,) = chains(lambda x: x**exponent, x, width=4)  # noqa: B023
        assert source.count("evaluate<kMul>(") == products and ("evaluate<kPow>(" in source) == (products == 0)
