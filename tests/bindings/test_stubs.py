"""The committed stubs of the native module are what pybind11-stubgen makes of it today."""

import subprocess
import sys
from pathlib import Path

import pytest

STUBS = Path(__file__).resolve().parents[2] / "python" / "rooflab" / "_core"


def test_stubs_are_current(tmp_path):
    pytest.importorskip("pybind11_stubgen")
    command = [sys.executable, "-m", "pybind11_stubgen", "rooflab._core", "--output-dir", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    made = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "rooflab" / "_core").glob("*.pyi")}
    kept = {path.name: path.read_text(encoding="utf-8") for path in STUBS.glob("*.pyi")}
    assert made == kept, "stale: python -m pybind11_stubgen rooflab._core --output-dir python"
