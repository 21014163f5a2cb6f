"""Results lie in memory as without rl.compile, and what a function does with its strides is what it does without."""

import pytest
from compiler.functions import as_list, check_same, counted

import rooflab as rl
from rooflab.testing import assert_close, to_float64

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns


def flattened(x):
    y = x.T * 2
    flat = y.flatten()  # a copy, because y is turned
    flat += 1
    return y, flat


def written_through_a_view(x):
    y = x.T * 2
    y.T.view(-1)[1:4] += 1
    return y


CASES = {
    "flattened": flattened,
    "written through a view": written_through_a_view,
    "written turned": lambda x: (x.T * 1).__iadd__(x.T),
    "one": lambda x: x.T * 2,
    "of several": lambda x: rl.where(x.T > 0, x.T, rl.exp(x.T)) + x.T,
    "broadcast": lambda x: x.T + x[:, 0],
    "a cast": lambda x: x.T.to("float16") * 3,
    "gelu": lambda x: rl.gelu(x.T) + 1,
    "both ways": lambda x: (x.T * 2, x + 1, x.T * (x + 1).T),
    "mixed": lambda x: ((x.T + 1) * x.reshape(x.shape[::-1]), x.T * 3),
    "read in both ways": lambda x: [y := x.T * 2, y * x.reshape(x.shape[::-1]), y + 1],
    "in four dimensions": lambda x: x.reshape(2, 2, 3, -1).permute(3, 0, 2, 1) * 2 + x.sum(),
    "with a size of 1": lambda x: x.T[:, None] * 2,
    "a part": lambda x: x.T[1:] * 2,
    "reversed": lambda x: x[::-1].T * 2,
    "strides": lambda x: (x * 1, (x.T * 2).stride(), (x.T * 2).is_contiguous(), (x * 2).is_contiguous()),
}


@pytest.mark.parametrize("shape", [(4, 6), (6, 6)])
@pytest.mark.parametrize("case", CASES)
def test_results_lie_as_without_compiling(case, shape, device):
    function = CASES[case]
    x = rl.randn(*shape, device=device)
    expected, found = as_list(function(x)), as_list(rl.compile(function)(x))
    for y, z in zip(found, expected, strict=True):
        if isinstance(z, rl.Tensor):
            assert y.stride() == z.stride()
            assert_close(y, to_float64(z), rtol=1e-3 if z.dtype == rl.float16 else 1e-5, atol=1e-6)
        else:
            assert y == z


@pytest.mark.parametrize("case", ["one", "of several", "broadcast", "gelu", "both ways", "mixed"])
def test_gradients_lie_as_without_compiling(case):
    function = CASES[case]
    x, y = (rl.ones(4, 6).cumsum(1).requires_grad_() for _ in range(2))
    for leaf, results in ((x, function(x)), (y, rl.compile(function)(y))):
        sum((z * z).sum() for z in as_list(results)).backward()
        assert leaf.grad is not None
    assert y.grad.stride() == x.grad.stride()
    assert_close(y.grad, to_float64(x.grad), rtol=1e-5)


def test_what_no_view_shows_raises_as_without_compiling():
    x = rl.randn(4, 6)
    for function in (lambda x: (x.T * 2).view(-1), rl.compile(lambda x: (x.T * 2).view(-1))):
        with pytest.raises(ValueError, match=r"\[view\] shape: \(-1,\) needs a copy"):
            function(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: rl.exp(x.T * 2) + 1,
        lambda x, w: rl.exp(x.T * 2) * w,  # in order, and so is what nobody else reads
        lambda x, w: rl.gelu(x.T + 1) * w,
        lambda x, w: (x.T * 2).T + x,
        lambda x, w: (x.T * w[0] + 1).sum(-1),
    ],
)
def test_turned_calls_share_a_launch(function):
    for shape in ((128, 256), (256, 256)):
        x, w = rl.randn(*shape), rl.randn(*shape[::-1])
        compiled = rl.compile(function)
        compiled(x, w)
        assert counted(compiled, x, w)[0].launches == 1
        check_same(function, x, w, atol=1e-4)
