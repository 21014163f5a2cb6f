"""`rooflab doctor`: what it says of several kinds of machine, and of this one."""

import ast
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cli.machines import APPLE, GXX, MACHINES, NO_BWRAP, OLD_GXX, REFUSED, WITHOUT_CUDA, Machine, installed

from rooflab.cli import doctor, main
from rooflab.cli.doctor import finding, page, running, tools
from rooflab.cli.doctor import installed as asked
from rooflab.cli.doctor.system import System
from rooflab.cuda.simt import toolchain

FOLDER = Path(doctor.__file__).parent


def found_on(machine):
    return {one.subject: one for one in page.findings(machine)}


def stopped(machine):
    return {what for what, subjects in page.abilities(page.findings(machine)).items() if subjects}


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_missing_has_its_mend_in_one_sentence(name):
    for one in page.findings(MACHINES[name]):
        assert (one.state == finding.GOOD) or one.mend, one
        assert re.fullmatch(r"([A-Za-z].*\.)?", one.mend) and one.mend.count(". ") == 0, one.mend
        assert one.state != finding.BAD or one.stops, "what does not work is named"


def test_a_laptop_lacks_a_gpu_alone():
    assert {one.state for one in page.findings(MACHINES["laptop"])} == {"ok"}
    assert stopped(MACHINES["laptop"]) == {finding.GPU}


def test_a_mac_lacks_what_only_linux_has():
    found = found_on(MACHINES["mac"])
    assert found["system"].found == "macOS 14.5 on arm64" and found["memory"].found == "16.0 GiB"
    assert found["compiler"].found == "Apple clang 15.0.0 (c++)"
    assert "grade on Linux" in found["jail"].mend and "Colab" in found["kernels on CPU"].mend
    assert stopped(MACHINES["mac"]) == {finding.JAIL, finding.GPU, finding.KERNELS}
    without = Machine(platform="darwin", machine="arm64", outputs={("c++", "--version"): APPLE}, asked="none")
    assert found_on(without)["compiler"].found == "none", "/usr/bin/c++ is there and compiles nothing"
    assert "`xcode-select --install`" in found_on(without)["compiler"].mend


def test_colab_has_a_gpu_that_the_build_does_not_know():
    found = found_on(MACHINES["colab"])
    assert found["GPU"].found == f"Tesla T4, 550.54.15; {WITHOUT_CUDA}"
    assert "`ROOFLAB_CUDA=wheels pip install '.[labs,cuda]'`" in found["GPU"].mend
    assert "grade on another machine, because Colab and Kaggle do not allow it." in found["jail"].mend
    assert found["compiler"].found == "clang 14.0.0-1ubuntu1.1 (clang++)"
    assert found["system"].found.endswith("on Colab, as root")
    assert stopped(MACHINES["colab"]) == {finding.GPU, finding.JAIL}
    plain = Machine(environ={"COLAB_RELEASE_TAG": "x"})
    assert found_on(plain)["GPU"].mend == "Choose one under Runtime, Change runtime type."


def test_a_cluster_is_told_what_needs_no_root():
    found = found_on(MACHINES["cluster"])
    assert "Rocky Linux 8.10" in found["system"].found and "in a job of Slurm" in found["system"].found
    assert found["compiler"].state == "no" and "ask an administrator to run `dnf install" in found["compiler"].mend
    assert "`module load gcc`" in found["compiler"].mend
    assert found["CPU"].found == "8 processors; the control group grants 1.5 of them"
    assert found["memory"].found == "2.0 GiB granted by the control group"
    assert "CMAKE_BUILD_PARALLEL_LEVEL=2 pip" in found["memory"].mend
    assert found["temporary files"].state == "no" and "export TMPDIR=" in found["temporary files"].mend
    assert "HOME" in found["home"].mend and found["disk"].state == "less"
    assert finding.INSTALL in stopped(MACHINES["cluster"])


def test_a_folder_that_starts_no_programs_stops_only_who_lacks_cmake():
    other = {"executable_folders": set(), "asked": "none"}
    assert finding.INSTALL in found_on(Machine(**other))["temporary files"].stops
    assert found_on(Machine(**other, programs={"cmake", "ninja"}))["temporary files"].state == "ok"
    assert found_on(Machine(writable={"/home/ada"}))["temporary files"].state == "no"


def test_an_old_python_gets_the_way_out():
    found = found_on(MACHINES["old ubuntu"])
    assert (
        found["Python"].state == "no" and ".uv/bin/uv venv --clear --seed --python 3.12 .venv`" in found["Python"].mend
    )
    assert found["compiler"].mend.endswith(
        "run `sudo apt-get update && sudo apt-get install -y g++`, or ask an administrator to."
    )


@pytest.mark.parametrize(
    ("files", "modules", "says"),
    [(set(), {"ensurepip"}, "python3-dev"), ({"/usr/include/python3.12/Python.h"}, set(), "python3-venv")],
)
def test_debians_python_comes_in_parts(files, modules, says):
    machine = Machine(files=files, modules=modules, asked="none")
    assert says in found_on(machine)["Python"].mend
    assert not tools.python(machine, is_installed=True).mend, "what is built already needs none of it"


def test_windows_and_its_first_linux():
    assert "`wsl --install`" in found_on(Machine(platform="win32", asked="none"))["system"].mend
    assert "WSL 1" in found_on(Machine(kernel="4.4.0-19041-Microsoft"))["system"].mend
    second = found_on(Machine(kernel="5.15.153.1-microsoft-standard-WSL2"))["system"]
    assert second.state == "ok" and second.found.endswith("in WSL")
    assert found_on(Machine(machine="riscv64"))["system"].state == "less"


def test_an_old_compiler_is_replaced_by_a_newer_one_beside_it():
    outputs = {("c++", "--version"): OLD_GXX, ("g++-12", "--version"): GXX}
    assert "`CXX=g++-12 pip install ...`" in found_on(Machine(outputs=outputs, asked="none"))["compiler"].mend
    assert found_on(Machine(outputs=outputs))["compiler"].state == "less", "it is installed already"


def test_gpus_and_the_code_that_they_run():
    gpu = ("NVIDIA H200 (sm_90, 140 GiB)", "sm_90a")
    good = running.gpu(Machine(), installed(gpus=(gpu,), driver="580.65.06"))
    assert good.found == "NVIDIA H200 (sm_90, 140 GiB), runs code for sm_90a; driver 580.65.06" and good.state == "ok"
    without = running.gpu(Machine(), installed(gpus=(("Tesla T4 (sm_75, 15 GiB)", ""),)))
    assert "no code for it" in without.found and "Build rooflab again" in without.mend and finding.GPU in without.stops
    old = running.gpu(Machine(), installed(driver="450.1", no_gpu="no CUDA device can be used: too old"))
    assert old.found == "driver 450.1; no CUDA device can be used: too old" and "update the driver" in old.mend


@pytest.mark.parametrize(
    ("place", "text", "command"),
    [
        (running.MOST, "0\n", "sysctl -w user.max_user_namespaces=15000"),
        (running.USERNS, "0\n", "sysctl -w kernel.unprivileged_userns_clone=1"),
        (running.APPARMOR, "1\n", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
        ("", "", "in a container"),
    ],
)
def test_namespaces_that_are_refused(place, text, command):
    found = running.jail(Machine(texts={place: text}), installed(no_jail=REFUSED))
    assert found.state == "less" and command in found.mend and found.stops == (finding.JAIL,)


def test_a_jail_without_the_gpus_says_so():
    found = running.jail(MACHINES["laptop"], installed(shut_gpus="Let every user open /dev/nvidia*."))
    assert found.state == "less" and found.found == "bubblewrap 0.9.0 isolates student code, without the GPUs"
    assert found.mend == "Let every user open /dev/nvidia*." and not found.stops


def test_missing_bubblewrap_is_the_administrators():
    machine = Machine(programs={"apt-get"}, outputs={})
    assert (
        "ask an administrator to run `apt-get update && apt-get install -y bubblewrap`"
        in running.jail(machine, installed(no_jail=NO_BWRAP)).mend
    )


def test_labs_without_jupyterlab_can_be_checked():
    assert found_on(Machine(modules={"nbformat", "jupytext"}))["Jupyter"].stops == (finding.NOTEBOOKS,)
    assert finding.LABS in found_on(Machine(modules={"nbformat"}))["Jupyter"].stops


def test_the_page_can_be_pasted():
    machine = MACHINES["cluster"]
    text = page.as_text(page.findings(machine))
    assert max(map(len, text.splitlines())) < 112 and text.isascii() and "ada" not in text
    for command in re.findall(r"`[^`]+`", " ".join(one.mend for one in page.findings(machine))):
        assert command in text, "a command stays on one line"
    assert "\nno    install rooflab from source: see Python, compiler, temporary files\n" in text
    assert "\nyes " not in text and "\nno    see live numbers of a GPU: see rooflab, GPU\n" in text


def test_this_machine_and_its_json(tmp_path, capsys):
    assert main(["doctor", "--json", str(tmp_path / "found")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("rooflab doctor: ") and "\nyes   start a lab and check it" in said
    told = json.loads((tmp_path / "found").read_text(encoding="utf-8"))
    assert {"compiler", "jail", "disk"} <= {one["subject"] for one in told["findings"]}
    assert told["stopped_by"][finding.LABS] == []
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert main(["doctor", "--json", str(tmp_path / "pipe")]) == 0
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode), "it is written to, not replaced"
    assert json.loads(os.read(pipe, 1 << 20)).keys() == told.keys()
    os.close(pipe)


@pytest.mark.parametrize("path", ["absent/found", "."])
def test_a_json_that_cannot_be_written_is_refused_before_the_work(path, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "findings", None)
    assert main(["doctor", "--json", str(tmp_path / path)]) == 2
    assert capsys.readouterr().err == f"rooflab doctor: no file can be written: '{tmp_path / path}'\n"


@pytest.mark.parametrize("error", [RuntimeError, PermissionError, toolchain.CompilerError])
def test_it_says_why_there_are_no_kernels_in_cells(monkeypatch, error):
    def missing(source, *, backend):
        raise error(f"{backend} was not found\nmore")

    monkeypatch.setattr(asked, "compile_cuda", missing)
    told = asked.look()
    assert told.no_cpu_kernels == "simt was not found more"
    assert told.no_gpu_kernels == ("gpu was not found more" if told.gpus else "")


def test_the_toolkit_is_the_one_that_a_build_takes():
    release = "Cuda compilation tools, release {}, V1".format
    places = {"/mine/nvcc": "13.0", "/home/cuda/bin/nvcc": "12.8", "/usr/bin/nvcc": "12.4"}
    machine = Machine(programs={"nvcc"}, outputs={(place, "--version"): release(n) for place, n in places.items()})
    assert found_on(machine)["CUDA toolkit"].found.startswith("12.4 (/usr/bin/nvcc); a build for GPUs needs 12.5")
    machine.environ = {"CUDA_HOME": "/home/cuda"}
    assert found_on(machine)["CUDA toolkit"].found == "12.8 (/home/cuda/bin/nvcc)"
    machine.environ["CUDACXX"] = "/mine/nvcc"
    assert found_on(machine)["CUDA toolkit"].found == "13.0 (/mine/nvcc)"


def test_kernels_on_the_cpu_need_gxx_with_a_gpu_too():
    gpus = (("NVIDIA H200 (sm_90, 140 GiB)", "sm_90a"),)
    without = installed(gpus=gpus, no_cpu_kernels="backend='simt' needs g++")
    found = found_on(Machine(asked=without))
    assert found["kernels on CPU"].found == f"no g++; {running.QUESTIONS} need them"
    assert "`sudo apt-get update && sudo apt-get install -y g++`" in found["kernels on CPU"].mend
    assert found["kernels on GPU"].state == "ok" and finding.KERNELS in stopped(Machine(asked=without))
    clang = running.kernels_on_cpu(Machine(programs={"g++", "dnf"}, environ={"MODULESHOME": "/opt"}), without)
    assert clang.found.startswith("backend='simt' needs g++; ")
    assert "`dnf install -y gcc-c++ libstdc++-static`" in clang.mend and "`module load gcc`" in clang.mend


def test_nvrtc_is_asked_for_where_there_is_a_gpu():
    gpus = (("NVIDIA H200 (sm_90, 140 GiB)", "sm_90a"),)
    without = running.kernels_on_gpu(installed(gpus=gpus, no_gpu_kernels="NVRTC was not found"))
    assert without.found.startswith("NVRTC was not found; ") and without.stops == (finding.KERNELS,)
    assert "`pip install 'rooflab[labs]'`" in without.mend
    assert "kernels on GPU" not in found_on(MACHINES["laptop"])


def test_it_runs_before_anything_is_installed():
    """As a folder, by a Python that finds neither rooflab nor what it needs."""
    bare = [sys.executable, "-I", "-S", str(FOLDER)]
    done = subprocess.run(bare, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0 and done.stderr == ""
    assert "cannot be imported (No module named 'rooflab')" in done.stdout


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_an_old_python_can_read_it(path):
    """It tells an old Python that it is too old."""
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = re.findall(r"^(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert path.name == "installed.py" or set(imported) <= sys.stdlib_module_names


@pytest.mark.parametrize("version", ["(2, 7, 18)", "(3, 6, 15)"])
def test_a_python_that_cannot_read_it_is_told_so(version):
    code = f"import runpy, sys; sys.version_info = {version}; runpy.run_path({str(FOLDER)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    older = ".".join(version[1:].split(", ")[:2])
    assert re.fullmatch(rf"rooflab needs Python 3.11 or newer, and this is {older}: run .*\n.*\.\n", done.stderr)
    main_file = (FOLDER / "__main__.py").read_text(encoding="ascii")
    assert not re.search(r"__future__|\bf[\"']|: \w+ =|->", main_file), "Python 2 reads it too"


@pytest.mark.parametrize(
    "place, command",
    [
        (".", "`pip install -v '.[labs]'`"),
        ("./my rooflab", "`pip install -v './my rooflab[labs]'`"),
        ("", '`pip install -v "$(ls rooflab-*.whl)[labs]"` in the folder with the wheel'),
    ],
)
def test_what_is_not_installed_is_installed_from_where_it_lies(place, command):
    found = found_on(Machine(sources=place, asked="No module named 'rooflab'", modules={"ensurepip"}))
    assert found["rooflab"].mend == f"Install it in this environment, and read what it says: {command}."
    assert command.replace("-v ", "") in found["Jupyter"].mend, "no other package of the public index"
    assert "`pip install 'rooflab[labs]'`" in found_on(Machine(modules=set()))["Jupyter"].mend, "its own extra"


def test_it_knows_its_folder(tmp_path, monkeypatch):
    release = tmp_path / "my release" / "rooflab"
    shutil.copytree(FOLDER, release / "python" / "rooflab" / "cli" / "doctor")
    said = {}
    for name in ("pyproject.toml", "INSTRUCTIONS.md"):
        (release / name).write_text("", encoding="utf-8")
    for place in (release, release.parent, tmp_path, FOLDER):
        bare = [sys.executable, "-I", "-S", str(release / "python" / "rooflab" / "cli" / "doctor")]
        page = subprocess.run(bare, capture_output=True, text=True, cwd=place).stdout
        said[place] = re.search(r"`pip install -v (.*)`", page)[1]
    absolute = f"'{release}[labs]'"
    assert list(said.values()) == ["'.[labs]'", "'./rooflab[labs]'", "'./my release/rooflab[labs]'", absolute]


def test_a_machine_that_tells_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    system = System()
    assert system.text("/absent") == system.output("absent") == system.which("absent") == ""
    assert system.free_bytes("/absent") is None
    assert not system.can_write("/absent") and not system.runs_programs("/absent")
    assert system.can_write(str(tmp_path)) and not list(tmp_path.iterdir())
