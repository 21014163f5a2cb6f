"""The examples of all public names run as a user pastes them: with `rl`, `np` and what they import.

Those of a GPU stand below `if rl.cuda.is_available():`.
"""

import doctest
import importlib
import inspect

import matplotlib
import numpy as np
import pytest

import rooflab as rl
from rooflab.cli.reference.subjects import PACKAGES, packages, public_names, subjects

PARSER, FLAGS = doctest.DocTestParser(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def documented():
    """The docstring of each function, class, method and property of the core, by its name."""
    for module in (rl._core, rl._core.cuda, rl._core.memory):
        for name, value in vars(module).items():
            yield f"{module.__name__}.{name}", value
            if inspect.isclass(value) and value.__module__.startswith("rooflab._core"):
                yield from ((f"{module.__name__}.{name}.{key}", member) for key, member in vars(value).items())


def examples():
    for name, value in documented():
        text = getattr(value, "__doc__", None)
        if isinstance(text, str) and ">>>" in text:
            yield pytest.param(inspect.cleandoc(text), id=name)


def failures(text):
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(PARSER.get_doctest(text, {"rl": rl, "np": np}, "example", None, None), out=lambda _: None)
    return runner.failures


@pytest.mark.parametrize("text", list(examples()))
def test_examples_run(text):
    assert failures(text) == 0


def public(place):
    """The public names of a package or a subject, and the methods of its classes, with their docstrings."""
    names = public_names(place) if place.startswith("rooflab.") else subjects()[place]
    module = importlib.import_module(place) if place.startswith("rooflab.") else rl
    for name in names:
        value = getattr(module, name)
        members = vars(value).items() if inspect.isclass(value) else ()
        for key, one in [(name, value), *((f"{name}.{key}", one) for key, one in members if not key.startswith("_"))]:
            text = getattr(one, "__doc__", None)
            if isinstance(text, str) and ">>>" in text:
                yield key, inspect.cleandoc(text)


@pytest.mark.parametrize("place", [*(name for name in subjects() if name != PACKAGES), *packages()])
def test_public_examples_can_be_pasted(place, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    compiled = {parameter.values[0] for parameter in examples()}
    assert [key for key, text in public(place) if text not in compiled and failures(text)] == []


def test_examples_of_all_kinds_are_found():
    names = {parameter.id for parameter in examples()}
    assert len(names) > 300
    assert names >= {
        "rooflab._core.exp",
        "rooflab._core.Tensor.exp",
        "rooflab._core.Tensor.shape",
        "rooflab._core.Graph.replay",
        "rooflab._core.cuda.Event.record",
        "rooflab._core.memory.set_limit",
    }


def test_a_wrong_example_is_noticed():
    assert failures(">>> rl.ones(2).tolist()\n[1.0, 2.0]") == 1
    assert failures(">>> plot_bars") == 1, "a name that nobody imported"
