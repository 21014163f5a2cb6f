"""The examples in the docstrings of native functions and of the tensor's methods run."""

import doctest

import numpy as np
import pytest

import rooflab as rl

PARSER, FLAGS = doctest.DocTestParser(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples():
    for owner in (rl._core, rl.Tensor):
        for name, value in vars(owner).items():
            if ">>>" in (getattr(value, "__doc__", None) or ""):
                yield pytest.param(value.__doc__, id=f"{owner.__name__}.{name}")


def failures(text):
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(PARSER.get_doctest(text, {"rl": rl, "np": np}, "example", None, None), out=lambda _: None)
    return runner.failures


@pytest.mark.parametrize("text", list(examples()))
def test_examples_run(text):
    assert failures(text) == 0


def test_a_wrong_example_is_noticed():
    assert failures(">>> rl.ones(2).tolist()\n[1.0, 2.0]") == 1
