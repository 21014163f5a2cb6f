"""Control groups: where they can be made, what is written there, and that they hold where this machine has them."""

import errno
import os
from pathlib import Path

import pytest
from grading.demo_lab import RIGHT, grade_one

from rooflab.grading.jail import cgroup, jail, sandbox
from rooflab.grading.lab.model import Limits

MOUNTS = """25 30 0:23 / /sys rw,nosuid shared:7 - sysfs sysfs rw
31 24 0:26 {root} /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
"""


@pytest.mark.parametrize(
    "root, cgroup_text, folder",
    [
        ("/", "0::/user.slice/run-1.scope\n", "/sys/fs/cgroup/user.slice/run-1.scope"),
        ("/", "0::/\n", "/sys/fs/cgroup"),
        ("/docker/ab", "0::/docker/ab/mine\n", "/sys/fs/cgroup/mine"),
        ("/docker/ab", "0::/elsewhere\n", None),
        ("/", "4:memory:/x\n1:cpu:/\n", None),
    ],
)
def test_the_group_of_this_process(root, cgroup_text, folder):
    found = cgroup.own_folder(MOUNTS.format(root=root), cgroup_text)
    assert found == (Path(folder) if folder else None)
    assert cgroup.own_folder(MOUNTS.splitlines()[0], cgroup_text) is None, "no cgroup2 is mounted"


@pytest.fixture
def tree(tmp_path):
    """A folder that looks like a group with all controllers."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n", encoding="ascii")
    return tmp_path


def test_the_judge_moves_aside_and_hands_out_controllers(tree):
    assert cgroup._prepared(tree) == tree
    (own,) = tree.glob("rooflab-judge-*")
    assert (own / "cgroup.procs").read_text(encoding="ascii") == "0"
    assert (tree / "cgroup.subtree_control").read_text(encoding="ascii") == "+memory +pids +cpu"
    assert cgroup._prepared(own) == tree, "what it starts finds it done"


def test_what_is_missing_is_said(tree):
    (tree / "cgroup.controllers").write_text("cpu memory\n", encoding="ascii")
    assert cgroup._prepared(tree) == f"the control group {tree} has no pids controller"
    assert not list(tree.glob("rooflab-*"))


def test_where_others_share_the_group_nothing_is_left(tree):
    (tree / "cgroup.subtree_control").mkdir()  # a folder cannot be written to, as if other processes were there
    with pytest.raises(OSError, match="directory"):
        cgroup._prepared(tree)
    assert (tree / "cgroup.procs").read_text(encoding="ascii") == "0", "the judge is back"


def test_a_group_that_others_share_is_said(tree, monkeypatch):
    written = Path.write_text

    def busy(path, text, **options):
        if path.name == "cgroup.subtree_control":  # the kernel answers so while a process is in the folder itself
            raise OSError(errno.EBUSY, "Device or resource busy")
        return written(path, text, **options)

    monkeypatch.setattr(Path, "write_text", busy)
    assert cgroup._prepared(tree) == f"other processes share the control group {tree}"
    assert (tree / "cgroup.procs").read_text(encoding="ascii") == "0", "the judge is back"


def test_the_limits_of_a_worker_are_those_of_its_question(tree, monkeypatch):
    monkeypatch.setattr(cgroup, "parent", lambda: tree)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    monkeypatch.setattr(sandbox, "library_threads", lambda: 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    group = sandbox.group(Limits(memory_gb=0.5))
    files = {path.name: path.read_text(encoding="ascii") for path in group.folder.iterdir()}
    assert files == {
        "memory.max": str(500_000_000 + jail.FOLDER_BYTES),
        "memory.swap.max": "0",
        "pids.max": "1024",
        "cpu.max": "300000 100000",
    }
    assert not group.failed_for_memory()
    (group.folder / "memory.events").write_text("low 0\nmax 9\noom 2\noom_kill 1\n", encoding="ascii")
    assert group.failed_for_memory()
    assert str(group.folder) in sandbox.command(["true"], Limits(), str(tree), False, group=group)


def test_swap_may_be_uncounted_and_a_group_without_its_other_limits_is_removed(tree):
    written = Path.write_text

    def refused(path, text, **options):
        if path.name == name:  # the kernel answers so where it has no such file
            raise PermissionError(13, "Permission denied", str(path))
        return written(path, text, **options) if path.name != "cgroup.kill" else 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_text", refused)
        name = "memory.swap.max"
        assert (cgroup.Group(tree, {name: "0", "pids.max": "9"}).folder / "pids.max").exists()
        name = "memory.max"
        with pytest.raises(PermissionError):
            cgroup.Group(tree, {name: "1"})
    assert len(list(tree.glob("rooflab-worker-*"))) == 1


def test_what_killed_judges_left_is_removed(tree):
    gone = 2**22 + 1  # no process can have this id
    for name in (f"judge-{gone}", f"worker-{gone}-ab", f"worker-{os.getpid()}-ab", f"judge-{os.getpid()}"):
        (tree / f"rooflab-{name}").mkdir()
    assert cgroup._prepared(tree) == tree
    assert {path.name for path in tree.glob("rooflab-*")} == {
        f"rooflab-judge-{os.getpid()}",
        f"rooflab-worker-{os.getpid()}-ab",
    }


def test_without_one_the_limits_of_a_process_stay(monkeypatch):
    monkeypatch.setattr(cgroup, "parent", lambda: "there is no cgroup v2 here")
    assert sandbox.group(Limits()) is None
    assert cgroup.note() == "process alone (there is no cgroup v2 here)"


here = pytest.mark.skipif(isinstance(cgroup.parent(), str), reason=f"no control group: {cgroup.parent()}")
MEMORY = """
import mmap, os
held = [os.memfd_create("held") for _ in range(40)]
for file in held:
    os.ftruncate(file, 2**27)
    mmap.mmap(file, 2**27).write(b"x" * 2**27)
"""


@here
def test_a_right_answer_in_a_group_keeps_its_points():
    assert grade_one("q1", RIGHT).earned == 5
    assert not list(cgroup.parent().glob("rooflab-worker-*")), "the group is gone"


@here
@pytest.mark.skipif(not jail.gpus() and not jail.refusal(), reason="the jail refuses files in memory before")
def test_files_in_memory_count():
    result = grade_one("q1", MEMORY + RIGHT)
    assert result.earned == 0 and "GB of memory" in result.tests[0].message
