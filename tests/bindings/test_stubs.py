"""The committed stubs of the native module are what tests/stubs.py makes of it today."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUBS = ROOT / "python" / "rooflab" / "_core"
WRITER = ROOT / "tests" / "stubs.py"


def stub(path):
    """The stub's text, the same for every Python: from 3.13 on, capsules have a type in the standard library."""
    text = re.sub(r"\b(?<!\.)types\.CapsuleType", "typing_extensions.CapsuleType", path.read_text(encoding="utf-8"))
    return re.sub(r"^import (types|typing_extensions)\n", "", text, flags=re.MULTILINE)


def test_stubs_are_current(tmp_path):
    pytest.importorskip("pybind11_stubgen")
    command = [sys.executable, str(WRITER), "--output", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    made = {path.name: stub(path) for path in (tmp_path / "rooflab" / "_core").glob("*.pyi")}
    kept = {path.name: stub(path) for path in STUBS.glob("*.pyi")}
    assert made == kept, "stale: python tests/stubs.py"
