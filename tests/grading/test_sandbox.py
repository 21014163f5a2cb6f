"""What a worker may use, as the kernel sees it: the limits are set before the worker's program starts."""

import json
import os
import subprocess
import sys

import pytest
from grading.demo_lab import TRUSTED

from rooflab.grading.jail import jail, sandbox
from rooflab.grading.lab.model import Limits

GB = 10**9
PRINTS_ITS_LIMITS = """
import json, resource
names = ("DATA", "CPU", "FSIZE", "NOFILE", "CORE")
print(json.dumps({name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in names}))
"""


def limits_inside(limits, folder):
    command = sandbox.command(
        [sys.executable, "-I", "-c", PRINTS_ITS_LIMITS], limits, str(folder), isolated=not TRUSTED
    )
    done = subprocess.run(command, env=sandbox.environment(str(folder)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
@pytest.mark.parametrize(("most", "libraries"), [(1, 0), (2, 0.09)])
def test_the_limits_of_a_question_are_those_of_its_worker(most, libraries, tmp_path, monkeypatch, two_threads):
    monkeypatch.setattr(sandbox, "MAX_THREADS", most)
    inside = limits_inside(Limits(seconds=2, memory_gb=0.5), tmp_path)
    gpu = sandbox.GPU_MEMORY_GB if jail.gpus() else 0
    assert inside == {
        "DATA": [round((gpu + 0.5 + libraries) * GB)] * 2,
        "CPU": [2 * os.cpu_count() + 10] * 2,
        "FSIZE": [2**28] * 2,
        "NOFILE": [1024] * 2,
        "CORE": [0, 0],
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
def test_a_limit_that_is_lower_already_stays(tmp_path):
    program = """
import json, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))
print(subprocess.run(json.loads(sys.argv[1]), capture_output=True, text=True, check=True).stdout)
"""
    command = sandbox.command(
        [sys.executable, "-I", "-c", PRINTS_ITS_LIMITS], Limits(), str(tmp_path), isolated=not TRUSTED
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, json.dumps(command)], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["NOFILE"] == [512, 512]
