"""Ranges that are left twice, by another thread, or not at all."""

import threading

import pytest

import rooflab as rl


def test_a_range_is_left_once():
    outer = rl.range("outer")
    with pytest.raises(ValueError, match=r'\[range\] "outer" is not open'):
        outer.__exit__()
    with outer, rl.range("inner") as _:
        pass
    with pytest.raises(ValueError, match="is not open"):
        outer.__exit__()


def test_a_range_ends_itself_and_what_is_open_inside():
    a, b, c = rl.range("a"), rl.range("b"), rl.range("c")
    with rl.range("outer"):
        for opened in (a, b, c):
            opened.__enter__()
        with pytest.raises(ValueError, match=r'\[range\] "a" was left while "b/c", which was entered inside it'):
            a.__exit__(None, None, None)
        with rl.count() as counts:
            rl.ones(3)
        assert set(counts.by_range) == {"outer"}
        for closed in (a, b, c):
            with pytest.raises(ValueError, match="is not open in this thread"):
                closed.__exit__(None, None, None)


def test_an_exception_is_seen_though_ranges_were_left_open():
    with pytest.raises(ZeroDivisionError), rl.range("outer"):
        rl.range("left open").__enter__()
        1 / 0  # noqa: B018
    with rl.count() as counts:
        rl.ones(3)
    assert not counts.by_range


def test_one_range_may_be_entered_again_inside_itself():
    again = rl.range("again")
    with rl.count() as counts, again, again:
        rl.ones(3)
    assert set(counts.by_range) == {"again", "again/again"}


def test_a_range_of_another_thread_is_not_this_one():
    shared, left = rl.range("shared"), []

    def leave():
        try:
            shared.__exit__(None, None, None)
        except ValueError as error:
            left.append(str(error))

    with rl.count() as counts, shared:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        rl.ones(3)
    assert left == ['[range] "shared" is not open in this thread'] and set(counts.by_range) == {"shared"}


def test_a_range_that_backward_leaves_open_or_leaves_twice_is_no_crash():
    class Careless(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            rl.range("left open").__enter__()
            twice = rl.range("twice")
            twice.__enter__()
            twice.__exit__()
            twice.__exit__()

    y = Careless.apply(rl.ones(3, requires_grad=True)).sum()
    with rl.count() as c:
        with pytest.raises(ValueError, match=r'\[range\] "twice" is not open'):
            y.backward()
        rl.ones(3) + 1
    assert "left open" not in c.by_range
