"""The line on the terminal: it comes after two seconds, goes before anything else is printed, and needs a terminal."""

import sys

import pytest

from rooflab.benchmark import ladder
from rooflab.cli import main, progress
from rooflab.cli.progress import Progress


@pytest.fixture
def now(monkeypatch):
    """The time, which a test can set."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Make stderr, as a test captures it, look like a terminal."""
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)


def test_a_short_command_shows_nothing(now, terminal, capsys):
    with Progress("Work") as say:
        now[0] += 1.9
        say("step 1")
    assert capsys.readouterr().err == "\r\x1b[K"


def test_each_step_takes_the_place_of_the_last(now, terminal, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    with Progress("Work") as say:
        now[0] += 2
        say("step 1")
        say.subject = "More"
        say("a step of many words")
    assert capsys.readouterr().err == "\r\x1b[KWork: step 1\r\x1b[KMore: a step of man\r\x1b[K"


def test_a_file_gets_nothing(now, capsys):
    with Progress("Work") as say:
        now[0] += 60
        say("step 1")
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_bench_says_which_turn_it_takes(terminal, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_AFTER_S", 0)
    monkeypatch.setattr(ladder, "_IDLE_S", 0)
    monkeypatch.setenv("COLUMNS", "200")
    arguments = ["bench", "matmul", "--device", "cpu", "--case", "512 float32", "--turns", "2"]
    assert main(arguments) == 0
    said = capsys.readouterr()
    lines = said.err.split("\r\x1b[K")
    assert "Case 1 of 1, matmul 512 float32: making operands" in lines
    assert "Case 1 of 1, matmul 512 float32: turn 2 of 2, v3_packed_simd" in lines
    assert lines[-1] == "" and "v3_packed_simd" in said.out
