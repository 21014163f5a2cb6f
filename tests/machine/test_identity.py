"""What published figures say about their machine."""

import subprocess
from types import SimpleNamespace

import pytest

import rooflab as rl
from rooflab.machine import identity

REPORT = "NVRM version: NVIDIA UNIX {}  580.65.06  {}\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"


@pytest.mark.parametrize(
    "words",
    [("x86_64 Kernel Module", "Sun Jul 27"), ("Open Kernel Module for x86_64", "Release Build  (root@host)")],
)
def test_the_drivers_version_is_found_in_both_forms_of_the_report(tmp_path, words):
    path = tmp_path / "version"
    path.write_text(REPORT.format(*words), encoding="utf-8")
    assert identity.gpu_driver(path) == "580.65.06"
    path.write_text("NVRM: something else\n", encoding="utf-8")
    assert identity.gpu_driver(path) == "" == identity.gpu_driver(tmp_path / "absent")


def test_a_checkout_adds_its_commit_and_what_differs_from_it(tmp_path):
    def git(*words):
        options = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *options, "-C", tmp_path, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    package = tmp_path / "python" / "rooflab"
    package.mkdir(parents=True)
    (package / "kernel.py").write_text("1\n", encoding="utf-8")
    assert identity.version.__wrapped__(package) == rl.__version__
    git("init", "-q")
    assert identity.version.__wrapped__(package) == rl.__version__, "there is no commit yet"
    git("add", "-A")
    git("commit", "-qm", "first")
    clean = identity.version.__wrapped__(package)
    assert clean == f"{rl.__version__}+{git('rev-parse', 'HEAD')[:9]}"
    (tmp_path / "notes").write_text("no source", encoding="utf-8")
    assert identity.version.__wrapped__(package) == clean
    changed = set()
    for text in ("2\n", "3\n"):
        (package / "kernel.py").write_text(text, encoding="utf-8")
        changed.add(identity.version.__wrapped__(package))
    assert len(changed) == 2 and all(one.startswith(f"{clean}.") for one in changed)


def test_a_cpu_is_named_with_threads_and_instruction_set_but_no_host():
    found = identity.provenance("cpu")
    assert found == {"kind": "cpu", "name": identity.cpu_name(), "threads": rl.num_threads(), "isa": rl.cpu_isa()}


CPUINFO = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\n"


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"lscpu": "Vendor ID:   ARM\nModel name:   Neoverse-V2\nModel:   0\n"}, "Neoverse-V2"),
        ({"lscpu": "Model name:   -\n", "sysctl": "Apple M2 Pro\n"}, "Apple M2 Pro"),
        ({}, "ARM 0x41 0xd4f"),
    ],
)
def test_a_cpu_that_linux_does_not_name(said, name, tmp_path, monkeypatch):
    def run(command, **_):
        if command[0] not in said:
            raise FileNotFoundError(command[0])
        return SimpleNamespace(stdout=said[command[0]])

    monkeypatch.setattr(subprocess, "run", run)
    (tmp_path / "cpuinfo").write_text(CPUINFO, encoding="utf-8")
    assert identity.cpu_name.__wrapped__(tmp_path / "cpuinfo") == name


def test_a_gpu_is_named_with_its_driver_and_cuda(monkeypatch):
    gpus = [SimpleNamespace(name=f"GPU {i}", driver_version="13.0", runtime_version="12.8") for i in range(2)]
    monkeypatch.setattr(rl.cuda, "is_available", lambda: True)
    monkeypatch.setattr(rl.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(rl.cuda, "properties", gpus.__getitem__)
    monkeypatch.setattr(identity, "gpu_driver", lambda: "580.65.06")
    expected = {"kind": "cuda", "name": "GPU 1", "driver": "580.65.06", "cuda": "12.8"}
    assert identity.provenance("cuda:1") == expected
    monkeypatch.setattr(identity, "gpu_driver", lambda: "")
    assert identity.provenance("cuda:1") == expected | {"driver": "CUDA 13.0"}
