"""Folders that exist for a while, in TMPDIR. If a command is killed, the next one removes what it left there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator

NAME = re.compile(r"\.rooflab-(class|copy|report|worker)-[a-z0-9_]{8}")
FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@contextlib.contextmanager
def temporary(kind: str, within: str | None = None) -> Iterator[str]:
    """A new folder of this `kind`, in TMPDIR or `within` another folder. It is locked, and so in use, until the end."""
    folder, opened = _made(kind, within)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(opened)


def remove_left() -> None:
    """Remove the folders that a killed command left in TMPDIR."""
    with os.scandir(tempfile.gettempdir()) as entries:
        left = [one.path for one in entries if NAME.fullmatch(one.name) and one.is_dir(follow_symlinks=False)]
    for folder in left:
        with contextlib.suppress(OSError):
            opened = os.open(folder, FLAGS)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where it is in use
                if os.fstat(opened).st_uid == os.getuid():
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(opened)


def _made(kind: str, within: str | None) -> tuple[str, int]:
    """A new folder, and the descriptor that locks it. Another command may remove one before it is locked."""
    while True:
        folder = tempfile.mkdtemp(prefix=f".rooflab-{kind}-", dir=within)
        with contextlib.suppress(FileNotFoundError):
            opened = os.open(folder, FLAGS)
            with contextlib.suppress(OSError):  # some network disks have no locks
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(folder):
                return folder, opened
            os.close(opened)
