"""GPUs that are here, but that code in a jail cannot use: said before anything is graded, and no answer pays for it."""

import subprocess

import pytest
from grading.demo_lab import SOURCE
from grading.jailed import jailed

from rooflab.cli import lab as lab_command
from rooflab.cli import main
from rooflab.grading.jail import jail, sandbox

LABS = ["--labs", str(SOURCE.parent)]


@jailed
@pytest.mark.parametrize(
    ("devices", "driver", "says"),
    [
        (["/dev/null"], "int cuInit(int flags) { return 999; }", "(CUDA's error 999)"),
        (["/dev/null"], "int cuInit(int flags) { return 0; }", None),
        (["/dev/null"], "", "libcuda.so.1: file too short)"),
        ([], "int cuInit(int flags) { return 999; }", None),
    ],
)
def test_whether_cuda_starts_in_a_jail_is_tried(monkeypatch, tmp_path, devices, driver, says):
    """The driver is a stand-in, or an empty file. 999 is "unknown error", and more than an exit code holds."""
    monkeypatch.setattr(jail, "gpus", lambda: devices)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    tmp_path.chmod(0o755)  # root's jail runs it as nobody
    (tmp_path / "libcuda.so.1").touch()
    if driver:
        library = ["c++", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "libcuda.so.1"]
        subprocess.run(library, input=driver, text=True, check=True)
    found = sandbox.gpu_refusal()
    assert found is None if says is None else says in found


@jailed
def test_a_jail_that_does_not_end_is_told(monkeypatch):
    def late(*_, **__):
        raise subprocess.TimeoutExpired("bwrap", 60)

    monkeypatch.setattr(jail, "gpus", lambda: ["/dev/null"])
    monkeypatch.setattr(subprocess, "run", late)
    assert "timed out after 60 seconds" in sandbox.gpu_refusal()


@pytest.fixture
def hidden(monkeypatch):
    """What hides the GPUs is only written down; a jail cannot use them."""
    calls = []
    monkeypatch.setattr(jail, "hide_gpus", lambda: calls.append(True))
    monkeypatch.setattr(sandbox, "gpu_refusal", lambda: "Isolated code cannot use the GPUs.")
    monkeypatch.setattr(lab_command, "run_lab", lambda arguments: 0)
    return calls


def test_a_lab_is_run_without_them(hidden, capsys):
    assert main(["lab", "run", "lab9", *LABS]) == 0 and hidden
    assert capsys.readouterr().err == "Isolated code cannot use the GPUs. The lab is run without them.\n"


def test_trusted_code_runs_with_them(hidden, capsys):
    assert main(["lab", "run", "lab9", *LABS, "--trusted"]) == 0 and not hidden
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", [["grade", "lab9", "x.ipynb"], ["verify", "lab9"]])
def test_who_asks_for_them_is_told(hidden, capsys, command):
    assert main(["lab", *command, *LABS, "--gpu"]) == 2
    assert capsys.readouterr().err == "Isolated code cannot use the GPUs.\n" and not hidden
