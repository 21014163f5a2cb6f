"""A function that runs again draws the random numbers of its first run, whoever draws meanwhile."""

import threading

import pytest

import rooflab as rl
from rooflab.autograd import checkpoint
from rooflab.testing import assert_close


def leaf(*shape, **options):
    return rl.randn(*shape, requires_grad=True, **options)


def test_random_numbers_are_drawn_again():
    def dropped(x):
        return rl.where(rl.rand(*x.shape) < 0.5, rl.sin(x) * 2, 0)

    rl.manual_seed(5)
    x = leaf(1000)
    y = checkpoint(dropped, x)
    state = rl.get_rng_state()
    drawn = rl.rand(3).tolist()
    y.sum().backward()
    assert_close(x.grad, rl.where(y.detach() != 0, rl.cos(x.detach()) * 2, 0))
    rl.set_rng_state(state)
    assert rl.rand(3).tolist() == drawn
    y = checkpoint(dropped, x)
    rl.rand(3)
    state = rl.get_rng_state()
    y.sum().backward()
    assert rl.get_rng_state() == state  # backward does not count as a draw
    rl.manual_seed(6)
    assert rl.get_rng_state() == (6, 0)


def test_generators_draw_again():
    first, second = rl.Generator().manual_seed(1), rl.Generator().manual_seed(2)
    p = rl.full((100,), 0.5)

    def dropped(x):
        kept = rl.bernoulli(p, generator=first) + rl.bernoulli(p, generator=first)
        if second.initial_seed() == 2:
            kept += checkpoint(lambda x: rl.bernoulli(p, generator=second) * x.sin().detach() * 0, x)
        return rl.exp(x) * kept

    x = leaf(100)
    y = checkpoint(dropped, x)
    rl.randperm(5, generator=first)
    states = first.get_state(), second.get_state()
    y.sum().backward()
    assert_close(x.grad, y.detach())
    assert (first.get_state(), second.get_state()) == states


def elsewhere(call):
    """What a call returns in another thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("own", [False, True])
def test_draws_of_another_thread_change_no_mask(own):
    """They come in the middle of the function, and when it runs again. No number is drawn twice."""
    generator, others = rl.Generator().manual_seed(1) if own else None, []

    def dropped(x):
        first = rl.bernoulli(rl.full(x.shape, 0.5), generator=generator)
        others.append(elsewhere(lambda: rl.bernoulli(rl.full((64,), 0.5), generator=generator).tolist()))
        return rl.exp(x) * first * rl.bernoulli(rl.full(x.shape, 0.5), generator=generator)

    x = leaf(1000)
    y = checkpoint(dropped, x)
    elsewhere(lambda: y.sum().backward())
    assert_close(x.grad, y.detach())
    assert len(others) == 2 and others[0] != others[1]


def test_seeds_that_the_function_sets_do_nothing_when_it_runs_again():
    generator = rl.Generator()

    def dropped(x):
        rl.manual_seed(3)
        generator.manual_seed(4)
        return rl.exp(x) * (rl.rand(*x.shape) < 0.5) * rl.bernoulli(rl.full(x.shape, 0.5), generator=generator)

    x = leaf(100)
    y = checkpoint(dropped, x)
    rl.rand(2), rl.randperm(3, generator=generator)
    y.sum().backward()
    assert_close(x.grad, y.detach())
    assert rl.get_rng_state() == (3, 2) and generator.get_state() == (4, 2)


@pytest.mark.parametrize(
    ("first", "again", "says"), [(1, 2, "1 times, and more often"), (2, 1, "2 times, and 1 times")]
)
def test_another_number_of_draws_is_noticed(first, again, says):
    counts = [first, again]

    def dropped(x):
        x = rl.exp(x)
        for _ in range(counts.pop(0)):
            rl.rand(2)
        return rl.exp(x)

    y = checkpoint(dropped, leaf(3)).sum()
    with pytest.raises(ValueError, match=rf"^\[checkpoint\] backward: the function drew random numbers {says}"):
        y.backward()


def test_a_captured_backward_draws_what_its_forward_drew(device):
    x, generator = leaf(1000, device=device), rl.Generator().manual_seed(5)

    def dropped(x):
        kept = (rl.rand(1000, device=device) < 0.5) & (rl.randperm(1000, generator=generator, device=device) < 500)
        return rl.exp(x) * kept

    def step():
        y = checkpoint(dropped, x)
        return y.detach(), rl.autograd.grad(y.sum(), x)[0]

    step()
    graph = rl.Graph(device)
    with graph.capture():
        y, dx = step()
    seen = []
    for _ in range(2):
        graph.replay()
        assert_close(dx, y)
        seen.append(y.tolist())
    assert seen[0] != seen[1]
