"""Documentation that runs: the examples in docstrings and the README."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import matplotlib
import pytest

import rooflab as rl
from rooflab.cli.reference.subjects import packages, public_names

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


RETURN_NOTHING = {
    "adamw",
    "assert_choice",
    "assert_close",
    "assert_near",
    "kv_append",
    "manual_seed",
    "save",
    "set_cpu_isa",
    "set_num_threads",
    "set_rng_state",
    "synchronize",
}
NEVER_RAISE = {
    "accumulator_roundoff", "binary", "binary_power", "exact", "find_spec", "finite", "human", "is_count", "is_near",
    "is_number", "isfinite", "isinf", "isnan", "plot_memory_hierarchy", "record", "saved_tensors", "schedule",
    "sum_roundings",
}  # fmt: skip


def lacks(function, name):
    """Which sections the docstring of a function lacks."""
    parameters = inspect.signature(function).parameters
    wanted = {"Examples": True, "Parameters": parameters, "Returns": name not in RETURN_NOTHING}
    wanted["Raises"] = parameters and name not in NEVER_RAISE
    doc = inspect.getdoc(function) or ""
    return [
        section
        for section, is_wanted in wanted.items()
        if is_wanted and f"{section}\n{'-' * len(section)}\n" not in doc
    ]


def test_public_functions_have_all_sections():
    functions = {name: getattr(rl, name) for name in dir(rl)}
    functions = {name: value for name, value in functions.items() if callable(value) and not inspect.isclass(value)}
    assert len(functions) > 120
    assert {name: lacks(value, name) for name, value in functions.items() if lacks(value, name)} == {}


def test_functions_of_packages_have_all_sections():
    """Those of Python; labs and what is compiled aside."""
    lacking, count = {}, 0
    for package in packages():
        module = importlib.import_module(package)
        for name in [] if ".labs" in package else public_names(package):
            value = getattr(module, name)
            if inspect.isfunction(value):
                count += 1
                lacking |= {f"{package}.{name}": lacks(value, name)} if lacks(value, name) else {}
    assert lacking == {} and count > 70


def test_a_docstring_without_a_section_is_noticed():
    def function(x):
        """Sum.

        Returns
        -------
        int
        """

    assert lacks(function, "function") == ["Examples", "Parameters", "Raises"]


def test_readme_example_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where an example writes its files
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})
    printed = capsys.readouterr().out
    assert "134217728 2097152" in printed and "1 281474976710656 17179869184" in printed
