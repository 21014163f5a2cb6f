"""The jail, without the guard inside the interpreter: what an unguarded program can see, write and call."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from grading.demo_lab import SOURCE
from grading.jailed import gone, jailed, printed_by_a_fork, printed_by_a_program, run

from rooflab.grading.jail import enter, jail, sandbox, seccomp
from rooflab.grading.lab.model import Limits

EPERM, ENOSYS = 1, 38


@pytest.fixture(params=[printed_by_a_program, printed_by_a_fork])
def printed(request):
    """What a program prints, once started in the jail and once forked into it."""
    return request.param


@jailed
def test_bubblewrap_is_found_wherever_it_is_installed(tmp_path, monkeypatch):
    place, folder = tmp_path / "bin", tmp_path / "folder"
    place.mkdir(), folder.mkdir()
    (place / "bwrap").symlink_to(shutil.which("bwrap"))
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setattr(sandbox, "environment", lambda folder: {"PATH": "/nowhere"})
    assert printed_by_a_program("print(1)", folder) == "1"


@jailed
def test_nothing_of_the_checkout_but_the_package_can_be_seen(printed, tmp_path):
    with tempfile.NamedTemporaryFile() as beside:
        places = [str(SOURCE), str(Path(__file__).parent), "/home", "/root/.ssh", "/var", "/etc/shadow", beside.name]
        code = f"import os; print(*(os.path.exists(place) for place in {places!r}))"
        assert set(printed(code, tmp_path).split()) == {"False"}


@jailed
def test_a_folder_of_sources_among_the_libraries_is_empty(printed, tmp_path, monkeypatch):
    library = tmp_path / "site-packages"
    (library / "notebooks").mkdir(parents=True)
    (library / "notebooks" / "answers.py").touch()
    (library / "module.py").touch()
    monkeypatch.syspath_prepend(library)
    folder = tmp_path / "folder"
    folder.mkdir()
    code = f"import os; print(os.listdir({str(library / 'notebooks')!r}), os.listdir({str(library)!r}))"
    assert "answers.py" in printed(code, folder), "the folder is among the libraries, so there is something to hide"
    seen = printed(code, folder, [str(library / "notebooks")])
    assert "answers.py" not in seen and "module.py" in seen


@jailed
def test_no_capability_is_left_and_none_can_be_had(printed, tmp_path):
    code = """
    import re
    print(*re.findall(r"Cap(?:Prm|Eff|Bnd|Amb):\\s*(\\w+)", open("/proc/self/status").read()))
    """
    assert printed(code, tmp_path).split() == 4 * ["0" * 16]


@jailed
def test_files_are_written_in_the_folder_alone_and_are_gone_after(printed, tmp_path):
    (tmp_path / "given").write_text("from outside", encoding="utf-8")
    code = f"""
    import os
    print(open("given").read())
    open("mine", "w").write("x")
    print(os.getcwd() == {str(tmp_path)!r})
    library = os.path.dirname(os.__file__)
    for place in ("/", "/usr", "/usr/lib", "/etc", "/dev", "/dev/shm", "/tmp", library, "/proc", "/sys"):
        try:
            open(os.path.join(place, "rooflab_was_here"), "w")
            print("written:", place)
        except OSError:
            pass
    for place in ("/", "/usr", "/dev", "/dev/shm"):  # nobody is refused more than a user would be
        if not os.statvfs(place).f_flag & os.ST_RDONLY:
            print("can be written:", place)
    try:
        open("given", "a")
        print("written: given")
    except OSError:
        pass
    """
    assert printed(code, tmp_path).split("\n") == ["from outside", "True"]
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


@jailed
@pytest.mark.parametrize("gpus", [None, ["/dev/null"]])
def test_nothing_of_the_kernels_can_be_opened_for_writing(printed, tmp_path, monkeypatch, gpus):
    """Files are opened and closed, never written. Each of /proc's settings is the whole machine's. What is there of a
    process can be written where GPUs are.
    """
    if gpus:
        monkeypatch.setattr(jail, "gpus", lambda: gpus)
    code = """
    import os, stat
    opened = seen = 0
    for top in ("/proc", "/sys", "/dev"):
        for folder, _, files in os.walk(top):
            for path in (os.path.join(folder, name) for name in files):
                try:
                    if stat.S_ISLNK(os.lstat(path).st_mode):
                        continue
                    seen += 1
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
                    print(path)
                except OSError:
                    pass
    print(seen > 500, os.access("/proc/sys/kernel/core_pattern", os.R_OK))
    """
    *opened, looked = printed(code, tmp_path).split("\n")
    assert looked == "True True"
    own = {f"/dev/{name}" for name in ("null", "full", "random", "urandom", "tty", "console", "pts/ptmx")}
    of_processes = {path for path in opened if re.match("/proc/[0-9]+/", path)}
    assert any(path.endswith("/comm") for path in of_processes) == bool(of_processes) == bool(jail.gpus())
    others = [path for path in opened if path not in own | of_processes]
    assert [path for path in others if not path.startswith("/dev/nvidia")] == []


@jailed
@pytest.mark.skipif(not jail.user(), reason="the judge is not root")
def test_roots_worker_is_nobody_outside(printed, tmp_path):
    """So the kernel refuses it what is root's, even if the jail left it writable."""
    code = """
    import os
    print(os.getresuid(), os.getresgid(), os.getgroups())
    print(*open("/proc/self/uid_map").read().split()[3:], *open("/proc/self/gid_map").read().split()[3:])
    print([os.access(path, os.R_OK) for path in ("/proc/1/environ", "/proc/1/mem")])
    """
    mapped = f"{enter.USER} {enter.NOBODY} 1"
    ids = f"({', '.join([enter.USER] * 3)})"
    assert printed(code, tmp_path).split("\n") == [f"{ids} {ids} []", f"{mapped} {mapped}", "[False, False]"]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="a test for root")
@pytest.mark.parametrize(
    "text, user",
    [
        ("0 0 4294967295", enter.USER),
        ("0 1000 1\n1 100000 65536", enter.USER),  # a rootless container with users of its own
        ("0 0 1", enter.USER),  # root alone, but it is the machine's: `enter` will fail
        ("0 1000 1", ""),  # an ordinary user's container, whose root is that user
    ],
)
def test_which_root_is_the_machines(monkeypatch, text, user):
    monkeypatch.setattr(Path, "read_text", lambda *args, **options: text)
    assert jail.user() == user


@jailed
@pytest.mark.skipif(not jail.user(), reason="the judge is not root")
def test_root_that_may_not_become_another_user_is_told_so(monkeypatch):
    monkeypatch.setattr(jail, "user", lambda: "x")  # no number, so the kernel refuses the map
    jail.refusal.cache_clear()
    try:
        assert "(root cannot run code as nobody: Invalid argument)" in jail.refusal()
        assert "or grade as an ordinary user, or grade with --trusted" in jail.refusal()
    finally:
        jail.refusal.cache_clear()


@jailed
def test_the_folder_has_a_size(printed, tmp_path):
    code = """
    try:
        for number in range(8):
            open(str(number), "wb").write(bytes(2**26))
    except OSError as error:
        print(number, error.errno)
    """
    assert printed(code, tmp_path) == f"{jail.FOLDER_BYTES // 2**26} 28"


@jailed
def test_there_are_no_other_processes_no_network_and_no_privileges(printed, tmp_path):
    code = """
    import os, socket
    print(os.getuid(), os.getgid())
    print(len([name for name in os.listdir("/proc") if name.isdigit()]) <= 3, os.getppid() <= 1)
    print([name for _, name in socket.if_nameindex()])
    print({line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")})
    print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("NoNewPrivs", "Seccomp:"))])
    """
    assert printed(code, tmp_path).split("\n") == [
        f"{enter.USER} {enter.USER}",
        "True True",
        "['lo']",
        "{'0000000000000000'}",
        "['1', '2']",
    ]


@jailed
@pytest.mark.parametrize("machine", [platform.machine()])
def test_system_calls_that_are_refused(printed, tmp_path, machine):
    column = seccomp.MACHINES[machine][0]
    numbers = {name: both[column] for name, both in seccomp.REFUSED.items() if both[column] >= 0}
    for name in seccomp.FOR_GPUS if jail.gpus() else ():
        del numbers[name]
    code = f"""
    import ctypes
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    for name, number in {numbers!r}.items():
        ctypes.set_errno(0)
        assert syscall(number, 0, 0, 0, 0, 0) == -1
        print(name, ctypes.get_errno())
    for number in ({seccomp.CLONE[column]}, {seccomp.CLONE3[column]}):
        ctypes.set_errno(0)
        assert syscall(number, 17, 0, 0, 0, 0) == -1
        print(ctypes.get_errno())
    """
    *calls, clone, clone3 = printed(code, tmp_path).split("\n")
    assert dict(line.split() for line in calls) == dict.fromkeys(numbers, str(EPERM))
    assert (clone, clone3) == (str(EPERM), str(ENOSYS))


@jailed
@pytest.mark.skipif(bool(jail.gpus()), reason="the driver of a GPU may share memory")
def test_no_memory_can_be_taken_past_the_limits(printed, tmp_path):
    """RLIMIT_DATA counts a process's own pages, and neither those it shares, nor a stack's, nor the kernel's."""
    code = """
    import ctypes, mmap, resource, socket
    private, shared, anonymous, grows = 2, 1, 0x20, 0x100
    def shared_file(path):
        with open(path, "r+b") as file:
            return mmap.mmap(file.fileno(), 1 << 20, mmap.MAP_SHARED)
    def of_system_v(name, *arguments):
        if getattr(ctypes.CDLL(None, use_errno=True), name)(0, *arguments, 0o1600) < 0:
            raise OSError(ctypes.get_errno(), name)
    def stack():
        try:
            resource.setrlimit(resource.RLIMIT_STACK, (1 << 24, 1 << 24))
        except ValueError as error:
            raise OSError from error
    takes = [
        lambda: mmap.mmap(-1, 1 << 20),
        lambda: mmap.mmap(-1, 1 << 20, shared | anonymous),
        lambda: mmap.mmap(-1, 1 << 20, private | anonymous | grows),
        lambda: shared_file("/dev/zero"),
        lambda: of_system_v("shmget", 1 << 20),
        lambda: of_system_v("semget", 1000),
        lambda: of_system_v("msgget"),
        stack,
        lambda: socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22),
    ]
    for number, take in enumerate(takes):
        try:
            take()
            print("taken:", number)
        except OSError:
            pass
    mmap.mmap(-1, 1 << 20, private | anonymous)
    print("its own")
    """
    assert printed(code, tmp_path) == "its own"


@jailed
def test_no_program_can_be_started_and_threads_can(printed, tmp_path):
    code = """
    import os, subprocess, threading
    thread = threading.Thread(target=lambda: print("a thread"))
    thread.start(), thread.join()
    true = "/usr/bin/true"
    for start, *arguments in ((os.fork,), (subprocess.run, [true]), (os.posix_spawn, true, [true], dict())):
        try:
            start(*arguments)
            print("started")
        except OSError as error:
            print(error.errno)
    """
    assert printed(code, tmp_path).split("\n") == ["a thread", "1", "1", "1"]


@jailed
def test_where_processes_may_be_started_namespaces_may_not(tmp_path):
    code = """
    import ctypes, os, subprocess
    print(subprocess.run(["/usr/bin/echo", "a program"], capture_output=True, text=True).stdout.strip())
    print(subprocess.run(["/usr/bin/unshare", "--user", "/usr/bin/true"], stderr=subprocess.DEVNULL).returncode)
    clone, new_user, sigchld = CLONE, 0x10000000, 17
    print(ctypes.CDLL(None, use_errno=True).syscall(clone, new_user | sigchld, 0, 0, 0, 0), ctypes.get_errno())
    """
    number = seccomp.CLONE[seccomp.MACHINES[platform.machine()][0]]
    done = run(code.replace("CLONE", str(number), 1), tmp_path, processes=True)
    assert done.stdout.split("\n") == ["a program", "1", f"-1 {EPERM}", ""], done.stderr


@jailed
def test_a_shared_folder_is_the_one_outside(tmp_path):
    shared, folder = tmp_path / "shared", tmp_path / "folder"
    shared.mkdir(), folder.mkdir()
    done = run(f"open({str(shared / 'written')!r}, 'w').write('inside')", folder, shared=[jail.given(str(shared))])
    assert done.returncode == 0, done.stderr
    assert (shared / "written").read_text(encoding="utf-8") == "inside"
    assert (shared / "written").stat().st_uid == (enter.NOBODY if jail.user() else os.getuid())


@jailed
def test_the_limits_hold_inside(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # the driver of a GPU needs more memory
    # 0.5 GB, and up to 1.4 for the threads of libraries
    assert "MemoryError" in run("bytearray(4 * 10**9)", tmp_path).stderr
    raised = run("import resource as r; r.setrlimit(r.RLIMIT_DATA, (2**40, 2**40))", tmp_path)
    assert "ValueError" in raised.stderr or "PermissionError" in raised.stderr


@jailed
def test_it_dies_with_the_judge(tmp_path):
    argv = [sys.executable, "-I", "-c", "import time; print('up', flush=True); time.sleep(60)"]
    command = sandbox.command(argv, Limits(), str(tmp_path), True)
    judge = f"""
import subprocess, sys
inside = subprocess.Popen({command!r}, stdout=subprocess.PIPE)
inside.stdout.readline()
print(inside.pid, flush=True)
sys.stdin.read()
"""
    parent = subprocess.Popen([sys.executable, "-c", judge], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    assert gone(pid), "the jail runs on without its judge"


@jailed
@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there are GPUs here")
def test_devices_are_those_of_every_process(printed, tmp_path):
    devices = set(printed("import os; print(*os.listdir('/dev'))", tmp_path).split())
    assert devices <= {"null", "zero", "full", "random", "urandom", "tty", "console", "core", "ptmx", "pts", "shm"} | {
        *("fd", "stdin", "stdout", "stderr"),
    }
