"""Functions that are composed of others refuse what does not fit, in one sentence."""

import pytest

import rooflab as rl


def test_bad_input_is_one_sentence():
    x, F = rl.ones(2, 3), rl.nn.functional
    wrong = {
        r"\[mm\] b: expected 2 dimensions, got \(3,\)": lambda: rl.mm(x, x[0]),
        r"\[dot\] a: expected 1 dimension, got \(2, 3\)": lambda: rl.dot(x, x),
        r"\[bmm\] expected as many matrices": lambda: rl.bmm(rl.ones(2, 3, 3), rl.ones(1, 3, 3)),
        r"\[t\] x: expected at most 2": lambda: rl.t(rl.ones(1, 1, 1)),
        r"\[flip\] dim: expected one of the 2": lambda: x.flip(2),
        r"\[flip\] dims: expected each once": lambda: x.flip(0, -2),
        r"\[roll\] expected as many shifts as dims": lambda: x.roll((1, 2), 0),
        r"\[roll\] dim: expected one": lambda: x.roll(1, 5),
        r"\[repeat\] sizes: expected at least 2": lambda: x.repeat(2),
        r"\[tile\] dims: expected numbers >= 0": lambda: x.tile(-1),
        r"\[narrow\] expected slices": lambda: x.narrow(1, 2, 2),
        r"\[movedim\] expected as many": lambda: x.movedim((0, 1), 0),
        r"\[meshgrid\] indexing": lambda: rl.meshgrid(x[0], indexing="yx"),
        r"\[meshgrid\] tensors": lambda: rl.meshgrid(x),
        r"\[diag\] x: expected one or two": lambda: rl.diag(rl.ones(1, 1, 1)),
        r"\[index_add\] source: expected \(2, 3\)": lambda: x.index_add(0, rl.tensor([0, 1]), x[:1]),
        r"\[masked_select\] mask: expected bool": lambda: x.masked_select(x),
        r"\[median\] x: expected elements": lambda: rl.ones(0).median(),
        r"\[prod\] dim: expected one": lambda: x.prod(2),
        r"\[round\] decimals: expected 0": lambda: rl.tensor([1]).round(1),
        r"\[bincount\] x: expected numbers >= 0": lambda: rl.bincount(rl.tensor([-1])),
        r"\[bincount\] expected integers": lambda: rl.bincount(x),
        r"\[glu\] x: expected an even size": lambda: F.glu(x),
        r"\[one_hot\] num_classes: expected at least 3": lambda: F.one_hot(rl.tensor([2]), 2),
        r"\[one_hot\] index: expected int64": lambda: F.one_hot(x),
        r"\[pad\] mode": lambda: F.pad(x, (1, 1), mode="reflect"),
        r"\[pad\] pad: expected two sizes": lambda: F.pad(x, (1,)),
        r"\[pad\] pad: cuts more": lambda: F.pad(x, (-2, -2)),
        r"\[mse_loss\] target: expected the shape": lambda: F.mse_loss(x, x[0]),
        r"\[mse_loss\] reduction": lambda: F.mse_loss(x, x, "average"),
        r"\[nll_loss\] expected \(N, V\)": lambda: F.nll_loss(x, rl.tensor([0])),
        r"\[layer_norm\] normalized_shape": lambda: F.layer_norm(x, (2, 3)),
        r"\[normalize\] p: expected 2": lambda: F.normalize(x, p=1),
        r"dropout_p: expected 0": lambda: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.1),
        r"is_causal: expected L_q = L_kv": lambda: F.scaled_dot_product_attention(
            x[None], rl.ones(1, 5, 3), rl.ones(1, 5, 3), is_causal=True
        ),
        r"expected H_kv = H": lambda: F.scaled_dot_product_attention(rl.ones(1, 4, 2, 3), *[rl.ones(1, 2, 2, 3)] * 2),
    }
    for says, call in wrong.items():
        with pytest.raises(ValueError, match=says):
            call()
