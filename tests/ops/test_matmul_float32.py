"""matmul_float32: 16-bit operands against the float64 reference, what it counts, and what it refuses."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import accumulator_roundoff, unit_roundoff
from rooflab.testing import assert_close

SHAPES = [(1, 1, 1), (5, 9, 7), (64, 64, 64), (97, 263, 101), (33, 2100, 35), (40, 1, 8), (3, 0, 4), (0, 4, 3)]


def operand(rng, rows, columns, dtype, device, is_transposed):
    x = rng.standard_normal((columns, rows) if is_transposed else (rows, columns)).astype(np.float32)
    x = rl.tensor(x, device=device).to(dtype)
    return x.transpose(0, 1) if is_transposed else x


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_matches_the_reference(m, k, n, dtype, device):
    rng = np.random.default_rng(m + k + n)
    for layout in range(4):
        a = operand(rng, m, k, dtype, device, layout & 1)
        b = operand(rng, k, n, dtype, device, layout & 2)
        c = rl.matmul_float32(a, b)
        assert (c.dtype, c.shape) == ("float32", (m, n))
        wide = [x.float().cpu().numpy().astype(np.float64) for x in (a, b)]
        magnitudes = np.abs(wide[0]) @ np.abs(wide[1])
        rounding = "float32" if device != "cpu" and k else dtype  # on the CPU it is rounded to 16 bits on the way
        atol = 2 * (k + 4) * accumulator_roundoff(dtype) * magnitudes.max(initial=0)
        assert_close(c, wide[0] @ wide[1], rtol=2 * unit_roundoff(rounding), atol=atol)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_on_a_gpu_it_is_one_launch_that_writes_float32(dtype):
    a, b = (rl.empty(*shape, dtype=dtype, device="meta:H200") for shape in ((6, 5), (5, 7)))
    with rl.count() as c:
        rl.matmul_float32(a, b)
    assert (c.ops, c.launches, c.macs, c.flops) == (1, 1, 6 * 5 * 7, 2 * 6 * 5 * 7)
    assert (c.bytes_read, c.bytes_written, c.peak_bytes) == (2 * (6 * 5 + 5 * 7), 4 * 6 * 7, 4 * 6 * 7)
    with rl.count() as composed:
        rl.matmul_float32(a, b, variant="v0_composed")
    assert (composed.ops, composed.launches, composed.macs) == (1, 2, c.macs)


A = rl.ones(2, 3, dtype="bfloat16")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rl.matmul_float32(A, A), r"expected \(M, K\) and \(K, N\), got \(2, 3\) and \(2, 3\)"),
        (lambda: rl.matmul_float32(A[None], A), r"expected \(M, K\) and \(K, N\), got \(1, 2, 3\)"),
        (lambda: rl.matmul_float32(A.float(), A.float()), "a: expected float16 or bfloat16, got float32"),
        (lambda: rl.matmul_float32(A, A.half().transpose(0, 1)), "bfloat16 and float16"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=rf"\[matmul_float32\].*{says}"):
        call()
