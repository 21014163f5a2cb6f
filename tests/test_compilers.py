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


@pytest.fixture
def configured(tmp_path):
    """configured(option, ..., VARIABLE=value) -> exit code and what CMake says."""
    pybind11 = pytest.importorskip("pybind11")

    def run(*options, **environment):
        command = ["cmake", "-S", CHECKOUT, "-B", tmp_path / "build", f"-Dpybind11_DIR={pybind11.get_cmake_dir()}"]
        inherited = {name: value for name, value in os.environ.items() if name not in ("CUDACXX", "CUDA_HOME")}
        done = subprocess.run(
            [*command, *options], env=inherited | environment, capture_output=True, text=True, check=False
        )
        return done.returncode, re.sub(r"\s+", " ", done.stderr)

    return run


@pytest.mark.slow
def test_an_instruction_set_that_does_not_exist_is_refused(configured):
    code, said = configured("-DROOFLAB_CUDA=OFF", "-DROOFLAB_INSTRUCTION_SETS=avx2,avx3")
    assert code != 0 and "ROOFLAB_INSTRUCTION_SETS is 'avx2,avx3': expected some of " in said


def make_nvcc(folder, release):
    """A program that says it is nvcc."""
    nvcc = folder / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.119'\n", encoding="utf-8")
    nvcc.chmod(0o755)
    return nvcc


@pytest.mark.parametrize(("variable", "place"), [("CUDA_HOME", "toolkit"), ("CUDACXX", "toolkit/bin/nvcc")])
@pytest.mark.slow
def test_an_nvcc_that_is_too_old_is_looked_for_again(tmp_path, configured, variable, place):
    """The folder of a build stays, and a newer nvcc takes effect there."""
    nvcc = make_nvcc(tmp_path / "toolkit", "11.5")
    code, said = configured(**{variable: str(tmp_path / place)}, ROOFLAB_CUDA="auto")
    assert code == 0 and f"{nvcc} is that of CUDA 11.5" in said
    assert str(nvcc) not in (tmp_path / "build" / "CMakeCache.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", ["/absent/nvcc", "g++ -O2"])
@pytest.mark.slow(id=["/absent/nvcc"])
def test_an_nvcc_in_the_environment_that_cannot_be_taken_is_named(configured, value):
    code, said = configured(CUDACXX=value, ROOFLAB_CUDA="auto")
    assert code != 0 and f"CUDACXX is '{value}': expected the path of nvcc alone" in said


@pytest.mark.slow
def test_another_nvcc_needs_another_folder(tmp_path, configured):
    """CMake would go on with the former one."""
    nvcc = make_nvcc(tmp_path / "nvidia" / "cu13", "13.0")
    (tmp_path / "nvidia" / "__init__.py").touch()
    before = {"ROOFLAB_CUDA": "wheels", "PYTHONPATH": str(tmp_path)}
    code, said = configured("-DROOFLAB_NVCC=/former/nvcc", **before)
    assert code != 0
    assert (
        f"{tmp_path}/build holds a build by /former/nvcc, and this one is by {nvcc}: delete that folder first" in said
    )


@pytest.mark.parametrize("variable", ["off", "OFF", "offf"])
@pytest.mark.slow(id=["OFF"])
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
