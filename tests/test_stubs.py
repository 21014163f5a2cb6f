"""The committed stubs of the native module are what pybind11-stubgen makes of it today."""

import subprocess
import sys
from pathlib import Path

import pytest

STUB = Path(__file__).resolve().parent.parent / "python" / "rooflab" / "_core.pyi"


def test_stubs_are_current(tmp_path):
    pytest.importorskip("pybind11_stubgen")
    command = [sys.executable, "-m", "pybind11_stubgen", "rooflab._core", "--output-dir", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    made = stub_text(tmp_path / "rooflab" / "_core")
    hint = "python -m pybind11_stubgen rooflab._core -o DIR, then join its files into python/rooflab/_core.pyi"
    assert STUB.read_text() == made, f"the stubs are stale: {hint}"


def stub_text(folder: Path) -> str:
    """The module and its submodules in one text: stubgen writes a package, we commit a file."""
    parts = [f"# {path.stem}\n{path.read_text()}" for path in sorted(folder.glob("*.pyi"))]
    return "\n".join(parts)
