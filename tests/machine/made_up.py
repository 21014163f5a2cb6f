"""Ceilings that nobody measured, for tests of what is done with them."""

import datetime

from rooflab.machine import Ceilings, Measured

TODAY = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def figure(median, unit, spread=0.1):
    return Measured(median, median * (1 - spread), median * (1 + spread), unit, 20, "made up")


def ceilings(**changes):
    values = {
        "device": "cpu",
        "name": "AMD EPYC 7763 64-Core Processor",
        "host": "desk",
        "driver": "Linux 6.1.0",
        "threads": 2,
        "version": "0.1.0",
        "measured_on": TODAY,
        "seconds": 7.5,
        "busy": "",
        "copy_bandwidth": figure(0.014, "TB/s"),
        "read_bandwidth": figure(0.02, "TB/s"),
        "cache_bandwidth": figure(0.07, "TB/s"),
        "peak": {"float32": figure(0.12, "TFLOP/s"), "bfloat16": figure(0.1, "TFLOP/s")},
        "launch_overhead": figure(0.6, "us"),
    }
    return Ceilings(**(values | changes))
