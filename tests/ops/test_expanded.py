"""Views whose elements share memory: nothing writes them, and what is read of them is counted as it is read."""

import numpy as np
import pytest

import rooflab as rl


def expanded(device="cpu"):
    return rl.zeros(3, device=device).expand(2, 3)


def put(x, index, value):
    x[index] = value


def iadd(x, y):
    x += y


WRITES = {
    "in place": lambda x: iadd(x, 1),
    "add_": lambda x: x.add_(rl.ones(3, device=x.device)),
    "fill_": lambda x: x.fill_(5),
    "zero_": lambda x: x.zero_(),
    "copy_": lambda x: x.copy_(rl.ones(2, 3, device=x.device)),
    "a row": lambda x: put(x, 0, 5),
    "a row of a tensor": lambda x: put(x, 0, rl.ones(3, device=x.device)),
    "one element": lambda x: put(x, (0, 1), 5),
    "a column": lambda x: put(x, (slice(None), 1), 5),
    "all": lambda x: put(x, ..., 5),
    "rows by a list": lambda x: put(x, [0, 1], 5),
    "by a mask": lambda x: put(x, rl.tensor([True, False]), rl.ones(3, device=x.device)),
    "adamw": lambda x: rl.adamw([x], *([rl.ones(2, 3, device=x.device)] for _ in range(3)), step=1),
    "a moment": lambda x: rl.adamw(*([rl.ones(2, 3, device=x.device)] for _ in range(3)), [x], step=1),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_an_expanded_tensor_is_refused(name, device):
    x = expanded(device)
    with pytest.raises(ValueError, match=r"^\[\w+\] destination: an expanded tensor"):
        WRITES[name](x)
    assert x.tolist() == [[0.0] * 3] * 2


def test_arrays_whose_elements_share_memory_are_refused():
    base = np.zeros(6, dtype=np.float32)
    for strides in ((0, 4), (4, 4), (8, 4)):  # a broadcast, and windows that slide by one and by two
        x = rl.from_dlpack(np.lib.stride_tricks.as_strided(base, (2, 3), strides))
        for write in (lambda x: put(x, 0, 5), lambda x: iadd(x, 1), lambda x: x.fill_(1)):
            with pytest.raises(ValueError, match="destination: an expanded tensor"):
                write(x)
    assert (base == 0).all()


def test_views_whose_elements_are_apart_are_written(device):
    x = rl.zeros(4, 6, device=device)
    views = [x.T, x[::2, 1::3], x[:, 2].unsqueeze(0).expand(1, 4), x.reshape(2, 2, 6).permute(2, 0, 1), x[1:1]]
    for view in views:
        view += 1
        view[...] = view + 1
    assert x.tolist()[:2] == [[4.0, 6.0, 6.0, 4.0, 6.0, 4.0], [4.0, 4.0, 6.0, 4.0, 4.0, 4.0]]
    single = rl.zeros(3, device=device).unsqueeze(0).expand(1, 3)
    single[0] = 5
    assert single.tolist() == [[5.0] * 3]


# x has 4 distinct numbers and 4000 in all. Kernels of these ops need other strides than x has.
COPIED = {
    "sum": (lambda x: rl.sum(x), 1),
    "mean": (lambda x: rl.mean(x), 1),
    "amax": (lambda x: rl.amax(x), 1),
    "softmax": (lambda x: rl.softmax(x, 0), 4000),
    "rms_norm": (lambda x: rl.rms_norm(x.T), 4000),
    "layer_norm": (lambda x: rl.layer_norm(x.T), 4000),
}


@pytest.mark.parametrize("name", COPIED)
def test_a_copy_of_an_expanded_operand_is_read_whole(name, device):
    call, outputs = COPIED[name]
    x = rl.randn(1, 4, device=device).expand(1000, 4)
    with rl.count() as c:
        call(x)
    works = {op: (work.launches, work.bytes_read, work.bytes_written) for op, work in c.by_op.items()}
    assert works == {"copy": (1, 4 * 4, 4 * 4000), name: (1, 4 * 4000, 4 * outputs)}
    assert (c.ops, c.bytes_read) == (1, 4 * 4 + 4 * 4000)


def test_an_expanded_operand_that_is_read_where_it_lies_counts_once(device):
    x = rl.randn(1, 4, device=device).expand(1000, 4)
    for call in (lambda: rl.softmax(x), lambda: rl.sum(x, 0), lambda: rl.rms_norm(x), lambda: rl.cumsum(x, 0)):
        with rl.count() as c:
            call()
        assert (c.launches, c.bytes_read) == (1, 16)


def test_bytes_that_operands_share_count_once():
    x = rl.randn(6000)
    parts = {
        6000: x.split(1),
        4500: [x[::2], x[1::4], x[1::4]],
        4000: [x[:3500], x[10:20], x[3000:4000]],
        3000: [x[::2], x[::2]],
        1: [x[:1]] * 6000,
    }
    for elements, tensors in parts.items():
        with rl.count() as c:
            rl.cat(list(tensors))
        assert c.bytes_read == 4 * elements


def test_an_array_that_shares_expanded_memory_is_read_only():
    x = rl.zeros(3).expand(2, 3)
    for array in (x.numpy(), np.asarray(x)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    assert x.tolist() == [[0.0] * 3] * 2
    rl.zeros(1, 3).expand(1, 3).numpy()[0] = 5  # holds each element once


def test_an_expanded_operand_without_elements_reads_nothing(device):
    x = rl.ones(1, device=device).expand(0)
    with rl.count() as c:
        total = rl.sum(x)
    assert c.bytes_read == 0 and total.item() == 0
