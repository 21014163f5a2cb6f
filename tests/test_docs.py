"""Documentation that runs: the examples in docstrings and the README."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import matplotlib
import pytest

import rooflab as rl

ROOT = Path(__file__).resolve().parent.parent


def module_names():
    return sorted(
        info.name
        for info in pkgutil.walk_packages(rl.__path__, "rooflab.")
        if not info.name.endswith(("_core", "__main__"))
    )


@pytest.mark.parametrize("name", module_names())
def test_examples_in_docstrings(name, monkeypatch, tmp_path):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert failed == 0


@pytest.mark.parametrize("name", [n for n in module_names() if not n.startswith("rooflab.specs.")])
def test_public_functions_are_documented(name):
    module = importlib.import_module(name)
    missing = [
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and callable(value)
        and getattr(value, "__module__", "") == name
        and not (value.__doc__ or "").strip()
    ]
    assert missing == []


def test_native_functions_are_documented():
    missing = [
        key
        for key in dir(rl._core)
        if callable(value := getattr(rl._core, key)) and not key.startswith("_") and not value.__doc__
    ]
    assert missing == []


def test_readme_example_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})
    printed = capsys.readouterr().out
    assert "134217728 2097152" in printed and "1 281474976710656 17179869184" in printed
