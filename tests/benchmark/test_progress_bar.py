"""The bar of a long measurement: it needs a terminal, and goes with the measurement."""

import io
import re
import sys
import time

import pytest

import rooflab as rl
from rooflab.benchmark import progress


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self):
        return True


def test_a_long_measurement_shows_a_bar_and_takes_it_away(monkeypatch):
    monkeypatch.setattr(progress, "AFTER_S", 0.02)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    rl.latency(time.sleep, 0.01, warmup=2, repeat=6)
    written = sys.stderr.getvalue()
    assert "latency:" in written and re.search(" [5-8]/8 \\[", written) and not written.split("\r")[-1].strip()
    monkeypatch.setattr(sys, "stderr", Terminal())
    rl.latency(abs, 1, warmup=0, repeat=2)
    assert sys.stderr.getvalue() == "", "a short one shows none"
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(progress.Bar, "_show", None)  # nor is tqdm imported
    rl.latency(time.sleep, 0.01, warmup=2, repeat=6)
    assert sys.stderr.getvalue() == "", "a file shows none"


def test_a_bar_ends_with_the_call_that_fails(monkeypatch):
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    calls = iter([None, None])
    with pytest.raises(StopIteration) as failed:
        rl.latency(lambda: next(calls), warmup=1, repeat=5)
    assert failed.tb  # which keeps all objects of the measurement
    assert sys.stderr.getvalue() and not sys.stderr.getvalue().split("\r")[-1].strip()
