"""What CUDA code is compiled for where ROOFLAB_CUDA_ARCHITECTURES does not say, and by which nvcc
(csrc/cuda_architectures.cmake).
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CMAKE = shutil.which("cmake")
EVERYWHERE = "75-real;80-real;90a-real;90-virtual"

pytestmark = pytest.mark.skipif(CMAKE is None, reason="needs cmake")


def program(path, text):
    path.write_text(f"#!/bin/sh\necho '{text}'\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("capabilities", "architectures"),
    [
        ("7.5", "75"),
        ("8.0", "80"),
        ("8.9", "80"),
        ("8.6\n8.0", "80"),
        ("9.0", "90a-real;90-virtual"),
        ("12.0", "120"),
        ("12.0\n7.5", "120;75"),
        ("99.9", "90-virtual"),  # nvcc does not know it
        ("6.1", EVERYWHERE),
        ("No devices were found", EVERYWHERE),
    ],
)
def test_code_is_compiled_for_the_gpus_of_this_machine(tmp_path, capabilities, architectures):
    program(tmp_path / "nvidia-smi", capabilities)
    program(tmp_path / "nvcc", "sm_75\nsm_80\nsm_86\nsm_89\nsm_90\nsm_120")
    assert shown(tmp_path, "find_cuda_architectures") == f"found: {architectures}"


def shown(folder, function):
    """What a function of the file says of the nvcc in a folder."""
    script = folder / "show.cmake"
    call = f'{function}("{folder}/nvcc" found)\nmessage("found: ${{found}}")\n'
    script.write_text(f'include("{ROOT}/csrc/cuda_architectures.cmake")\n{call}', encoding="utf-8")
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run([CMAKE, "-P", script], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    return ran.stderr.strip()


@pytest.mark.parametrize(("version", "is_old"), [("11.5", True), ("12.4", True), ("12.5", False), ("13.0", False)])
def test_an_nvcc_that_is_too_old_is_refused(tmp_path, version, is_old):
    program(tmp_path / "nvcc", f"Cuda compilation tools, release {version}, V{version}.119")
    fault = f" {tmp_path}/nvcc is that of CUDA {version}, and rooflab needs 12.5 or newer"
    assert shown(tmp_path, "find_fault_of_nvcc") == "found:" + fault * is_old
