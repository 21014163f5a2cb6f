"""Sizes beyond 32 bits: on real memory where little of it is touched, else on devices without memory."""

import pytest

import rooflab as rl
from rooflab.units import human

MANY = 2**31 + 77


def test_offsets_within_a_kernel_have_64_bits(device):
    """Elements of a tensor that are more than 2^31 apart; nothing else of it is touched."""
    size, room = 2 * (2**31 + 100), rl.memory.available(device)
    if room < size:
        pytest.skip(f"needs {human(size, 'B')} of {device} memory, {human(room, 'B')} are available")
    x = rl.empty(2, size // 2, dtype="bool", device=device)
    ends = x[:, :: 2**31 + 99]  # its four corners
    ends.fill_(False)
    ends[1] = True
    assert ends.tolist() == [[False, False], [True, True]]
    assert ends.clone().tolist() == [[False, False], [True, True]]
    assert ends.T.clone().tolist() == [[False, True], [False, True]]
    assert rl.eq(ends, ends.clone()).sum().item() == 4
    assert (ends.sum(dim=0).tolist(), ends.amax(dim=1).tolist()) == ([1, 1], [False, True])
    assert (x[1, -1].item(), x[0, -1].item()) == (True, False)
    x[1, -70:] = False
    assert (x[1, -1].item(), x[1, 0].item()) == (False, True)


def test_expanded_dimensions_count_in_64_bits():
    x = rl.ones(1, dtype="int32").expand(MANY)
    assert (x.numel(), x.shape) == (MANY, (MANY,))
    assert x[-1].item() == 1


@pytest.mark.parametrize("machine", ["cpu", "H200"])
def test_costs_of_large_tensors_are_exact(machine):
    n = 3 * 2**30
    x = rl.empty(3, 2**30, dtype="float32", device=rl.meta(machine))
    with rl.count() as c:
        y = rl.exp(x)
        rl.sum(y, dim=0)
        rl.softmax(x)
    assert (y.numel(), y.nbytes, y.strides) == (n, 4 * n, (2**30, 1))
    assert c.by_op["exp"].flops == n and c.by_op["sum"].bytes_read == 4 * n and c.by_op["softmax"].flops == 5 * n
    assert rl.empty(2**20, 2**20, device=rl.meta(machine)).reshape(-1).shape == (2**40,)


def test_rungs_that_count_in_32_bits_refuse_more():
    """Attention counts rows and tiles, products count rows and columns, in 32 bits."""
    q = rl.empty(1, 2**28, 16, 8, dtype="bfloat16", device=rl.meta("H200"))
    rl.attention(q[:, : 2**25], q[:, : 2**25], q[:, : 2**25], variant="v1_flash")
    a, b = (rl.empty(*shape, dtype="bfloat16", device=rl.meta("H200")) for shape in ((2**31, 8), (8, 8)))
    rl.matmul(a[: 2**30], b, variant="v4_tensor_core")
    for op, operands, variant in ((rl.attention, (q, q, q), "v1_flash"), (rl.matmul, (a, b), "v4_tensor_core")):
        op(*operands)  # others take it
        with pytest.raises(ValueError, match=f"{variant} does not accept these operands"):
            op(*operands, variant=variant)
