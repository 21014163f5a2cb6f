"""no_grad, enable_grad, set_grad_enabled and autocast as objects: entered again, and by several threads at once."""

import threading

import pytest

import rooflab as rl

X = rl.ones(2, 2, requires_grad=True)


def records():
    return (X * 2).requires_grad


@pytest.mark.parametrize(
    ("make", "inside"),
    [(rl.no_grad, False), (rl.enable_grad, True), (lambda: rl.set_grad_enabled(False), False)],
    ids=["no_grad", "enable_grad", "set_grad_enabled"],
)
def test_a_grad_mode_is_entered_again(make, inside):
    for around in (True, False):
        with rl.set_grad_enabled(around):
            mode = make()
            with mode:
                with mode:
                    assert records() == inside
                assert records() == inside
            assert records() == around
            with mode:
                assert records() == inside
            assert records() == around
    assert records()


def test_set_grad_enabled_is_a_call_too():
    mode = rl.set_grad_enabled(False)
    try:
        assert not records()
        with rl.enable_grad(), rl.set_grad_enabled(True):
            assert records()
        assert not records()
        with mode:
            assert not records()
        assert records(), "what was before the call"
    finally:
        rl.set_grad_enabled(True)


CONTEXTS = {
    "no_grad": (rl.no_grad, records, [True, False]),
    "autocast": (lambda: rl.autocast("float16"), lambda: str((X @ X).dtype), ["float32", "float16"]),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_one_object_in_two_threads(name):
    """Each thread finds again what it had, in whatever order the two leave."""
    make, seen, (outside, inside) = CONTEXTS[name]
    context, entered, may_leave, found = make(), threading.Event(), threading.Event(), []

    def other():
        with make(), context:  # it finds another state than the first thread does
            entered.set()
            may_leave.wait(30)
        found.append(seen())

    thread = threading.Thread(target=other)
    with context:
        thread.start()
        assert entered.wait(30)
        assert seen() == inside
    assert seen() == outside
    may_leave.set()
    thread.join()
    assert found == [outside]


@pytest.mark.parametrize("context", [rl.no_grad(), rl.autocast("float16")])
def test_a_thread_leaves_only_what_it_entered(context):
    errors = []

    def leave():
        try:
            context.__exit__()
        except RuntimeError as error:
            errors.append(str(error))

    with context:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
    assert len(errors) == 1 and "left in a thread that has not entered it" in errors[0]
    assert records()
