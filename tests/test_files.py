"""Files and folders are written whole or not at all."""

import errno
import fcntl
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from rooflab import files
from rooflab.cli import doctor
from rooflab.files import (
    check_figure,
    check_file,
    check_folder,
    has_text,
    one_at_a_time,
    readable,
    replacing,
    save_figure,
)


def test_a_file_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")
    with replacing(path) as unfinished:
        unfinished.write_text("new", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new" and list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_path_write_apart(tmp_path):
    """Threads of one process, too: what is there is that of one of them."""
    path = tmp_path / "a.txt"
    with replacing(path) as one, replacing(path) as other:
        assert one != other
        one.write_text("one", encoding="utf-8")
        other.write_text("other", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "one" and list(tmp_path.iterdir()) == [path]


def doctor_writes(path):
    doctor._write(path, "new")


def rooflab_writes(path):
    with replacing(path) as unfinished:
        unfinished.write_text("new", encoding="utf-8")


@pytest.mark.parametrize("write", [rooflab_writes, doctor_writes])
def test_a_link_stays_and_a_file_keeps_its_permissions(tmp_path, write):
    (tmp_path / "inner").mkdir()
    path, link, dangling = tmp_path / "inner" / "a.txt", tmp_path / "link", tmp_path / "dangling"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o600)
    link.symlink_to("inner/a.txt")
    dangling.symlink_to("inner/b.txt")
    check_file(link, dangling)
    write(link)
    assert link.is_symlink() and path.read_text(encoding="utf-8") == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    write(dangling)
    assert dangling.is_symlink() and dangling.read_text(encoding="utf-8") == "new"
    assert {one.name for one in path.parent.iterdir()} == {"a.txt", "b.txt"}


@pytest.mark.parametrize(("mode", "meanwhile"), [(0o600, 0o600), (0o640, 0o600), (0o400, 0o600)])
def test_a_file_that_is_not_for_all_is_not_while_it_is_written(tmp_path, mode, meanwhile):
    path = tmp_path / "a.txt"
    path.touch()
    path.chmod(mode)
    with replacing(path) as unfinished:
        unfinished.write_text("new", encoding="utf-8")
        assert unfinished.stat().st_mode & 0o777 == meanwhile
    assert path.stat().st_mode & 0o777 == mode and path.read_text(encoding="utf-8") == "new"


def test_a_name_as_long_as_a_file_can_have_is_written(tmp_path):
    path = tmp_path / ("\u00e9" * 127)
    rooflab_writes(path)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="too long") as raised:
        rooflab_writes(tmp_path / ("x" * 256))
    assert Path(raised.value.filename).name == "x" * 256


def test_a_file_at_the_end_of_a_link_is_checked_where_it_will_be(tmp_path):
    (tmp_path / "link").symlink_to("absent/a.txt")
    with pytest.raises(OSError, match=r"no file can be written \(the link leads to '.*/absent/a\.txt'\)") as raised:
        check_file(tmp_path / "link")
    assert raised.value.filename == str(tmp_path / "link")
    (tmp_path / "root").symlink_to("/")
    for path in (tmp_path / "root", Path("/..")):
        with pytest.raises(ValueError, match="name of a file"), replacing(path):
            pass


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), ValueError(), KeyboardInterrupt()])
@pytest.mark.parametrize("folder", [False, True])
def test_after_an_error_nothing_has_changed(tmp_path, error, folder):
    path = tmp_path / "a"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(type(error)), replacing(path) as unfinished:
        if folder:
            unfinished.mkdir()
        (unfinished / "b" if folder else unfinished).write_text("half", encoding="utf-8")
        raise error
    assert path.read_text(encoding="utf-8") == "old" and list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_path_that_was_asked_for(tmp_path):
    path = tmp_path / "absent" / "a"
    with pytest.raises(FileNotFoundError) as raised, replacing(path) as unfinished:
        unfinished.write_text("new", encoding="utf-8")
    assert raised.value.filename == str(path)


def test_a_copy_onto_a_full_disk_names_the_path_that_was_asked_for(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(OSError, match="No space") as raised, replacing(path) as unfinished:
        raise OSError(errno.ENOSPC, "No space left on device", "/elsewhere/a", None, str(unfinished))
    assert raised.value.filename == str(path)
    with pytest.raises(FileNotFoundError) as raised, replacing(path) as unfinished:
        unfinished.write_text((tmp_path / "absent").read_text(encoding="utf-8"), encoding="utf-8")
    assert str(raised.value.filename) == str(tmp_path / "absent")


def test_a_folder_takes_the_place_of_an_empty_one_only(tmp_path):
    for name in ("empty", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "mine").write_text("mine", encoding="utf-8")
    with replacing(tmp_path / "empty") as unfinished:
        unfinished.mkdir()
        (unfinished / "a").touch()
    assert [path.name for path in (tmp_path / "empty").iterdir()] == ["a"]
    with pytest.raises(OSError, match="not empty"), replacing(tmp_path / "full") as unfinished:
        unfinished.mkdir()
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "full"}
    assert (tmp_path / "full" / "mine").read_text(encoding="utf-8") == "mine"


def test_a_figure_is_written_in_the_format_of_its_name_or_not_at_all(tmp_path):
    drawn = Figure()
    for name, begin in (("a.png", b"\x89PNG"), ("a", b"\x89PNG"), ("a.svg", b"<?xml")):
        save_figure(drawn, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begin)
    (tmp_path / "a.nothing").write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="nothing"):
        save_figure(drawn, tmp_path / "a.nothing")

    class Broken(Figure):
        def savefig(self, path, **options):
            path.write_text("half", encoding="utf-8")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space"):
        save_figure(Broken(), tmp_path / "a.nothing")
    assert (tmp_path / "a.nothing").read_text(encoding="utf-8") == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "a", "a.svg", "a.nothing"}


def test_what_cannot_be_written_is_known_before(tmp_path):
    (tmp_path / "file").touch()
    new, below, inside = tmp_path / "new", tmp_path / "absent" / "new", tmp_path / "file" / "new"
    check_file(None, new, tmp_path / "file", Path("/dev/null"), Path("new"))
    check_file(below, makes_folder=True)
    check_folder(None, tmp_path, new, below, Path())
    check_figure(tmp_path / "new.SVG")
    for check, path in (
        (check_file, below),
        (check_file, tmp_path),
        (check_file, inside),
        (partial(check_file, makes_folder=True), inside),
        (check_folder, tmp_path / "file"),
        (check_folder, inside),
        (check_figure, below),
    ):
        with pytest.raises(OSError, match=r"no (file|folder) can be written") as raised:
            check(path)
        assert raised.value.filename == str(path)
    with pytest.raises(ValueError, match=r"new\.nothing: expected a format of .*pdf, .*png"):
        check_figure(tmp_path / "new.nothing")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_may_never_end_is_not_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(OSError, match="it is a pipe, a socket or a device") as raised:
            readable(path)
        assert raised.value.filename == str(path)
    for path in (tmp_path, tmp_path / "absent", Path("/dev/stdin"), Path("/dev/fd/0")):
        assert readable(path) == path


@pytest.mark.parametrize("path", ["", "."])
def test_a_path_without_a_name_is_refused(path):
    with (
        pytest.raises(ValueError, match=r"\[path\] expected the name of a file or a folder, got '\.'"),
        replacing(path),
    ):
        pass


def test_what_is_no_path_is_refused():
    with pytest.raises(TypeError, match=r"\[path\] expected the name of a file or a folder, got int"), replacing(5):
        pass


def test_a_device_or_pipe_is_written_to_and_stays(tmp_path):
    """As root, a trace written to /dev/null replaced it by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as unfinished:
        unfinished.write_text("new", encoding="utf-8")
    assert os.read(reader, 9) == b"new" and pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]
    os.close(reader)
    for name in ("/dev/null", "/dev/stdout"):  # the second may be a link to a file
        with replacing(name) as unfinished:
            assert str(unfinished) == name


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_is_named():
    with pytest.raises(OSError) as full, replacing("/dev/full") as unfinished:
        unfinished.write_text("new", encoding="utf-8")
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, "/dev/full")


def test_a_lock_is_a_file_of_its_own_that_is_removed(tmp_path):
    """Network disks have no locks of folders, and the folder may be locked by `flock . python ...`."""
    path, lock = tmp_path / "rows.json", tmp_path / ".rows.json.lock"
    lock.touch()  # a process that was killed left it
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    start = time.monotonic()
    with one_at_a_time(path), open(lock, encoding="utf-8") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)
    assert time.monotonic() - start < files._WAIT_S / 2 and list(tmp_path.iterdir()) == []
    for name in ("/dev/null", tmp_path / ("x" * 255), tmp_path / "absent" / "rows.json"):
        with one_at_a_time(name):
            assert len(list(tmp_path.iterdir())) == (name == tmp_path / ("x" * 255))
    assert not os.path.exists("/dev/.null.lock")


def test_who_waits_for_a_lock_goes_on_after_a_while_and_leaves_it(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_WAIT_S", 0.05)
    path, lock = tmp_path / "rows.json", tmp_path / ".rows.json.lock"
    with one_at_a_time(path):
        with one_at_a_time(path):
            pass
        assert lock.exists()

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with one_at_a_time(path):
        assert not lock.exists()


def test_a_process_that_was_started_meanwhile_keeps_no_lock(tmp_path):
    lock = tmp_path / ".rows.json.lock"
    with one_at_a_time(tmp_path / "rows.json"):
        opened = os.open(lock, os.O_RDWR)
        held = [
            int(one) for one in os.listdir("/proc/self/fd") if os.path.realpath(f"/proc/self/fd/{one}") == str(lock)
        ]
        words = [sys.executable, "-c", "input()"]
        child = subprocess.Popen(words, pass_fds=held, stdin=subprocess.PIPE)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(opened)
        child.communicate(b"\n")


def test_an_empty_file_and_a_device_have_no_text(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "full").write_text("1", encoding="utf-8")
    paths = [tmp_path / "empty", tmp_path / "absent", tmp_path, Path("/dev/zero"), tmp_path / "full"]
    assert [has_text(path) for path in paths] == [False] * 4 + [True]
