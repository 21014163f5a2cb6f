"""What CUDA code is compiled for where ROOFLAB_CUDA_ARCHITECTURES does not say (csrc/cuda_architectures.cmake)."""

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
    script = tmp_path / "show.cmake"
    script.write_text(
        f'include("{ROOT}/csrc/cuda_architectures.cmake")\n'
        f'find_cuda_architectures("{tmp_path}/nvcc" found)\n'
        'message("found: ${found}")\n',
        encoding="utf-8",
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    shown = subprocess.run([CMAKE, "-P", script], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert shown.stderr.strip() == f"found: {architectures}"
