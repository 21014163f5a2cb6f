"""Files and folders that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import fnmatch
import itertools
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WAIT_S = 10  # for a lock


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """A path beside `path` for writing a file or a folder, which then takes the place of `path` once it is whole.

    After an exception `path` is as it was, and nothing else is left. The folder around it has to exist; a folder
    replaces an empty folder only. A link stays, and what it leads to is replaced; one that leads to itself is replaced.
    A file keeps the permissions of the one before it, and who may not read that cannot read this one either while it is
    written. A device or pipe, such as /dev/null, is written to: it is given as it is.

    Raises
    ------
    OSError
        What went wrong, with the name of `path`.
    ValueError
        If `path` names nothing, as an empty text does.
    TypeError
        For what is no path.

    Examples
    --------
    >>> with replacing("figures.txt") as unfinished:
    ...     _ = unfinished.write_text("1 2 3")
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"[path] expected the name of a file or a folder, got {type(path).__name__}")
    path = Path(path)
    place = Path(os.path.realpath(path))
    if not path.name or not place.name:
        raise ValueError(f"[path] expected the name of a file or a folder, got {str(path)!r}")
    if _is_device(path):
        with _errors_of(path, path):
            yield path
        return
    unfinished = _beside(place)
    try:
        with _errors_of(path, unfinished):
            _check_name(place)
            _make_private(place, unfinished)
            yield unfinished
            _keep_permissions(place, unfinished)
            os.replace(unfinished, place)
    except BaseException:
        with contextlib.suppress(OSError):
            shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _errors_of(path: Path, written: Path) -> Iterator[None]:
    """A context in which an error about `written`, or about no file, gets the name of `path`."""
    try:
        yield
    except OSError as error:
        if error.errno and _is_of(error, written):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextlib.contextmanager
def one_at_a_time(path: str | os.PathLike) -> Iterator[None]:
    """A context that one process or thread at a time is in, for a file that it reads and writes.

    It locks a hidden file beside it, such as .figures.txt.lock, and removes that at the end; a process that is killed
    leaves it, which does no harm. It does not wait where no such file can be made or the disk has no locks, for a
    device or pipe, and for longer than ten seconds.

    Examples
    --------
    >>> with one_at_a_time("figures.txt"), replacing("figures.txt") as unfinished:
    ...     _ = unfinished.write_text("1 2 3")
    """
    folder, name = os.path.split(os.path.realpath(path))
    short = os.fsdecode(os.fsencode(name)[:200])  # no name has more than 255 bytes
    lock = os.path.join(folder, f".{short}.lock")
    opened = None if _is_device(Path(path)) else _locked(lock)
    try:
        yield
    finally:
        if opened is not None:
            with contextlib.suppress(OSError):
                os.unlink(lock)  # while it is locked: who waits for it sees that it is another file, or none
            with contextlib.suppress(OSError):
                fcntl.flock(opened, fcntl.LOCK_UN)  # a process that was forked meanwhile has it open, too
            os.close(opened)


def _locked(path: str) -> int | None:
    """The descriptor of a file that is made and locked; None where that cannot be done in time."""
    end = time.monotonic() + _WAIT_S
    while time.monotonic() < end:
        try:
            opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError:
            return None
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(opened), os.stat(path)):
                return opened
        except (BlockingIOError, FileNotFoundError):  # it is locked, or was removed after it was opened
            pass
        except OSError:  # some network disks have no locks
            os.close(opened)
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        os.close(opened)
        time.sleep(0.01)
    return None


def _beside(path: Path) -> Path:
    """Where `path` is written before it is whole. The name is new: threads and processes may write the same file."""
    name = path.name if len(os.fsencode(path.name)) < 200 else ""  # no name has more than 255 bytes
    return path.with_name(f"{name}.{secrets.token_hex(8)}.part")


def _make_private(old: Path, new: Path) -> None:
    """Make a file that its owner alone may read, where the one that it replaces is not for all."""
    if old.is_file() and not old.stat().st_mode & stat.S_IROTH:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL, 0o600))


def _keep_permissions(old: Path, new: Path) -> None:
    """Give a file the permissions of the one that it replaces."""
    if old.is_file() and new.is_file():
        permissions = stat.S_IMODE(old.stat().st_mode)
        if permissions != stat.S_IMODE(new.stat().st_mode):
            new.chmod(permissions)


def readable(path: str | os.PathLike) -> Path:
    """The path of a file to read. Other pipes than those of the shell, sockets and devices may never end.

    Raises
    ------
    OSError
        For such a path.

    Examples
    --------
    >>> readable("figures.txt").name
    'figures.txt'
    """
    found = Path(path)
    of_shell = found == Path("/dev/stdin") or found.parent == Path("/dev/fd")  # as of <(command)
    if found.exists() and not (found.is_file() or found.is_dir() or of_shell):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device", str(path))
    return found


def has_text(path: Path) -> bool:
    """Whether a file is there that is not empty. A device, such as /dev/null, has nothing to go on with.

    Examples
    --------
    >>> has_text(Path("/dev/null"))
    False
    """
    return path.is_file() and path.stat().st_size > 0


def parsed(text: str) -> Any:
    """What a JSON text of a user holds.

    Raises
    ------
    ValueError
        When it is not JSON, or lists lie in lists thousands of times.

    Examples
    --------
    >>> parsed('{"a": [1]}')
    {'a': [1]}
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects are nested too deep") from None


def check_file(*paths: Path | None, makes_folder: bool = False) -> None:
    """Refuse paths at which no file can be written, before the work whose result it is to hold; None is left out.

    `makes_folder` says that the folder around it is made then.

    Raises
    ------
    OSError
        With the path.

    Examples
    --------
    >>> check_file(Path("figures.txt"), None)
    """
    for path in paths:
        if path is None or (_is_device(path) and not path.is_dir()):
            continue
        place = Path(os.path.realpath(path))
        folder = _there(place.parent) if makes_folder else place.parent
        if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            led = f" (the link leads to '{place}')" if path.is_symlink() else ""
            raise OSError(errno.EINVAL, f"no file can be written{led}", str(path))
        _check_name(place)


def check_apart(
    written: Mapping[str, Path], read: Collection[Path], folder: Path = Path(), names: Collection[str] = ()
) -> None:
    """Refuse files to write that are one file, or a file that is read: the last of them would replace the others.

    Devices such as /dev/null may take several outputs.

    Parameters
    ----------
    written : mapping of str to Path
        By the names of their options.
    read : collection of Path
        What the same command reads.
    folder : Path, optional
        That of `--output`, to which the command writes files besides.
    names : collection of str, optional
        The names of these files, such as ``figure-*.png``.

    Raises
    ------
    ValueError
        With the options.

    Examples
    --------
    >>> check_apart({"--json": Path("a.json"), "--csv": Path("a.csv")}, [Path("config.json")])
    """
    files = {name: path for name, path in written.items() if not _is_device(path)}
    for (one, path), (other, another) in itertools.combinations(files.items(), 2):
        if _is_one(path, another):
            raise ValueError(f"{one} and {other}: expected two files, got '{path}' for both")
    for name, path in files.items():
        if any(_is_one(path, source) for source in read):
            raise ValueError(f"{name}: expected another file than '{path}', which is read")
    there = {os.path.basename(os.path.realpath(path)) for path in (*files.values(), *read)}
    there |= set(os.listdir(folder)) if names and os.path.isdir(folder) else set()
    for found in [folder / one for one in there if any(fnmatch.fnmatchcase(one, name) for name in names)]:
        for name, path in files.items():
            if _is_one(path, found):
                raise ValueError(f"{name} and --output: expected two files, got '{path}' for both")
        if any(_is_one(source, found) for source in read):
            raise ValueError(f"--output: expected another folder than '{folder}': its {found.name} is read")


def _is_one(a: Path, b: Path) -> bool:
    """Whether two paths lead to one file, which may be there already, under several names."""
    if os.path.exists(a) and os.path.exists(b):
        return os.path.samefile(a, b)
    return os.path.realpath(a) == os.path.realpath(b)


def check_folder(*paths: Path | None) -> None:
    """Refuse paths that are no folder to write in and at which none can be made; None is left out.

    Raises
    ------
    OSError
        With the path.

    Examples
    --------
    >>> check_folder(Path("figures"), None)
    """
    for path in paths:
        if path is None:
            continue
        _check_name(path)
        if not ((there := _there(path)).is_dir() and os.access(there, os.W_OK)):
            raise OSError(errno.EINVAL, "no folder can be written", str(path))


def _check_name(path: Path) -> None:
    """Raise OSError for a path that nothing can have: a name is too long, or a folder is a link to itself."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(path)


def check_figure(path: Path | None) -> None:
    """Refuse a path that `save_figure` cannot write to, before the work whose figure it is to hold.

    Raises
    ------
    OSError
        With the path.
    ValueError
        For a format that is not known.
    ImportError
        Without matplotlib.

    Examples
    --------
    >>> check_figure(None)
    """
    check_file(path)
    if path is not None:
        from matplotlib.backend_bases import FigureCanvasBase

        kinds = FigureCanvasBase.get_supported_filetypes()
        if _format(path) not in kinds:
            raise ValueError(f"{path}: expected a format of {', '.join(sorted(kinds))}")


def save_figure(drawn: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format that the end of the file's name says; PNG where it has none.

    Raises
    ------
    ValueError
        For a format that is not known.
    """
    with replacing(path) as unfinished:
        drawn.savefig(unfinished, format=_format(path))


def _format(path: str | os.PathLike[str]) -> str:
    return Path(path).suffix.removeprefix(".").lower() or "png"


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk is full or read-only, whatever was to be written."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def _is_device(path: Path) -> bool:
    """Whether a path is no file to replace: root can replace even /dev/null, for all programs of the computer."""
    return path.parent == Path("/dev") or not (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path))


def _there(path: Path) -> Path:
    """A path, or the nearest one above it that exists."""
    return next(one for one in (path, *path.absolute().parents) if os.path.lexists(one))


def _is_of(error: OSError, path: Path) -> bool:
    """Whether an error is about `path`. A failed write, as to a full disk, names no file; a failed copy names both."""
    return error.filename is None or str(path) in (str(error.filename), str(error.filename2))
