"""set_float32_matmul_precision: which products it changes, and that their errors stay those of float32."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close


@pytest.fixture(params=["high", "medium"])
def precision(request):
    rl.set_float32_matmul_precision(request.param)
    yield request.param
    rl.set_float32_matmul_precision("highest")


def launches(m, n, k, *, batch=(), dtype="float32", device="meta:H200"):
    a, b = rl.empty(*batch, m, k, dtype=dtype, device=device), rl.empty(k, n, dtype=dtype, device=device)
    with rl.count() as c:
        rl.matmul(a, b)
    return c.launches, c.peak_bytes - 4 * m * n  # and scratch, of float32


def test_it_is_read_back(precision):
    assert rl.get_float32_matmul_precision() == precision


def test_large_products_of_float32_are_split(precision):
    assert launches(1024, 1024, 1024) == (3, 6 * 2 * 1024 * 1024)  # three parts of 2 bytes of each element
    assert launches(64, 1024, 1024, batch=(16,))[0] == 3  # 1024 rows
    assert launches(256, 3072, 700)[0] == 3
    assert launches(4096, 4096, 64)[0] == 3


def test_the_rest_is_as_before(precision):
    assert launches(255, 4096, 4096)[0] == 1  # too few rows, columns, elements, multiplications
    assert launches(4096, 255, 4096)[0] == 1
    assert launches(640, 640, 8192)[0] == 1
    assert launches(1024, 1024, 511)[0] == 1
    assert launches(1024, 1024, 1024, dtype="float64")[0] == 1
    assert launches(1024, 1024, 1024, dtype="bfloat16")[0] == 1
    assert launches(1024, 1024, 1024, device="meta:A100 SXM 80GB")[0] == 1
    assert launches(1024, 1024, 1024, device="meta:cpu")[0] == 1


def test_at_first_nothing_is_split():
    assert rl.get_float32_matmul_precision() == "highest"
    assert launches(1024, 1024, 1024) == (1, 0)


def test_a_bias_is_added_after_a_split_product(precision):
    x, w = rl.empty(1024, 1024, device="meta:H200"), rl.empty(1024, device="meta:H200")
    with rl.count() as c:
        rl.linear(x, x, w)
    assert {op: one.launches for op, one in c.by_op.items()} == {"matmul": 3, "add": 1}
    with rl.count() as c:
        rl.linear(x[:8], x[:8], w[:8])
    assert {op: one.launches for op, one in c.by_op.items()} == {"matmul_bias": 1}


def test_what_is_none_of_the_three():
    says = r"\[set_float32_matmul_precision\] precision: expected highest, high or medium, got \"tf32\""
    with pytest.raises(ValueError, match=says):
        rl.set_float32_matmul_precision("tf32")
    assert rl.get_float32_matmul_precision() == "highest"


@pytest.mark.gpu
def test_errors_are_those_of_float32(precision):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((1000, 1100), (1100, 900)))
    x, w = rl.tensor(a, device="cuda", requires_grad=True), rl.tensor(b, device="cuda", requires_grad=True)
    y = x @ w
    dy = rng.standard_normal(y.shape).astype(np.float32)
    with rl.profile() as prof:
        y.backward(rl.tensor(dy, device="cuda"))
    assert sum("split_bf16" in kernel.name for kernel in prof.kernels) == 6  # both gradients too
    a, b, dy = (t.astype(np.float64) for t in (a, b, dy))
    for found, (left, right) in ((y, (a, b)), (x.grad, (dy, b.T)), (w.grad, (a.T, dy))):
        bound = 8 * unit_roundoff("float32") * np.sqrt(left.shape[1]) * (np.abs(left) @ np.abs(right)).max()
        assert_close(found, left @ right, rtol=0, atol=bound)
