"""The jail around student code: namespaces of its own, made by bubblewrap.

Inside are the libraries and rooflab's package, which can be read, and one folder of limited size, which can be written.
There is no network, no other process, no home and no lab source. The only devices are GPUs, where they were asked for.
Nothing of the kernel's own, in /proc or /sys, can be written. Root's jails run the code as nobody (see `user`).
Where no jail can be made, `refusal` says why in a sentence, and nothing is graded unless the instructor trusts the
code.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import rooflab
from rooflab.cuda.simt import toolchain
from rooflab.grading.jail import enter, namespaces, seccomp, worker_command

FOLDER_BYTES = 2**28
UNCOUNTED = ("--ro-bind", "/dev/null", "/dev/zero")  # a shared map of it would be memory that no limit counts
TOP = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SETTINGS = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/fonts"),
    *("/etc/localtime", "/sys/devices/system/cpu", "/sys/devices/system/node"),
)
LIBRARY_PATHS = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")
INSTALL = "apt-get install -y bubblewrap"
TRUST = "or grade with --trusted if it is code that you would run yourself"


def command(argv: Iterable[str], folder: str, hidden: Iterable[str] = (), shared: Iterable[str] = ()) -> list[str]:
    """The command that runs `argv` in the jail, as USER. There `folder` can be written to, and begins with the files
    that it holds outside. The folders `hidden` are empty. The folders `shared` are those outside, and can be written
    to if they were `given`. `enter` has to run the command, with `user`.
    """
    if not user():
        return around(argv, folder, hidden, shared)
    leaves = [sys.executable, "-I", "-S", os.path.abspath(namespaces.__file__), enter.USER]
    return around([*leaves, *argv], folder, hidden, shared, namespaces.TO_LEAVE_ROOT)


def around(
    argv: Iterable[str],
    folder: str,
    hidden: Iterable[str] = (),
    shared: Iterable[str] = (),
    capabilities: Iterable[str] = (),
) -> list[str]:
    """The command of a jail around `argv`, which is trusted: where the jail is root's, it is root there."""
    alone = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    return [
        shutil.which("bwrap") or "bwrap",  # by its path: the worker's own PATH is shorter
        *alone,
        *(() if user() else ("--unshare-user", "--uid", enter.USER, "--gid", enter.USER)),
        *("--cap-drop", "ALL", *(word for name in capabilities for word in ("--cap-add", name))),
        *("--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"),
        *_readable(),
        *(word for place in hidden if os.path.isdir(place) for word in ("--tmpfs", place, "--remount-ro", place)),
        *("--perms", "0777", "--size", str(FOLDER_BYTES), "--tmpfs", folder),
        *(word for path in sorted(Path(folder).iterdir()) for word in ("--ro-bind", str(path), str(path))),
        *(word for place in shared for word in ("--dir", os.path.dirname(place), "--bind", place, place)),
        *_gpus(),
        *_unwritable(),
        *UNCOUNTED,
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", folder, "--"),
        *argv,
    ]


def user() -> str:
    """enter.USER where the judge is root, whose jails have a user of their own for the code; "" for any other judge.

    A rootless container may hold its root alone. That one is an ordinary user outside, and no other can be mapped.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return ""
    _inside, outside, count, *others = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    return enter.USER if others or count != "1" or outside == "0" else ""


def given(folder: str) -> str:
    """`folder`, with what is in it, after the code in a jail has become its owner, so that it can be shared."""
    if user():
        for path in (Path(folder), *Path(folder).rglob("*")):
            os.chown(path, enter.NOBODY, enter.NOBODY, follow_symlinks=False)
    return folder


@functools.cache
def refusal() -> str | None:
    """Why there can be no jail here, and what to do, in a sentence; None where there can be one."""
    if sys.platform != "linux":
        return f"Student code can be isolated only on Linux: grade there, {TRUST}."
    if not shutil.which("bwrap"):
        return f"bubblewrap, which isolates student code, is missing: have an administrator run {INSTALL}, {TRUST}."
    try:
        seccomp.program()
        with tempfile.TemporaryDirectory() as folder:
            tried = enter.command(command([sys.executable, "-I", "-S", "-c", ""], folder), {}, user=user())
            done = subprocess.run(tried, capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Student code cannot be isolated here ({error}): grade on another machine, {TRUST}."
    if done.returncode == 0:
        return None
    said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
    as_user = " or grade as an ordinary user," if user() else ""
    return (
        f"bubblewrap is not allowed to isolate student code here ({said}): let it use user namespaces (on Ubuntu by an "
        f"AppArmor profile, in a container by its options),{as_user} {TRUST}."
    )


def _readable() -> list[str]:
    """Options that bring in what a worker has to read: system, interpreter, libraries and rooflab.

    Each has its --dir, because bubblewrap makes a folder above a bind for its own user alone.
    """
    options: list[str] = []
    for top in TOP:
        if os.path.islink(top):
            options += ["--symlink", os.readlink(top), top]
        elif os.path.isdir(top):
            options += ["--ro-bind", top, top]
    for path in SETTINGS:
        options += ["--dir", os.path.dirname(path), "--ro-bind-try", path, path]
    prefixes = [f"{prefix}/{name}" for prefix in (sys.prefix, sys.base_prefix) for name in ("bin", "lib", "pyvenv.cfg")]
    named = [path for name in LIBRARY_PATHS for path in os.environ.get(name, "").split(":") if path]
    own = [os.path.dirname(sys.executable), os.path.dirname(__file__), *rooflab.__path__]
    places = (*prefixes, *own, *named, *worker_command.libraries(), *map(str, toolchain.folders()))
    within = [*TOP]
    for path in sorted({os.path.abspath(place) for place in places}, key=len):
        if os.path.exists(path) and not any(Path(path).is_relative_to(place) for place in within):
            options += ["--dir", os.path.dirname(path), "--ro-bind", path, path]
            within.append(path)
    return options


def hide_gpus() -> None:
    """Hide the GPUs from this process and those that it starts. It has to be called before the first use of CUDA."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def gpus() -> list[str]:
    """The device files of the GPUs and of their driver; none where CUDA_VISIBLE_DEVICES hides all GPUs."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return []
    return sorted(str(path) for path in Path("/dev").glob("nvidia*"))


def _unwritable() -> list[str]:
    """Options that keep /proc from being written. Where GPUs are, only what is the kernel's own is kept: CUDA does not
    start where a process cannot write to its own files (it names its threads in /proc/self/task/*/comm).
    """
    if not gpus():
        return ["--remount-ro", "/proc"]
    of_kernel = [path for path in sorted(Path("/proc").iterdir()) if not path.name.isdigit() and not path.is_symlink()]
    written = [str(path) for path in of_kernel if path.is_dir() or path.stat().st_mode & 0o222]
    return [word for path in written for word in ("--ro-bind", path, path)]


def _gpus() -> list[str]:
    """Options that bring in the GPUs and what their driver reads."""
    devices = gpus()
    options = [word for path in devices for word in ("--dev-bind", path, path)]
    return [*options, "--ro-bind", "/sys", "/sys"] if devices else []
