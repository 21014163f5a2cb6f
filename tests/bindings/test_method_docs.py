"""A method's docstring is made of its function's: what belongs to the function alone is gone, all else is there."""

import pytest

import rooflab as rl
from rooflab._method_docs import of_method

DOC = """x shifted by y. One launch.

Parameters
----------
x : Tensor
    (M, N), of a floating dtype.
y, z : Tensor
    (N,).
*sizes : int
    How often.
variant : str
    A rung.

Returns
-------
Tensor
    Of the shape of `x`.

Raises
------
TypeError
    For anything but a tensor.
ValueError
    For a shape that does not fit.

Examples
--------
>>> rl.shift(rl.tensor([(1, 2), (3, 4)]), rl.ones(2), z=(0, 1)).tolist()
[rl.shift(rl.ones(2)), 1]
"""


def test_what_belongs_to_the_function_is_left_out():
    assert of_method(DOC, "shift", "moved", {"y": "other", "z": "z", "sizes": "sizes"}) == (
        """x shifted by y. One launch.

`x` is this tensor: (M, N), of a floating dtype, and `y` is `other`.

Parameters
----------
other, z : Tensor
    (N,).
*sizes : int
    How often.

Returns
-------
Tensor
    Of the shape of `x`.

Raises
------
ValueError
    For a shape that does not fit.

Examples
--------
>>> rl.tensor([(1, 2), (3, 4)]).moved(rl.ones(2), z=(0, 1)).tolist()
[rl.ones(2).moved(), 1]"""
    )


def test_sections_without_entries_are_left_out():
    raises = "Raises\n------\nTypeError\n    For anything but a tensor."
    assert (
        of_method(f"x.\n\nParameters\n----------\nx : Tensor\n    (...).\n\n{raises}", "f", "f", [])
        == "x.\n\n`x` is this tensor."
    )


def test_a_function_without_parameters_has_no_method():
    with pytest.raises(ValueError, match=r"\[of_method\] doc: expected one with parameters, got that of f"):
        of_method("Nothing.", "f", "f", [])


def test_a_method_has_the_text_of_its_function():
    for name in ("exp", "matmul", "sum", "floor", "scatter", "maximum", "isclose"):
        method = getattr(rl.Tensor, name).__doc__
        function = getattr(rl, name).__doc__
        assert function.splitlines()[0] in method and f"rl.{name}(" not in method and " is this tensor" in method
