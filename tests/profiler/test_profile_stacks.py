"""The lines that called the ops of a profile."""

from pathlib import Path

import rooflab as rl
from rooflab import _stacks


def line_of(mark):
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(text, 1) if line.endswith(f"# {mark}"))


def test_stacks_are_the_lines_that_called():
    a = rl.ones(4, 4)

    def work():
        return a @ a  # the product

    with rl.profile(with_stack=True) as prof:
        work()
        rl.exp(a)  # the function
    product, exp = (record.stack for record in prof.host)
    assert (product[0].name, product[0].line) == ("work", line_of("the product"))
    assert (exp[0].name, exp[0].line) == ("test_stacks_are_the_lines_that_called", line_of("the function"))
    assert product[1].filename == __file__
    rows = prof.key_averages(group_by_stack_n=1).host
    assert {row.stack[0].name for row in rows} == {"work", "test_stacks_are_the_lines_that_called"}
    assert f"{__file__}:{product[0].line} work" in prof.key_averages(group_by_stack_n=1).table(sort_by="cpu_time")
    with rl.profile() as plain:
        work()
    assert [record.stack for record in plain.host] == [()]
    work()
    assert _stacks._stacks == {}, "stacks end with the profile that wanted them"


def test_a_profile_without_stacks_has_none_while_others_take_them():
    _stacks.begin()
    with rl.profile() as prof:
        rl.exp(rl.ones(2))
    _stacks.end()
    assert [record.stack for record in prof.host] == [()] * 2


def test_a_number_that_outlives_its_profile_stands_for_no_stack():
    """A thread may be inside a call that began in an earlier profile."""
    _stacks.begin()
    old = _stacks._number()
    assert _stacks.frames(old)[0].name == "test_a_number_that_outlives_its_profile_stands_for_no_stack"
    _stacks.end()
    _stacks.begin()
    new = _stacks._number()
    assert _stacks.frames(new) and new != old
    assert _stacks.frames(old) == _stacks.frames(0) == _stacks.frames(new + 1) == ()
    _stacks.end()
