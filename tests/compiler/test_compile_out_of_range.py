"""Compiled functions refuse a number out of range also where nobody reads the result of the op that finds it."""

import pytest

import rooflab as rl

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns


def divisors(function):
    return lambda x, i: function(x.to("int64"), i)


CASES = {  # each takes x of shape (2, 3), and numbers that are fine or not
    "gather": (lambda x, i: x.gather(1, i.view(2, 1)), [0, 2], [0, 3], ValueError),
    "index_select": (lambda x, i: x.index_select(1, i), [0, 2], [-1, 0], ValueError),
    "embedding": (lambda x, i: rl.nn.functional.embedding(i, x), [0, 1], [0, 2], ValueError),
    "index": (lambda x, i: x[i], [0, -1], [0, 2], IndexError),
    "scatter": (lambda x, i: x.scatter(1, i.view(2, 1), 1.0), [0, 2], [0, 3], ValueError),
    "scatter_add": (lambda x, i: rl.scatter_add(x, 1, i.view(2, 1), x[:, :1]), [0, 2], [0, 3], ValueError),
    "index_add": (lambda x, i: x.index_add(0, i, x), [0, 1], [0, 2], ValueError),
    "cross_entropy": (lambda x, i: rl.cross_entropy(x, i), [0, 2], [0, 7], ValueError),
    "its gradient": (lambda x, i: rl.cross_entropy_backward(x[0, 0], x, i, x[:, 0]), [0, 2], [0, 7], ValueError),
    "nll_loss": (lambda x, i: rl.nn.functional.nll_loss(x, i), [0, 2], [0, 7], ValueError),
}
DIVISIONS = {
    "//": divisors(lambda x, i: x // i.view(2, 1)),
    "%": divisors(lambda x, i: x % i.view(2, 1)),
    "a number // them": lambda x, i: 7 // i,
    "turned": divisors(lambda x, i: x.T % i),
}


def unread(function):
    return lambda x, i: (function(x, i), x + 1)[1]


@pytest.mark.parametrize("case", CASES)
def test_an_index_that_nobody_reads_the_result_of(case, device, refused):
    function, fine, bad, error = CASES[case]
    x = rl.arange(6, device=device).float().reshape(2, 3)
    compiled = rl.compile(unread(function))
    assert compiled(x, rl.tensor(fine, device=device)).tolist() == (x + 1).tolist()
    for run in (unread(function), compiled):
        with refused(error, "got|out of bounds"):
            run(x, rl.tensor(bad, device=device))


@pytest.mark.parametrize("case", DIVISIONS)
def test_a_divisor_of_zero(case):
    x = rl.arange(6).float().reshape(2, 3)
    compiled = rl.compile(unread(DIVISIONS[case]))
    assert compiled(x, rl.tensor([2, -1])).tolist() == (x + 1).tolist()
    with pytest.raises(ZeroDivisionError, match="an integer divided by zero"):
        compiled(x, rl.tensor([2, 0]))


def test_a_divisor_that_cannot_be_zero_is_left_out():
    """A number, which was looked at while the function was recorded, and floats."""
    x = rl.arange(6).float()
    compiled = rl.compile(lambda x: (x.to("int64") // 2, x % 0, x // x, x + 1)[-1])
    compiled(x)
    with rl.count() as c:
        compiled(x)
    assert c.launches == 1


def test_backward_looks_at_the_classes_without_the_loss():
    logits = rl.randn(4, 6).requires_grad_()
    loss = rl.compile(lambda x, i: rl.cross_entropy(x * 2, i))(logits, rl.tensor([0, 1, 2, 5]))
    with rl.count() as c:
        loss.backward()
    assert "cross_entropy" not in c.by_op and c.by_op["cross_entropy_backward"].launches == 1
