"""Sizes whose sums and products exceed 64 bits: a ValueError, never memory that is not the tensor's."""

import numpy as np
import pytest

import rooflab as rl

MOST = 2**63 - 1


@pytest.mark.parametrize("sizes", [[2**62] * 4 + [4], [MOST, MOST, 6], [2, MOST], [5], [4, 1], [-1, 5]])
def test_parts_stay_within_the_tensor(sizes):
    with pytest.raises(ValueError, match=r"\[split\] sizes: expected (>= 0|a sum of 4)"):
        rl.ones(4).split(sizes)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, MOST])
def test_parts_of_one_size(size):
    for n in (0, 1, 4, 6):
        parts = rl.arange(n).split(size)
        assert [part.tolist() for part in parts] == [list(range(n))[i : i + size] for i in range(0, max(n, 1), size)]
        if n:
            assert len(rl.arange(n).chunk(size)) == min(-(-n // -(-n // size)), size)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rl.empty(2**40, 2**40),
        lambda: rl.empty(0, 2**40, 2**40),
        lambda: rl.ones(1).expand(2**32, 2**31),
        lambda: rl.cat([rl.empty(0, 2**62)] * 3, dim=1),
        lambda: rl.ones(1).expand(2**62),
        lambda: rl.ones(1, dtype="float16").broadcast_to((2**31, 2**31)),
        lambda: rl.cat([rl.ones(1, dtype="bool").expand(2**62)] * 2),
        lambda: rl.stack([rl.ones(1, dtype="bool").expand(2**62)] * 2),
        lambda: rl.empty(0, 2**40).repeat_interleave(2**40, dim=1),
        lambda: rl.ones(4).repeat_interleave(2**62),
        lambda: rl.eye(2**40),
    ],
)
def test_sizes_that_overflow_are_refused(make):
    with pytest.raises(ValueError, match=r"2\^63"):
        make()


def test_sizes_of_nothing_are_taken():
    assert rl.eye(0, MOST).shape == (0, MOST)
    assert rl.empty(0, 2**62).flatten().shape == (0,)
    assert rl.cat([rl.empty(0, 2**61)] * 2, dim=1).shape == (0, 2**62)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (4, 4), (2, 3, 5), (1, 7), (7, 1)])
def test_what_a_triangle_reads_is_counted_to_the_element(shape):
    x = np.ones(shape, dtype=bool)
    for diagonal in range(-8, 9):
        for cut, expected in ((rl.tril, np.tril), (rl.triu, np.triu)):
            with rl.count() as c:
                cut(rl.empty(*shape, dtype="bool", device="meta:H200"), diagonal)
            assert c.bytes_read == expected(x, diagonal).sum(), (cut, diagonal)


def test_triangles_of_any_size_are_counted_at_once():
    n = 2**30
    with rl.count() as c:
        rl.tril(rl.empty(n, n, dtype="bool", device="meta:H200"))
        rl.triu(rl.empty(n, n, dtype="bool", device="meta:H200"), 1)
    assert c.bytes_read == n * (n + 1) // 2 + n * (n - 1) // 2
    assert rl.tril(rl.empty(2**62, 0)).shape == rl.triu(rl.empty(2**62, 0), -(2**63)).shape == (2**62, 0)
    assert rl.tril(rl.empty(0, 2**62), MOST).shape == (0, 2**62)
