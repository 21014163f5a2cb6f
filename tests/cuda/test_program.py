"""Programs are waited for without the clocks of Python, which a fake device replaces."""

import time

import pytest

from rooflab.cuda import program
from rooflab.cuda.simt import process

SILENT = ("/bin/sh", "-c", "exec >&- 2>&-; sleep 0.1; exit 3")


def no_sleep(seconds):
    raise AssertionError("time.sleep")


def test_a_program_that_has_closed_its_streams_is_waited_for_without_sleep(monkeypatch):
    monkeypatch.setattr(time, "sleep", no_sleep)
    assert program.run(SILENT, 10, {}) == ("", 3)
    running = program.Program(SILENT, stdout=process.subprocess.PIPE, text=True)
    assert process._end(running, 10) == ("", None, False)
    assert running.returncode == 3


def test_a_program_that_has_closed_its_streams_may_not_go_on_for_ever(monkeypatch):
    monkeypatch.setattr(time, "sleep", no_sleep)
    with pytest.raises(TimeoutError):
        program.run((*SILENT[:2], SILENT[2].replace("0.1", "60")), 0.1, {})
