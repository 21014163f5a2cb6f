"""Labs on a Mac, as far as this can be tried on Linux: what macOS lacks is taken away from every interpreter."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from grading.demo_lab import SOURCE

import rooflab

LABS = ["--labs", str(SOURCE.parent)]
HERE = Path(__file__).parent
ONLY_ON_LINUX = "Student code can be isolated only on Linux"


@pytest.fixture(scope="module")
def mac(tmp_path_factory):
    """Runs the command `rooflab`, or other code, in an environment whose interpreters are all like a Mac's."""
    folder = tmp_path_factory.mktemp("mac")
    venv.create(folder / "env", symlinks=True)
    python = folder / "env" / "bin" / "python"
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    shutil.copy(HERE / "as_on_a_mac.py", packages)
    places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(Path(rooflab.__file__).parents[1])]
    (packages / "mac.pth").write_text("\n".join([*dict.fromkeys(places), "import as_on_a_mac"]), encoding="utf-8")

    where = os.environ | {"JUPYTER_PATH": f"{sys.prefix}/share/jupyter"}  # of the templates of reports

    def run(*arguments):
        return subprocess.run([python, *arguments], capture_output=True, text=True, cwd=folder, env=where)

    run.folder = folder
    return run


def test_it_lacks_what_a_mac_lacks(mac):
    code = "import ctypes, os, sys; print(sys.platform, hasattr(os, 'sched_getaffinity')); open('/proc/stat')"
    done = mac("-c", code)
    assert done.stdout == "darwin False\n" and "No such file" in done.stderr
    assert "symbol not found" in mac("-c", "import ctypes; ctypes.CDLL(None).prctl").stderr


@pytest.mark.slow
def test_a_lab_is_started_checked_and_run(mac):
    assert mac("-m", "rooflab", "lab", "build", *LABS, "--output", "mine").returncode == 0
    checked = mac("-m", "rooflab", "lab", "check", "mine/lab9_demo.ipynb", "--json", "checked")
    assert checked.returncode == 1 and checked.stderr == "" and "0 of 12 points" in checked.stdout
    ran = mac("-m", "rooflab", "lab", "run", "lab9", *LABS, "--output", "report", "--json", "ran")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith("The lab's own code runs without isolation. " + ONLY_ON_LINUX)
    assert "12 of 12 points" in ran.stdout and "not isolated" in ran.stdout
    assert json.loads((mac.folder / "ran").read_text(encoding="utf-8"))["isolated"] is False
    assert "not isolated" in (mac.folder / "report" / "lab9_demo.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_grading_others_is_refused_in_one_sentence(mac):
    assert mac("-m", "rooflab", "lab", "build", *LABS, "--output", "handed").returncode == 0
    for command in (["lab", "grade", "lab9", "handed/lab9_demo.ipynb"], ["grade", "lab9", "handed"]):
        done = mac("-m", "rooflab", *command, *LABS)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and ONLY_ON_LINUX in done.stderr


@pytest.mark.slow
def test_the_machine_is_known_as_far_as_it_tells(mac):
    code = (
        "from rooflab import host\nfrom rooflab.machine import load\n"
        "print(host.allowed_cpus(), host.cpu_cache_bytes(), load.read())"
    )
    done = mac("-c", code)
    assert done.stdout.endswith(f" {32 * 2**20} None\n") and done.stderr == ""
    doctor = mac("-m", "rooflab", "doctor")
    assert doctor.returncode == 0 and ONLY_ON_LINUX in doctor.stdout and "grade on Linux" in doctor.stdout


@pytest.mark.slow
def test_processor_time_is_what_ps_says(mac):
    code = (
        "import os\nfrom rooflab import host\n"
        "while os.times().user < 2: pass\n"
        "print(1 < host.cpu_seconds(os.getpid()) < 100, host.cpu_seconds(2**22 + 1))"
    )
    assert mac("-c", code).stdout == "True 0.0\n"
