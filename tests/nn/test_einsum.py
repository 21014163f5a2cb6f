"""einsum against NumPy's: "...", spaces, letters twice in a term, results that are not given, random equations."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close

SIZES = dict(zip("abcdij", (2, 3, 4, 1, 5, 2), strict=True))


def random_equation(rng):
    """An equation and its operands: letters in any order, some twice, "..." over up to three dimensions."""
    around = [int(size) for size in rng.choice([1, 2, 3], size=rng.integers(0, 4))]  # what "..." covers, broadcast
    terms, arrays, has_ellipsis = [], [], False
    for _ in range(rng.integers(1, 4)):
        letters = [str(c) for c in rng.choice(list(SIZES), size=rng.integers(0, 4))]  # with repeats
        shape = [SIZES[c] for c in letters]
        if rng.random() < 0.6:
            has_ellipsis, at = True, int(rng.integers(0, len(letters) + 1))
            covered = [1 if rng.random() < 0.3 else size for size in around[rng.integers(0, len(around) + 1) :]]
            letters.insert(at, "...")
            shape[at:at] = covered
        terms.append((" " * (rng.random() < 0.2)).join(letters))
        arrays.append(rng.standard_normal(shape))
    equation = (" , " if rng.random() < 0.2 else ",").join(terms)
    if rng.random() < 0.7:
        used = sorted({c for c in equation if c.isalpha()})
        out = [c for c in rng.permutation(used) if rng.random() < 0.6] if used else []
        if has_ellipsis:
            out.insert(int(rng.integers(0, len(out) + 1)), "...")
        equation += (" -> " if rng.random() < 0.2 else "->") + "".join(out)
    return equation, arrays


@pytest.mark.parametrize("seed", range(40))
def test_random_equations_are_numpys(seed, device):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        equation, arrays = random_equation(rng)
        expected = np.einsum(equation, *arrays)
        tensors = [rl.tensor(a, dtype="float64", device=device, requires_grad=True) for a in arrays]
        y = rl.einsum(equation, *tensors)
        assert y.shape == expected.shape, equation
        assert_close(y.detach(), expected, rtol=1e-12, atol=1e-12, name=equation)
        # The sum is linear in each operand, so the gradient's product with the operand is the sum itself.
        dy = rl.randn(*y.shape, dtype="float64", device=device)
        y.backward(dy)
        for x in tensors:
            along = (x.grad * x.detach()).sum().item()
            assert along == pytest.approx((y.detach() * dy).sum().item(), rel=1e-9, abs=1e-9), equation


def test_the_equation_of_a_layer(device):
    X, W = rl.randn(2, 3, 4, device=device), rl.randn(5, 4, device=device)
    with rl.count() as c:
        y = rl.einsum("... i, o i -> ... o", X, W)
    assert_close(y, (X @ W.T).cpu().numpy(), rtol=1e-5, atol=1e-6)
    assert list(c.by_op) == ["matmul"] and c.launches == 1


def test_scores_of_any_leading_dimensions_are_one_product(device):
    q, k = rl.randn(2, 3, 8, 16, device=device), rl.randn(2, 3, 9, 16, device=device)
    found = []
    for equation in ("bhqd,bhkd->bhqk", "...qd,...kd->...qk"):
        with rl.count() as c:
            y = rl.einsum(equation, q, k)
        found.append((c.launches, c.macs, c.bytes_read, c.bytes_written, list(c.by_op), y.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("equation", ["ii->i", "ii", "bii->b", "...ii->...i", "bii->ib"])
def test_gradients_of_diagonals(equation):
    shape = (3, 3) if equation in ("ii->i", "ii") else (2, 3, 3)
    x = rl.randn(*shape, dtype="float64", requires_grad=True)
    y = rl.einsum(equation, x)
    y.backward(rl.ones(*y.shape, dtype="float64"))
    assert_close(x.grad, np.broadcast_to(np.eye(3), shape), rtol=0, atol=0)


X = rl.ones(4, 3)


@pytest.mark.parametrize(
    ("equation", "operands", "words"),
    [
        ("ii", [X], r"operand 0: expected i=4, got \(4, 3\)"),
        ("i->ii", [X[0]], r"equation: expected 'i' once after '->'"),
        ("...i...", [X], r"equation: expected '...' once in a term"),
        ("..i", [X], r"equation: expected letters, '...', ',' and one '->', got '.'"),
        (". . .i", [X], r"equation: expected letters, '...', ',' and one '->', got '.'"),
        ("i->j->i", [X[0]], r"equation: expected letters, '...', ',' and one '->', got '-'"),
        ("...i->i", [X], r"equation: expected '...' after '->' too"),
        ("...ijk", [X], r"operand 0: expected 3 dimensions or more \(ijk\), got \(4, 3\)"),
        ("...i,...i", [X, rl.ones(5, 3)], r"operand 1: expected a size in '...'=4, got \(5, 3\)"),
        ("...i,i", [X, rl.ones(1)], r"operand 1: expected i=3, got \(1,\)"),
        ("i\u00e9", [X], "equation: expected letters, '...', ',' and one '->', got '\u00e9' in \"i\u00e9\""),
        ("\U0001f600i->i", [X], r"equation: .*, got '\U0001f600' in "),
        ("i\0->i", [X], r"equation: .*, got the character of code 0"),
        ("i,", [X[0]], r"equation: expected a term for each of 1 operands, got 2"),
    ],
)
def test_what_fits_no_operands_is_one_sentence(equation, operands, words):
    with pytest.raises(ValueError, match=r"\[einsum\] " + words):
        rl.einsum(equation, *operands)
