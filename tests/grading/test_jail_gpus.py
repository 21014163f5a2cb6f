"""GPUs that are here, but that code in a jail cannot use: said before anything is graded, and no answer pays for it."""

import pytest
from grading.demo_lab import SOURCE
from grading.jailed import jailed

from rooflab.cli import lab as lab_command
from rooflab.cli import main
from rooflab.grading import jail

LABS = ["--labs", str(SOURCE.parent)]


@jailed
@pytest.mark.parametrize(
    ("devices", "program", "says"),
    [
        (["/dev/null"], "raise SystemExit(100)", "CUDA's error 100"),
        (["/dev/null"], "", None),
        ([], "raise SystemExit(100)", None),
    ],
)
def test_what_a_jail_can_start_is_tried(monkeypatch, devices, program, says):
    monkeypatch.setattr(jail, "gpus", lambda: devices)
    monkeypatch.setattr(jail, "STARTS_CUDA", program)
    found = jail.gpu_refusal()
    assert found is None if says is None else says in found


@pytest.fixture
def hidden(monkeypatch):
    """What hides the GPUs is only written down; a jail cannot use them."""
    calls = []
    monkeypatch.setattr(jail, "hide_gpus", lambda: calls.append(True))
    monkeypatch.setattr(jail, "gpu_refusal", lambda: "Isolated code cannot use the GPUs.")
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
