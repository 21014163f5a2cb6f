"""Files and folders that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """A path beside `path` for writing a file or a folder, which then takes the place of `path` once it is whole.

    After an exception `path` is as it was, and nothing else is left. The folder around it has to exist; a folder
    replaces an empty folder only. A device or pipe, such as /dev/null, is written to: it is given as it is.

    Raises
    ------
    OSError
        What went wrong, with the name of `path`.
    ValueError
        If `path` names nothing, as an empty text does.

    Examples
    --------
    >>> with replacing("figures.txt") as unfinished:
    ...     _ = unfinished.write_text("1 2 3")
    """
    path = Path(path)
    if not path.name:
        raise ValueError(f"[path] expected the name of a file or a folder, got {str(path)!r}")
    if _is_device(path):
        yield path
        return
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")  # two processes may write the same file
    try:
        yield unfinished
        os.replace(unfinished, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and _is_of(error, unfinished):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def save_figure(drawn: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format that the end of the file's name says; PNG where it has none.

    Raises
    ------
    ValueError
        For a format that is not known.
    """
    with replacing(path) as unfinished:
        drawn.savefig(unfinished, format=Path(path).suffix.removeprefix(".") or "png")


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk is full or read-only, whatever was to be written."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def _is_device(path: Path) -> bool:
    """Whether a path is no file to replace: root can replace even /dev/null, for all programs of the computer."""
    return path.parent == Path("/dev") or (path.exists() and not path.is_file() and not path.is_dir())


def _is_of(error: OSError, path: Path) -> bool:
    """Whether an error is about `path`. A failed write, as to a full disk, names no file; a failed copy names both."""
    return error.filename is None or str(path) in (str(error.filename), str(error.filename2))
