"""What the audit hook forbids, event by event. Only the events are raised here; nothing is really done."""

import os

import pytest

from rooflab.grading.jail.guard import Guard


class Stopped(BaseException):
    pass


@pytest.fixture
def guard(tmp_path):
    def stop(reason):
        raise Stopped(reason)

    return Guard(stop, str(tmp_path))


@pytest.mark.parametrize("event", ["os.kill", "os.fork", "resource.setrlimit"])
def test_some_acts_end_the_worker(guard, event):
    with pytest.raises(Stopped, match=f"student code called {event}"):
        guard.audit(event, ())


@pytest.mark.parametrize(
    "event", ["subprocess.Popen", "os.exec", "socket.connect", "socket.sendmsg", "ctypes.dlopen", "sys.addaudithook"]
)
def test_some_are_refused(guard, event):
    with pytest.raises(PermissionError, match=f"{event} is not allowed"):
        guard.audit(event, ())


@pytest.mark.parametrize(
    "event", ["os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.symlink", "os.link"]
)
def test_what_changes_files_may_do_so_in_the_own_folder_only(guard, tmp_path, event):
    inside, outside = str(tmp_path / "mine"), str(tmp_path.parent / "not_mine")
    guard.audit(event, (inside, inside))
    for places in ((outside, inside), (inside, outside)):
        with pytest.raises(PermissionError, match="write in its own folder"):
            guard.audit(event, places)


def test_files_are_read_in_libraries_and_written_in_the_own_folder(guard, tmp_path):
    library, outside = os.__file__, tmp_path.parent / "not_mine"
    outside.touch()
    guard.audit("open", (library, "r", os.O_RDONLY))
    guard.audit("open", (str(tmp_path / "mine"), "w", os.O_WRONLY | os.O_CREAT))
    for path, flags in ((library, os.O_WRONLY), (library, os.O_RDONLY | os.O_TRUNC), (str(outside), os.O_RDONLY)):
        with pytest.raises(PermissionError, match="may only read the libraries"):
            guard.audit("open", (path, "", flags))


def test_a_folder_of_a_library_can_be_hidden(guard):
    guard.audit("open", (os.__file__, "r", os.O_RDONLY))
    guard.hide(os.path.dirname(os.__file__), "compute it from the sizes")
    with pytest.raises(PermissionError, match="compute it from the sizes"):
        guard.audit("open", (os.__file__, "r", os.O_RDONLY))


@pytest.mark.parametrize("event", ["os.listdir", "os.scandir", "os.chdir"])
def test_folders_are_listed_where_files_may_be_read(guard, tmp_path, event):
    guard.audit(event, (str(tmp_path),))
    with pytest.raises(PermissionError, match="may only read the libraries"):
        guard.audit(event, (str(tmp_path.parent),))
