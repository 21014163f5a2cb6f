"""Messages between the judge and the worker, over two pipes.

A message is the magic `RLv1`, a u64 length and one value, as the codec writes it.
"""

from __future__ import annotations

import math
import os
import select
import struct
import time
from typing import Any

from rooflab.grading.jail import codec

MAGIC = b"RLv1"
PROTOCOL = 3


def version() -> str:
    """What the judge and its worker must have in common; the worker greets the judge with it."""
    from rooflab import __version__

    return f"protocol {PROTOCOL} of rooflab {__version__}"


def message(value: Any) -> bytes:
    """One message, ready to be sent. Raises CodecError."""
    body = codec.encode(value)
    return MAGIC + struct.pack("<Q", len(body)) + body


def send(fd: int, data: bytes, deadline: float = math.inf) -> None:
    """Write one message; `deadline` is on the `time.monotonic` clock. Raises TimeoutError, OSError."""
    rest = memoryview(data)
    while rest:
        _wait(fd, deadline, select.POLLOUT)
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:  # a non-blocking pipe that filled up after the wait
            continue


def receive(fd: int, deadline: float = math.inf) -> Any:
    """Read one message. Raises EOFError (the other side is gone), TimeoutError, OSError, CodecError.

    A message that ends in its middle is a CodecError.
    """
    head = _read(fd, 12, deadline)
    if not head:
        raise EOFError("the other side is gone")
    if len(head) < 12 or head[:4] != MAGIC:
        raise codec.CodecError("what came is not a message")
    size = struct.unpack("<Q", head[4:])[0]
    if size > codec.MAX_BYTES:
        raise codec.CodecError("a message is too large")
    body = _read(fd, size, deadline)
    if len(body) < size:
        raise codec.CodecError("a message ends in its middle")
    return codec.decode(body)


def _read(fd: int, size: int, deadline: float) -> bytearray:
    """So many bytes, or fewer where the other side is gone."""
    data = bytearray()
    while len(data) < size:
        _wait(fd, deadline, select.POLLIN)
        chunk = os.read(fd, min(size - len(data), 2**20))
        if not chunk:
            break
        data += chunk
    return data


def _wait(fd: int, deadline: float, event: int) -> None:
    """Block until `fd` is ready, but not past the deadline, so that a writer that stops half-way cannot hold up the
    reader.
    """
    if deadline == math.inf:
        return
    poll = select.poll()
    poll.register(fd, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1e3):
        raise TimeoutError("the time limit is over")
