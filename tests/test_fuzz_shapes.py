"""Drawn changes of shape, one after the other, against NumPy's. See tests/test_fuzz.py for how calls are drawn."""

import numpy as np
from drawing import MOST, agree, axis, between, drawn, drawn_view, one_of, shape
from hypothesis import strategies as st

import rooflab as rl
from rooflab.specs import FLOATING, INTEGER


def reshaped(draw, x, a):
    sizes, rest = [], a.size
    while rest > 1 and between(draw, 0, 2):
        sizes.append(one_of(draw, *(d for d in (1, 2, 3, 5, 8, rest) if rest % d == 0)))
        rest //= sizes[-1]
    sizes.append(rest)
    if rest and one_of(draw, True, False):
        sizes[between(draw, 0, len(sizes) - 1)] = -1
    return x.reshape(*sizes), a.reshape(sizes)


def permuted(draw, x, a):
    order = draw(st.permutations(range(a.ndim)))
    return (x.permute(*order), a.transpose(order)) if order else (x, a)


def swapped(draw, x, a):
    if a.ndim == 0:
        return x, a
    first, second = axis(draw, a.ndim), axis(draw, a.ndim)
    return x.transpose(first, second), a.swapaxes(first, second)


def expanded(draw, x, a):
    sizes = (*((2,) if a.ndim < 6 else ()), *(one_of(draw, 1, 3) if size == 1 else size for size in a.shape))
    return (x.expand(*sizes), np.broadcast_to(a, sizes)) if np.prod(sizes) <= MOST else (x, a)


def squeezed(draw, x, a):
    ones = [d for d, size in enumerate(a.shape) if size == 1]
    if ones and one_of(draw, True, False):
        return x.squeeze(ones[0]), a.squeeze(ones[0])
    return x.squeeze(), a.squeeze()


def unsqueezed(draw, x, a):
    dim = between(draw, -a.ndim - 1, a.ndim) if a.ndim < 7 else 0
    return (x.unsqueeze(dim), np.expand_dims(a, dim)) if a.ndim < 7 else (x, a)


def flattened(draw, x, a):
    if a.ndim == 0:
        return x.flatten(), a.reshape(-1)
    first = between(draw, 0, a.ndim - 1)
    last = between(draw, first, a.ndim - 1)
    count = int(np.prod(a.shape[first : last + 1]))
    return x.flatten(first, last), a.reshape(*a.shape[:first], count, *a.shape[last + 1 :])


def split(draw, x, a):
    if a.ndim == 0:
        return x, a
    dim, step = axis(draw, a.ndim), between(draw, 1, 40)
    parts = np.split(a, range(step, a.shape[dim], step), dim)
    place = between(draw, 0, len(parts) - 1)
    assert len(x.split(step, dim)) == len(parts)
    return x.split(step, dim)[place], parts[place]


def stacked(draw, x, a):
    if a.ndim > 6 or 2 * a.size > MOST:
        return x, a
    dim = between(draw, -a.ndim - 1, a.ndim)
    return rl.stack([x, x], dim), np.stack([a, a], dim)


def repeated(draw, x, a):
    if a.ndim == 0 or 3 * a.size > MOST:
        return x, a
    dim, times = axis(draw, a.ndim), between(draw, 0, 3)
    return rl.repeat_interleave(x, times, dim), np.repeat(a, times, dim)


def copied(draw, x, a):
    return (x.clone(), a) if one_of(draw, True, False) else (x.contiguous(), a)


CHANGES = (reshaped, permuted, swapped, expanded, squeezed, unsqueezed, flattened, split, stacked, repeated, copied)


@drawn
def test_changes_of_shape(draw):
    dtype = one_of(draw, *FLOATING, *INTEGER, "bool")
    view = drawn_view(draw, shape(draw), dtype)
    x, a = view.x, view.a
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4)):
        x, a = change(draw, x, a)
        agree(x, a, dtype, change.__name__)
