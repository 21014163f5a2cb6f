"""Random choices, and generators of their own."""

import numpy as np
import pytest

import rooflab as rl


def test_random_choices():
    p = rl.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 2.0]])
    drawn = rl.multinomial(p, 4000, replacement=True)
    assert drawn.shape == (2, 4000) and drawn.dtype == "int64"
    shares = [np.bincount(row, minlength=3) / 4000 for row in drawn.tolist()]
    np.testing.assert_allclose(shares, [[0, 0.25, 0.75], [0.5, 0, 0.5]], atol=0.03)
    assert (shares[0][0], shares[1][1]) == (0, 0)
    firsts = [rl.multinomial(p[0], 2).tolist() for _ in range(300)]
    assert all(sorted(each) == [1, 2] for each in firsts) and 0.6 < sum(each[0] == 2 for each in firsts) / 300 < 0.9
    assert sorted(rl.randperm(100).tolist()) == list(range(100)) != rl.randperm(100).tolist()
    half = rl.bernoulli(rl.full((1000,), 0.25))
    assert set(half.tolist()) == {0.0, 1.0} and 0.2 < half.mean().item() < 0.3
    for wrong in (rl.tensor([-1.0, 2.0]), rl.tensor([float("nan")]), rl.zeros(3), rl.ones(1, 1, 1), rl.tensor([1])):
        with pytest.raises(ValueError, match=r"\[multinomial\]"):
            rl.multinomial(wrong, 1)
    with pytest.raises(ValueError, match="at least 3 numbers above 0"):
        rl.multinomial(p, 3)
    for wrong in (1.5, -0.1, float("nan")):
        with pytest.raises(ValueError, match=r"\[bernoulli\] p: expected numbers from 0 to 1"):
            rl.bernoulli(rl.tensor([0.5, wrong]))
    with pytest.raises(ValueError, match=r"\[bernoulli\] p: expected a floating-point dtype, got int64"):
        rl.bernoulli(rl.tensor([1]))
    assert rl.bernoulli(rl.zeros(0)).shape == (0,) and rl.bernoulli(rl.tensor(1.0).half()).item() == 1
    assert rl.bernoulli(rl.ones(2, device="meta:H200")).shape == (2,)


@pytest.mark.parametrize(
    ("dtype", "p", "shares"),
    [
        ("float32", [1e38, 3e38, 0.0, 2e38], [1 / 6, 1 / 2, 0, 1 / 3]),
        ("float64", [1e308, 0.0, 1e308, 0.0], [1 / 2, 0, 1 / 2, 0]),
        ("float32", [0.0, 2.0**-149, 2.0**-148, 2.0**-149], [0, 1 / 4, 1 / 2, 1 / 4]),
    ],
)
def test_choices_at_the_edges_of_a_dtype(device, dtype, p, shares):
    """A running sum would overflow, and so would a number divided by a subnormal one."""
    rl.manual_seed(0)
    p = rl.tensor(p, dtype=dtype, device=device)
    drawn = rl.multinomial(p, 4000, replacement=True).tolist()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 4000, shares, atol=0.04)
    firsts = rl.multinomial(rl.broadcast_to(p, (4000, 4)), 1).flatten().tolist()
    np.testing.assert_allclose(np.bincount(firsts, minlength=4) / 4000, shares, atol=0.04)


def test_what_has_no_share_is_never_drawn(device):
    p = rl.tensor([[0.0, 1e-40, 1.0]] * 300, device=device)
    assert {tuple(sorted(row)) for row in rl.multinomial(p, 2).tolist()} == {(1, 2)}


def test_rounding_gives_no_share(device):
    """Sums of floats in another order would, between a place with a share and one without."""
    rng = np.random.default_rng(0)
    shares = np.where(rng.random((2, 5000)) < 0.02, rng.random((2, 5000)), 0).astype("float32")
    p = rl.tensor(shares, device=device)
    for weights in (p, p.double(), p.half()):
        drawn = rl.multinomial(weights, 200_000, replacement=True).cpu().numpy()
        assert (np.take_along_axis(weights.cpu().double().numpy(), drawn, 1) > 0).all()
        found = np.bincount(drawn[1], minlength=5000) / 200_000
        np.testing.assert_allclose(found, shares[1] / shares[1].sum(), atol=2e-3)


def test_a_generator_is_apart():
    generator = rl.Generator().manual_seed(5)
    rl.manual_seed(1)
    expected = rl.rand(3).tolist()
    rl.manual_seed(1)
    first = rl.randperm(9, generator=generator).tolist()
    assert rl.rand(3).tolist() == expected, "rooflab's own sequence went on as if nothing had been drawn"
    state = generator.get_state()
    second = rl.randperm(9, generator=generator).tolist()
    assert first != second and rl.randperm(9, generator=generator.set_state(state)).tolist() == second
    assert rl.randperm(9, generator=generator.manual_seed(5)).tolist() == first and generator.initial_seed() == 5
    with pytest.raises(TypeError, match="expected a Generator, got int"):
        rl.randperm(9, generator=5)
    with pytest.raises(ValueError, match="seed"):
        generator.manual_seed(-1)
    for wrong in (5, (1,), (1, -1), (1.0, 2), None):
        with pytest.raises(ValueError, match=r"\[Generator\] state: expected what get_state\(\) gives"):
            generator.set_state(wrong)


def test_a_generator_says_its_device():
    assert rl.Generator().device == "cpu" and rl.Generator("cuda:1").device.type == "cuda"
    with pytest.raises(ValueError, match=r"\[device\] expected 'cpu'"):
        rl.Generator("tpu")
