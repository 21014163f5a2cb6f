"""What cannot be built is refused in one sentence, before anything is compiled."""

import os
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


@pytest.mark.parametrize("name", ["ROOFLAB_CUDA", "ROOFLAB_CUPTI"])
def test_a_choice_that_does_not_exist_is_refused(tmp_path, name):
    command = ["cmake", "-S", CHECKOUT, "-B", tmp_path / "build", f"-D{name}=none"]
    environment = {key: value for key, value in os.environ.items() if key != "ROOFLAB_CUDA"}  # which goes before -D
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert f"{name} is 'none': expected one of AUTO, ON, OFF" in re.sub(r"\s+", " ", done.stderr)
    assert done.returncode != 0


def test_an_nvcc_that_is_too_old_is_looked_for_again(tmp_path):
    """The folder of a build stays, and a newer nvcc takes effect there."""
    pybind11 = pytest.importorskip("pybind11")
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 11.5, V11.5.119'\n", encoding="utf-8")
    nvcc.chmod(0o755)
    command = ["cmake", "-S", CHECKOUT, "-B", tmp_path / "build", f"-Dpybind11_DIR={pybind11.get_cmake_dir()}"]
    environment = {**os.environ, "CUDA_HOME": str(nvcc.parent), "ROOFLAB_CUDA": "auto"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{nvcc} is that of CUDA 11.5" in re.sub(r"\s+", " ", done.stderr)
    assert str(nvcc) not in (tmp_path / "build" / "CMakeCache.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("variable", ["off", "OFF", "offf"])
def test_the_variable_of_the_environment_is_read_in_small_and_capital_letters(tmp_path, variable):
    pybind11 = pytest.importorskip("pybind11")
    command = ["cmake", "-S", CHECKOUT, "-B", tmp_path / "build", f"-Dpybind11_DIR={pybind11.get_cmake_dir()}"]
    environment = {**os.environ, "ROOFLAB_CUDA": variable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if variable == "offf":
        assert "ROOFLAB_CUDA is 'offf': expected one of AUTO, ON, OFF, WHEELS" in re.sub(r"\s+", " ", done.stderr)
    else:
        assert done.returncode == 0, done.stderr
        assert "CUDA compiler" not in done.stdout
