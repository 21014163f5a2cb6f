"""Joining tensors: how many launches it takes, and pieces of every form."""

import numpy as np
import pytest

import rooflab as rl

DTYPES = ("bool", "float16", "int32", "float64")  # of 1, 2, 4 and 8 bytes


def joined(parts, dim, dtype, device, variant=""):
    """The result as NumPy has it, and the number of launches."""
    own = [rl.tensor(x, dtype=dtype, device=device) for x in parts]
    with rl.count() as c:
        y = rl.cat(own, dim, variant=variant)
    return y.cpu().numpy(), c.launches


def numbers(shape, dtype, start=0):
    x = (np.arange(np.prod(shape)).reshape(shape) + start) % 509
    return (x % 2 if dtype == "bool" else x).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_pieces_of_every_width(dim, dtype, device, instruction_sets):
    for widths in ((1, 1), (1, 2, 3), (16, 16), (0, 5, 0, 8), (7,) * 9, (33, 4, 70)):
        shapes = [tuple(width if d == dim else size for d, size in enumerate((3, 10, 5))) for width in widths]
        parts = [numbers(shape, dtype, i) for i, shape in enumerate(shapes)]
        for isa in instruction_sets() if device == "cpu" else ("",):
            y, launches = joined(parts, dim, dtype, device)
            assert np.array_equal(y, np.concatenate(parts, dim)), f"{widths} {isa}"
            assert launches == 1


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 70001), (2, 40001), (300, 257), (9000, 9), (1, 1)])
def test_rows_that_threads_share(shape, dtype, device, instruction_sets):
    parts = [numbers(shape, dtype, start) for start in (0, 7, 1)]
    for _ in instruction_sets() if device == "cpu" else ("",):
        assert np.array_equal(joined(parts, 1, dtype, device)[0], np.concatenate(parts, 1))


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 70])
def test_a_launch_joins_up_to_32_tensors(count, device):
    parts = [numbers((4, 1 + i % 3), "float32", i) for i in range(count)]
    parts.insert(count // 2, np.zeros((4, 0), "float32"))  # takes no place
    y, launches = joined(parts, 1, "float32", device)
    assert np.array_equal(y, np.concatenate(parts, 1))
    assert launches == -(-count // 32)
    y, launches = joined(parts, 1, "float32", device, "v0_composed")
    assert np.array_equal(y, np.concatenate(parts, 1))
    assert launches == count


def test_views_are_joined_where_they_lie(device):
    x = numbers((6, 40, 3), "float32")
    own = rl.tensor(x, device=device)
    row = own[:1, 5:7].expand(6, 2, 3)
    with rl.count() as c:
        y = rl.cat([own[:, 5:9], row, own[:, 30:], own[:, :0]], 1)
    assert np.array_equal(
        y.cpu().numpy(), np.concatenate([x[:, 5:9], np.broadcast_to(x[:1, 5:7], (6, 2, 3)), x[:, 30:]], 1)
    )
    assert c.launches == 1
    assert c.bytes_written == y.nbytes
    x = numbers((6, 41), "float32")  # a row of pieces of 16 bytes, and rows that begin at others
    own = rl.tensor(x, device=device)
    assert np.array_equal(rl.cat([own[:, :4], own[:, 4:8]], 1).cpu().numpy(), x[:, :8])
    assert np.array_equal(rl.cat([own[:, 7:8], own[:, 3:4]], 1).cpu().numpy(), x[:, [7, 3]])


def test_columns_and_other_dtypes_are_copied_one_by_one(device):
    x = numbers((6, 40), "float32")
    own = rl.tensor(x, device=device)
    for parts, right in (
        ([own.T, own.T], np.concatenate([x.T, x.T])),
        ([own, own.to("float16")], np.concatenate([x, x])),
        ([own.to("int32"), own, own[:, ::2].contiguous().repeat_interleave(2, 1)], np.concatenate([x, x, x])),
    ):
        right[-6:] = parts[-1].to("float32").cpu().numpy()[-6:]
        with rl.count() as c:
            y = rl.cat(parts)
        assert np.array_equal(y.cpu().numpy(), right)
        assert c.launches == len(parts)
        with pytest.raises(ValueError, match="v1_pieces"):
            rl.cat(parts, variant="v1_pieces")


@pytest.mark.parametrize("rows", [1, 40])
def test_what_the_caches_cannot_hold(rows, device):
    wide = int(2.5e6) // rows + 1
    parts = [np.random.default_rng(i).standard_normal((rows, wide + i)).astype("float32") for i in range(8)]
    assert np.array_equal(joined(parts, 1, "float32", device)[0], np.concatenate(parts, 1))
