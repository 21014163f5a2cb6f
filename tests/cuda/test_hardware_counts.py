"""Counts of a GPU: what Nsight Compute prints, what it is asked for, and one sentence where it cannot count."""

import json
import shutil
import stat

import numpy as np
import pytest

import rooflab as rl
from rooflab.cuda import hardware

COPY = """
__global__ void copy(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
"""
# Each metric has a number of its own, from 100 on.
NUMBERS = {name: 100 + place for place, name in enumerate(hardware.METRICS)}


def table(*kernels, barriers="BAR: 1,024"):
    """What ncu prints with --csv --page raw: a header, a row of units, and a row for each launch."""
    names = ["ID", "Kernel Name", *hardware.METRICS.values(), "sass__inst_executed_per_opcode"]
    rows = [names, ["", "", *["inst"] * (len(names) - 2)]]
    for place, kernel in enumerate(kernels):
        rows.append([str(place), kernel, *map(str, NUMBERS.values()), f"12 (BRA: 4; {barriers}; EXIT: 8)"])
    return "==PROF== Connected\n" + "\n".join(",".join(f'"{value}"' for value in row) for row in rows) + "\n"


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """ncu(text, code) puts a program of this name on PATH that prints the text and ends with the code."""

    def made(text, code=0, before=""):
        (tmp_path / "printed").write_text(text, encoding="utf-8")
        program = tmp_path / "ncu"
        said = f'echo "$@" > {tmp_path}/asked\n{before}\ncat {tmp_path}/printed\nexit {code}\n'
        program.write_text(f"#!/bin/sh\n{said}", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        return tmp_path / "asked"

    return made


def counts(name="copy"):
    with hardware.copied({"name": name, "grid": 1, "block": 32}, [rl.ones(4), 4]) as file:
        return hardware.counts(name, file)


def test_what_is_printed_becomes_counts(ncu):
    asked = ncu(table("flash(const float *, float *, int)"))
    found, given = counts("space::flash<(int)64>"), NUMBERS
    loads = found.global_loads
    assert (loads.requests, loads.sectors) == (given["global_loads.requests"], given["global_loads.sectors"])
    assert loads.bytes == loads.distinct_bytes == given["global_loads.bytes"]
    assert found.shared_stores.bank_conflicts == given["shared_stores.bank_conflicts"]
    assert found.shared_stores.wavefronts == given["shared_stores.wavefronts"]
    assert found.global_atomics.requests == given["atomics.atom"] + given["atomics.red"]
    assert found.flops == 2 * given["flops.fma"] + given["flops.add"] + given["flops.mul"]
    assert found.barriers == 1024
    words = asked.read_text(encoding="utf-8")
    assert "--kernel-name regex:^flash$ " in words and set(hardware.METRICS.values()) < set(
        words.replace(",", " ").split()
    )


def test_a_kernel_without_barriers(ncu):
    ncu(table("copy(const float *)", barriers="MOV: 3"))
    assert counts().barriers == 0


def test_each_launch_is_read():
    assert [name for name, _ in hardware.read(table("a(int)", "b(int)"))] == ["a(int)", "b(int)"]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", 1, "may not read this GPU's counters"),
        ("==ERROR== The application returned an error code (11).", 11, "could not count the launch: ==ERROR== The app"),
        ("==WARNING== No kernels were profiled.", 0, "saw no launch of it"),
    ],
)
def test_where_it_cannot_count_one_sentence_says_why(ncu, text, code, says):
    ncu(text, code)
    with pytest.raises(rl.CudaError, match=says):
        counts()


def test_a_kernel_without_an_end_is_ended(ncu, monkeypatch):
    ncu("", before="sleep 60")
    monkeypatch.setattr(hardware, "_SECONDS", 0.2)
    with pytest.raises(rl.CudaError, match=r"not counted after 0\.2 s"):
        counts()


def test_without_ncu(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    kernel = rl.cuda.compile(COPY, backend="gpu")["copy"]
    with pytest.raises(rl.CudaError, match="ncu, of CUDA's toolkit, is not on PATH"):
        kernel(1, 32, rl.ones(4), rl.ones(4), 4, mode="count")
    with pytest.raises(ValueError, match=r"\[copy\] mode: expected count, or none, on a GPU, got 'check'"):
        kernel(1, 32, rl.ones(4), rl.ones(4), 4, mode="check")


def test_the_file_holds_the_launch_and_where_tensors_begin(ncu):
    ncu("")
    whole = rl.arange(100, dtype="float32")
    launch = {"name": "copy", "source": COPY, "options": ("-DN=1",), "grid": (2, 1), "block": 32, "shared_bytes": 0}
    with hardware.copied(launch, [whole[3:], None, np.int64(7), 0.5]) as file:
        found = json.loads(rl.serialization.load_metadata(file)["launch"])
        assert rl.load(file)["0"].tolist() == whole[3:].tolist()
    skipped = whole[3:].data_ptr() % 256 // 4
    assert found == {**launch, "options": ["-DN=1"], "grid": [2, 1], "args": [{"skipped": skipped}, None, 7, 0.5]}
    says = r"\[copy\] argument 1: mode='count' takes contiguous tensors"
    with pytest.raises(ValueError, match=says), hardware.copied(launch, [whole[::2]]):
        pass


@pytest.mark.gpu
@pytest.mark.skipif(not rl.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.skipif(not shutil.which("ncu"), reason="needs Nsight Compute")
@pytest.mark.parametrize("begin", [0, 1])
def test_a_gpu_counts_what_the_emulator_counts(begin):
    x, y = rl.ones(1025, device="cuda")[begin : begin + 1000], rl.zeros(1000, device="cuda")
    try:
        launch = rl.cuda.compile(COPY, backend="gpu")["copy"]((4, 1), 256, x, y, 1000, mode="count")
    except rl.CudaError as error:
        if "may not read" in str(error):
            pytest.skip(str(error))
        raise
    given = rl.ones(1025)[begin : begin + 1000], rl.zeros(1000)
    same = rl.cuda.compile(COPY, backend="simt")["copy"](4, 256, *given, 1000, mode="count")
    for name in ("global_loads", "global_stores"):
        ours, its = getattr(same.counts, name), getattr(launch.counts, name)
        assert (its.requests, its.sectors, its.distinct_bytes) == (ours.requests, ours.sectors, ours.distinct_bytes)
    assert launch.counts.flops == same.counts.flops == 1000 and launch.source == "hardware"
    assert (launch.grid, launch.block, launch.blocks) == ((4, 1, 1), (256, 1, 1), 4)
    assert y.tolist() == [2.0] * 1000 and "the optimised build, by the GPU" in str(launch)
