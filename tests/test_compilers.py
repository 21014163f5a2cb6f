"""A compiler that is too old is refused in one sentence, before anything is compiled."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("g++")), reason="needs cmake and g++, which name themselves"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("macros", "name"),
    [
        ({"__GNUC__": 10, "__GNUC_MINOR__": 2, "__GNUC_PATCHLEVEL__": 1}, "GNU 10.2.1"),
        ({"__clang__": 1, "__clang_major__": 13, "__clang_minor__": 0, "__clang_patchlevel__": 1}, "Clang 13.0.1"),
    ],
)
def test_a_compiler_that_is_too_old_is_named(tmp_path, macros, name):
    compiler = tmp_path / "old"
    options = " ".join(f"-U{macro} -D{macro}={value}" for macro, value in macros.items())
    compiler.write_text(f'#!/bin/sh\nexec g++ {options} "$@"\n', encoding="utf-8")
    compiler.chmod(0o755)
    command = ["cmake", "-S", CHECKOUT, "-B", tmp_path / "build", f"-DCMAKE_CXX_COMPILER={compiler}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = re.sub(r"\s+", " ", done.stderr)
    assert done.returncode != 0
    assert f"rooflab needs g++ 11, clang 14 or Apple clang 15, or a newer one; found {name} ({compiler})" in said
    assert said.count("CMake Error") == 1
