"""Writes the stubs of the native module, which editors and type checkers read: python tests/stubs.py

pybind11-stubgen makes them, and this completes them. It imports numpy, and allows None where that is the default. In
the class Tensor, where `int`, `float` and `bool` are methods, it writes the types of these names as `builtins.int`.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

# Types of methods that are written in Python, which pybind11-stubgen names as their modules do.
_FULL_NAMES = {"np.ufunc": "numpy.ufunc", "-> Handle": "-> rooflab._handles.Handle"}
_FULL_NAMES |= {"generator: Generator": "generator: rooflab.composed.random.Generator"}
_FULL_NAMES |= {
    "-> Table": "-> rooflab.results.Table",
    "-> DataFrame": "-> pandas.DataFrame",
    "-> Self": "-> typing.Self",
}
_FULL_NAMES |= {"values: Mapping": "values: collections.abc.Mapping"}

PYTHON = Path(__file__).resolve().parents[1] / "python"


def completed(stub: str) -> str:
    """The stub with its imports, and with types that the methods of Tensor do not hide."""
    begin = stub.index("class Tensor:")
    end = stub.index("\nclass ", begin)
    line = re.compile(r"^(    def \w+)(\(.*)$", re.MULTILINE)
    named = line.sub(lambda m: m[1] + re.sub(r"(?<![\w.'])(int|float|bool)\b", r"builtins.\1", m[2]), stub[begin:end])
    # A method that is a function of Python with another name for self.
    named = re.sub(r"    @staticmethod\n    def (\w+)\(\w+: Tensor(?=[,)])", r"    def \1(self", named)
    whole = stub[:begin] + named + stub[end:]
    for short, full in _FULL_NAMES.items():
        whole = re.sub(rf"{re.escape(short)}\b", full, whole)
    modules = ["builtins", "collections.abc", "numpy", "pandas", "rooflab._handles", "rooflab.composed.random"]
    modules.append("rooflab.results")
    return whole.replace("import collections.abc\n", "".join(f"import {module}\n" for module in modules), 1)


def write(folder: Path) -> None:
    """Make the stubs in `folder`/rooflab/_core."""
    command = [sys.executable, "-m", "pybind11_stubgen", "rooflab._core", "--output-dir", str(folder)]
    subprocess.run(command, check=True)
    for stub in (folder / "rooflab" / "_core").glob("*.pyi"):
        text = stub.read_text(encoding="utf-8")
        stub.write_text(re.sub(r": (\w+) = None\b", r": \1 | None = None", text), encoding="utf-8")
    whole = folder / "rooflab" / "_core" / "__init__.pyi"
    whole.write_text(completed(whole.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=PYTHON, help="the folder that rooflab lies in")
    write(parser.parse_args().output)
