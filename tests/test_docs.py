"""Documentation that runs: the examples in docstrings and the README."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import textwrap
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from IPython.core.inputtransformer2 import TransformerManager

import rooflab as rl
from rooflab.cli.reference.subjects import packages, public_names
from rooflab.cuda.simt import toolchain
from rooflab.grading.lab import handout
from rooflab.results.mixin import ResultMixin

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "notebooks/INSTRUCTORS.md", ".github/CONTRIBUTING.md"]


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
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    given = {"rl": rl, "np": np}
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=flags, extraglobs=given)
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
    "set_float32_matmul_precision",
    "set_num_threads",
    "set_rng_state",
    "synchronize",
}
NEVER_RAISE = {
    "accumulator_roundoff", "binary_power", "distinct", "exact", "find_spec", "finite", "is_count", "is_near",
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


# Methods that return nothing, and methods and properties that cannot fail; by the class that defines them.
METHODS_RETURN_NOTHING = {
    "AdamW": "load_state_dict step zero_grad",
    "Access": "add",
    "Attributes": "add_module register_buffer register_parameter",
    "Event": "record synchronize",
    "Graph": "replay",
    "KernelCounts": "add",
    "LRScheduler": "load_state_dict step",
    "Module": "zero_grad",
    "Profile": "step",
    "Recorded": "export_chrome_trace",
    "Stream": "synchronize",
    "Tensor": "backward retain_grad",
    "Timeline": "mark save_html save_snapshot",
}
METHODS_NEVER_RAISE = {
    "AdamW": "state_dict zero_grad",
    "Access": "add",
    "Ceilings": "datasheet",
    "Convertible": "bfloat16 cpu double float half",
    "CosineAnnealingLR": "rate",
    "Event": "device",
    "Graph": "device is_capturing launches",
    "KernelCounts": "add rows",
    "LRScheduler": "get_last_lr state_dict",
    "Launch": "listing",
    "LinearLR": "rate",
    "ModelCost": "to_dict",
    "Module": "eval extra_repr requires_grad_ state_dict zero_grad",
    "ResultMixin": "to_csv to_dict to_markdown",
    "SequentialLR": "state_dict",
    "StepLR": "rate",
    "Stream": "cuda_stream device",
    "Tensor": "data_ptr detach device dim dtype element_size exp2 grad_fn is_contiguous is_cuda is_floating_point "
    "is_leaf isfinite isinf isnan itemsize log10 log2 logical_not nbytes ndim numel ravel reciprocal shape sign square "
    "stride strides",
    "Tree": "buffers children modules named_buffers named_children named_modules named_parameters num_parameters "
    "parameters",
}


def documented_classes():
    """Results and schedulers, with those that users have most to do with."""
    found = {rl.Tensor, rl.Graph, rl.cuda.Event, rl.cuda.Stream, rl.nn.Module, rl.optim.AdamW}
    found |= {rl.Cost, rl.Counts, rl.count}
    for package in packages():
        module = importlib.import_module(package)
        kinds = [getattr(module, name) for name in public_names(package) if ".labs" not in package]
        bases = (ResultMixin, rl.optim.lr_scheduler.LRScheduler)
        found |= {kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, bases)}
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


def members(kind):
    """The public methods and properties of a class, by name."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if not name.startswith("_") and (isinstance(member, property) or callable(getattr(kind, name))):
            yield name, member if isinstance(member, property) else getattr(kind, name)


def lacks_as_member(kind, name, member):
    """Which sections the docstring of a method or property lacks; a property of a result needs no more than one line,
    which may stand among the attributes in the docstring of the class."""
    doc, owner = inspect.getdoc(member) or "", _definer(kind, name)
    if isinstance(member, property) and kind not in (rl.Tensor, rl.Graph, rl.cuda.Event, rl.cuda.Stream):
        described = rl.Counts if kind is rl.count and hasattr(rl.Counts, name) else kind  # it has the same figures
        attributes = (inspect.getdoc(described) or "").partition("Attributes\n----------\n")[2]
        return [] if doc or re.search(rf"^.*\b{name}\b.* : ", attributes, re.MULTILINE) else ["one line"]
    parameters = set() if isinstance(member, property) else set(inspect.signature(member).parameters) - {"self"}
    wanted = {"Examples": True, "Parameters": parameters}
    wanted["Returns"] = name not in METHODS_RETURN_NOTHING.get(owner, "").split()
    wanted["Raises"] = name not in METHODS_NEVER_RAISE.get(owner, "").split()
    return [title for title, is_wanted in wanted.items() if is_wanted and f"{title}\n{'-' * len(title)}\n" not in doc]


def _definer(kind, name):
    """The name of the class that a member is written in. Those of results are attached to classes of the core."""
    qualified = getattr(getattr(kind, name), "__qualname__", "").rpartition(".")[0]
    return (
        qualified
        if qualified and hasattr(kind, "to_json")
        else next(b for b in kind.__mro__ if name in vars(b)).__name__
    )


@pytest.mark.parametrize("kind", documented_classes(), ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_methods_and_properties_have_all_sections(kind):
    found = {name: lacks_as_member(kind, name, member) for name, member in members(kind)}
    assert {name: lacking for name, lacking in found.items() if lacking} == {}


def test_all_kinds_of_classes_are_found():
    names = {kind.__name__ for kind in documented_classes()}
    assert len(names) > 30 and names >= {"Tensor", "Module", "AdamW", "StepLR", "Timing", "Profile", "Timeline", "Cost"}


def test_methods_of_a_tensor_are_found():
    names = {name for name, _ in members(rl.Tensor)}
    assert len(names) > 160 and names >= {"shape", "exp", "floor", "add", "backward"}


def test_a_docstring_without_a_section_is_noticed():
    def function(x):
        """Sum.

        Returns
        -------
        int
        """

    assert lacks(function, "function") == ["Examples", "Parameters", "Raises"]


@pytest.mark.slow
def test_readme_example_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where an example writes its files
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    try:
        toolchain.compiler()
    except toolchain.NoCompiler:
        blocks = [block for block in blocks if 'backend="simt"' not in block]
    for block in blocks:
        exec(block, {})
    printed = capsys.readouterr().out
    assert "134217728 2097152" in printed and "1 281474976710656 17179869184" in printed


def blocks_of(page, languages):
    """The texts of a page's blocks in these languages, in a list too."""
    found = re.findall(rf"^( *)```({languages})\n(.*?)^ *```$", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    return [textwrap.dedent(block) for _, _, block in found]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_commands_can_be_pasted(page):
    """A Mac's shell takes a comment behind a command as arguments of the command."""
    blocks = blocks_of(page, "ba?sh")
    assert blocks
    for block in blocks:
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
        assert done.stderr == "", block
        assert not re.search(r"^[^#\n].*\s#", block, re.M), block


def test_a_list_of_packages_is_fetched_before_packages_are_installed():
    """A new container or WSL 2 has none."""
    for text in ((ROOT / "README.md").read_text(encoding="utf-8"), handout.INSTALL):
        lines = [line for line in text.splitlines() if "apt-get install -y" in line]
        assert lines and all("apt-get update && " in line for line in lines)


def test_the_cells_for_colab_and_kaggle_are_cells():
    cells = blocks_of("README.md", "ipython")
    assert len(cells) == 4
    for cell in cells:
        ast.parse(TransformerManager().transform_cell(cell))
        assert cell.endswith("!rooflab doctor\n") and "%pip install" in cell


def test_the_macs_commands_need_no_debian_and_no_administrator():
    (commands,) = [block for block in blocks_of("README.md", "sh") if "lab run lab1" in block]
    assert not re.search("sudo|apt-get|bubblewrap", commands)
    first = re.findall("lab run .*", blocks_of("README.md", "bash")[0])
    assert re.findall("lab run .*", commands) == first, "as on Linux"
