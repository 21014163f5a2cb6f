"""The arrows of the design: bindings -> nn -> ops -> {kernels, autograd} -> core; profiler -> core."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"
PACKAGE = ROOT / "python" / "rooflab"
LONGEST = 500

MAY_INCLUDE = {
    "core": {"core"},
    "kernels": {"kernels", "core"},
    "autograd": {"autograd", "core"},
    "profiler": {"profiler", "core"},
    "ops": {"ops", "kernels", "autograd", "core"},
    "nn": {"nn", "ops", "autograd", "core"},
    "bindings": {"bindings", "nn", "ops", "autograd", "profiler", "kernels", "core"},
}
TOP_LEVEL = {
    "pyproject.toml",
    "CMakeLists.txt",
    "README.md",
    "csrc",
    "python",
    "notebooks",
    "tests",
    "assets",
}


def sources():
    return sorted(p for p in CSRC.rglob("*") if p.suffix in {".h", ".cpp", ".cu", ".cuh"})


def includes(path):
    return re.findall(r'^\s*#\s*include\s*([<"][^>"]+)[>"]', path.read_text(), re.MULTILINE)


def violations(layer, name, included):
    """What is wrong with one include of a file `name` in `layer`; the rule itself, tested below."""
    found = []
    target = included[1:]
    if included.startswith('"') and target.split("/")[0] not in MAY_INCLUDE[layer]:
        found.append(f"{layer} may not include {target}")
    is_cuda_header = re.match(r"(cuda|cublas|nvrtc|mma|cooperative_groups)", target) and "/" not in target
    if is_cuda_header and not (
        "_cuda" in name or name.endswith(".cuh") or (layer == "core" and name.startswith("cuda_runtime"))
    ):
        found.append(f"only CUDA files may include {target}")
    if target.startswith("cupti") and layer != "profiler":
        found.append(f"only profiler/ may include {target}")
    if target.startswith("pybind11") and layer != "bindings":
        found.append(f"only bindings/ may include {target}")
    if layer == "kernels" and target in {"core/tensor.h", "core/allocator.h"}:
        found.append(f"kernels take raw pointers, not {target}")
    if layer == "ops" and "profiler" in target:
        found.append("ops open a range; they never include the profiler")
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(CSRC)))
def test_includes_follow_the_arrows(path):
    layer = path.relative_to(CSRC).parts[0]
    assert [v for i in includes(path) for v in violations(layer, path.name, i)] == []


@pytest.mark.parametrize(
    ("layer", "name", "included"),
    [
        ("kernels", "x.cpp", '"ops/ops.h'),
        ("kernels", "x.cpp", '"core/tensor.h'),
        ("core", "tensor.h", "<cuda_runtime.h"),
        ("ops", "x.cpp", "<cupti.h"),
        ("ops", "x.cpp", "<pybind11/pybind11.h"),
        ("ops", "x.cpp", '"profiler/session.h'),
        ("core", "x.cpp", '"kernels/common/simd.h'),
    ],
)
def test_a_wrong_arrow_is_noticed(layer, name, included):
    assert violations(layer, name, included)


def python_files():
    return sorted(PACKAGE.rglob("*.py"))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield ("." * node.level) + (node.module or "")


@pytest.mark.parametrize("path", python_files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_python_imports_follow_the_arrows(path):
    names = list(imported(path))
    assert not [n for n in names if n.split(".")[0] in {"tests", "torch", "cupy", "transformers", "triton"}]
    if path.relative_to(PACKAGE).parts[0] in {"grading", "labs"}:
        assert not [n for n in names if n.endswith("_core")], "notebooks and grading use public names only"


def test_files_stay_short():
    code = [*sources(), *python_files(), *(ROOT / "tests").rglob("*.py")]
    long = {str(p.relative_to(ROOT)): n for p in code if (n := len(p.read_text().splitlines())) > LONGEST}
    assert long == {}


def test_names_say_what_is_inside():
    banned = {"utils", "helpers", "misc", "util", "helper"}
    assert not [p for p in [*sources(), *python_files()] if p.stem in banned]


def test_top_level_holds_what_the_design_lists():
    entries = {p.name for p in ROOT.iterdir() if not p.name.startswith(".")}
    assert entries - {"build", "dist"} <= TOP_LEVEL


def test_every_source_is_built():
    listed = (CSRC / "CMakeLists.txt").read_text()
    missing = [
        str(p.relative_to(CSRC))
        for p in sources()
        if p.suffix in {".cpp", ".cu"} and str(p.relative_to(CSRC)) not in listed
    ]
    assert missing == []
