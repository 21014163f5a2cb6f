"""Grading inside a Docker container, with the options that the instructors' page gives."""

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from grading.demo_lab import SOURCE

import rooflab
from rooflab.cli import main
from rooflab.grading.jail import jail, worker_command

ROOT = Path(__file__).parents[2]
IMAGE = "rooflab-test:latest"


def docker(*arguments, **more):
    return subprocess.run(["docker", *arguments], capture_output=True, **more)


@pytest.fixture(scope="module")
def image():
    """An empty image: the container sees this machine's programs, and can write to none of their folders."""
    if jail.refusal():
        pytest.skip(jail.refusal())
    if not shutil.which("docker") or docker("info", timeout=60).returncode:
        pytest.skip("there is no Docker here, or it refuses this user")
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in ("etc", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        for top in filter(os.path.islink, jail.TOP):
            link = tarfile.TarInfo(top.lstrip("/"))
            link.type, link.linkname = tarfile.SYMTYPE, os.readlink(top)
            archive.addfile(link)
        archive.add("/etc/ld.so.cache", "etc/ld.so.cache")
    assert docker("import", "-", IMAGE, input=made.getvalue()).returncode == 0
    yield IMAGE
    docker("image", "rm", IMAGE)


def documented():
    """The options of `docker run` on the instructors' page."""
    page = (ROOT / "notebooks" / "INSTRUCTORS.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"docker run (.*?) -v ", page.replace("\\\n", " "), re.DOTALL)
    return command.split()


def test_the_page_names_what_keeps_the_container_in():
    options = " ".join(documented())
    for option in ("--network none", "--read-only", "--pids-limit", "--cap-drop ALL", "--user 1000"):
        assert option in options


def test_a_notebook_is_graded_in_the_jail_inside_a_container(image, tmp_path):
    labs, handed = tmp_path / "labs", tmp_path / "handed"
    shutil.copytree(SOURCE.parent, labs)
    assert main(["lab", "build", "--labs", str(labs), "--output", str(handed)]) == 0
    for place in (tmp_path, *tmp_path.rglob("*")):
        place.chmod(0o777)
    package = [*rooflab.__path__, str(Path(rooflab.__file__).parent)]
    wanted = [path for path in jail.TOP if os.path.isdir(path) and not os.path.islink(path)]
    wanted += [sys.prefix, sys.base_prefix, *worker_command.libraries(), *package]
    folders = [
        path for path in dict.fromkeys(wanted) if not any(Path(path).is_relative_to(top) for top in jail.TOP[:1])
    ]
    seen = [word for path in ("/usr", *folders) for word in ("-v", f"{path}:{path}:ro")]
    done = docker(
        *("run", *documented(), *seen, "-v", f"{tmp_path}:/class", "-w", "/class"),
        *("-e", f"PYTHONPATH={os.pathsep.join([str(Path(package[-1]).parent), *worker_command.libraries()])}"),
        *("-e", "PYTHONDONTWRITEBYTECODE=1", image, sys.executable),
        *("-m", "rooflab", "lab", "grade", "lab9", "handed/lab9_demo.ipynb", "--labs", "labs", "--json", "grade.json"),
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "0 of 12 points" in done.stdout and "not isolated" not in done.stdout
