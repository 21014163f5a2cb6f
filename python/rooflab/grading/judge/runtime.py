"""The runtime: a process that counts what student code did, and that student code never enters.

The worker runs the student's function and writes down what it asks of rooflab's core (`recorder`). The runtime, in a
jail of its own that holds nothing of the student's, makes those calls again with the judge's own arguments (`replay`).
The counters, and the tensors of the result, are the ones seen there. So a forged trace gains nothing: it is counted for
what it really does.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from typing import Any, NoReturn

from rooflab.grading.jail import codec, wire
from rooflab.grading.jail.guard import UNREADABLE
from rooflab.grading.jail.link import Link, StudentError, Unfit, WorkerLost
from rooflab.grading.lab.model import Limits
from rooflab.grading.measure import one_call
from rooflab.grading.replay.replay import Refused, Replay


class Runtime:
    """The judge's end: a runtime that starts when it is first asked, and again after one was lost."""

    def __init__(self, limits: Limits, isolated: bool) -> None:
        self.limits, self.isolated = limits, isolated
        self.link: Link | None = None

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        link, self.link = self.link, None
        if link is not None:
            link.close()

    def measure(self, kind: str, args: tuple, kwargs: dict, options: dict, recorded: Any, seconds: float) -> dict:
        """The measurement of the call that the worker `recorded`, in at most so many seconds.

        Raises
        ------
        Unfit
            The call cannot be counted.
        LabError
            The runtime did not start.
        """
        if type(recorded) is str:
            raise Unfit(f"The call could not be counted: {recorded[:300]}.")
        if type(recorded) is not tuple or len(recorded) != 2:
            raise Unfit("The call could not be counted: what was recorded is not a trace.")
        if self.link is None:
            self.link = Link(self.limits, self.isolated, serves="judge.runtime")
        self.link.deadline = time.monotonic() + seconds
        try:
            return self.link.ask("replay", kind, args, kwargs, options, *recorded)
        except StudentError as error:
            raise Unfit(f"The call could not be counted: {error}.") from None
        except WorkerLost:
            why = self.link.lost
            self.close()
            raise Unfit(f"The call could not be counted. {why}") from None


def replayed(kind: str, args: tuple, kwargs: dict, options: dict, text: Any, values: Any) -> dict:
    """What `one_call` measures of a trace, in this process; for a timed call, the counters of each section.

    Raises
    ------
    Refused
        The trace cannot be replayed.
    """
    if kind not in (*one_call.COUNTED, "timed"):
        raise Refused("this kind of measurement is not counted")
    replay = Replay(text, values)
    before = one_call._crossed, one_call._host
    one_call._crossed, one_call._host = replay.crossed, False
    try:
        replay.prepare()
        with one_call.without_collector():
            if kind == "timed":
                replay(*args, **kwargs)
                return {"sections": tuple(replay.modes.sections)}
            if kind == "saved":
                saved: list[Any] = []
                replay.saved = saved
                return one_call.kept_by(replay, args, kwargs, lambda: saved)
            return one_call.LOCAL[kind](replay, args, kwargs, **options)
    finally:
        replay.close()
        one_call._crossed, one_call._host = before


def main(requests: int, replies: int) -> NoReturn:
    """Greet the judge and serve it."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), sys.stderr.fileno())  # the judge reads it only to see why a start failed
    gc.collect()
    gc.freeze()  # so that a collection before each measurement is a short one
    wire.send(replies, wire.message((0, "ready", wire.version())))
    while True:
        try:
            number, kind, *payload = wire.receive(requests)
        except codec.CodecError as error:
            wire.send(replies, wire.message((0, "fatal", f"{UNREADABLE}: {error}")))
            os._exit(1)
        if kind == "bye":
            os._exit(0)
        try:
            reply = wire.message((number, "ok", replayed(*payload)))
        except Exception as error:
            text = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
            reply = wire.message((number, "error", "RuntimeError", text[:1000].encode("utf-8", "replace").decode()))
        wire.send(replies, reply)
