"""Counts of a kernel that a GPU makes: Nsight Compute (ncu) repeats its launch in a process of its own."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._core import CudaError, Tensor
from ..serialization import save
from . import program
from .simt.result import Access, KernelCounts

METRICS = {
    "global_loads.requests": "smsp__sass_inst_executed_op_global_ld.sum",
    "global_loads.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_loads.bytes": "smsp__sass_data_bytes_mem_global_op_ld.sum",
    "global_stores.requests": "smsp__sass_inst_executed_op_global_st.sum",
    "global_stores.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "global_stores.bytes": "smsp__sass_data_bytes_mem_global_op_st.sum",
    "shared_loads.requests": "smsp__sass_inst_executed_op_shared_ld.sum",
    "shared_loads.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_loads.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_stores.requests": "smsp__sass_inst_executed_op_shared_st.sum",
    "shared_stores.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_stores.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "atomics.atom": "smsp__sass_inst_executed_op_global_atom.sum",
    "atomics.red": "smsp__sass_inst_executed_op_global_red.sum",
    "atomics.atom_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
    "atomics.red_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    "shared_atomics.requests": "smsp__sass_inst_executed_op_shared_atom.sum",
    "flops.fma": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "flops.add": "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "flops.mul": "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
}
_OPCODES = "sass__inst_executed_per_opcode"
_ALIGNED = 256  # bytes; where a tensor of its own begins
_SECONDS = 120.0


@contextlib.contextmanager
def copied(launch: Mapping[str, Any], args: Sequence[Any]) -> Iterator[Path]:
    """A file with a launch and copies of its tensors, until the context ends. `launch` has the kernel's name, source
    and options, the launch's grid and block, and shared_bytes.

    Raises
    ------
    CudaError
        When there is no ncu.
    ValueError
        At a tensor that is not contiguous: its copy would have other addresses.
    """
    _ncu()
    tensors: dict[str, Tensor] = {}
    words: list[Any] = list(args)
    for place, value in enumerate(args):
        if isinstance(value, Tensor):
            if not value.is_contiguous():
                raise ValueError(f"[{launch['name']}] argument {place + 1}: mode='count' takes contiguous tensors")
            tensors[str(place)] = value.detach()
            words[place] = {"skipped": value.data_ptr() % _ALIGNED // value.itemsize}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "launch.safetensors"
        save(tensors, file, {"launch": json.dumps({**launch, "args": words}, default=_plain)})
        yield file


def counts(name: str, file: Path) -> KernelCounts:
    """What a GPU counts of the launch in a file.

    Raises
    ------
    CudaError
        When ncu may not read the counters, or the launch fails or has no end.
    """
    function = re.split(r"[<(]", name)[0].rpartition("::")[2]
    counted = [sys.executable, "-m", "rooflab.cuda.counted_launch", str(file)]
    found = read(_printed(counted, f"^{re.escape(function)}$"))
    if not found:
        raise CudaError(f"[{name}] Nsight Compute saw no launch of it")
    return _counts(found[0][1])


def command(counted: Sequence[str], kernels: str) -> list[str]:
    """The command that counts each kernel of a program whose function's name is like this regular expression."""
    asked = ["--metrics", ",".join([*METRICS.values(), _OPCODES]), "--print-metric-instances", "details"]
    shown = ["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
    return ["ncu", *shown, *asked, "--kernel-name", f"regex:{kernels}", *counted]


def read(printed: str) -> list[tuple[str, dict[str, int]]]:
    """(the kernel with its parameters, its counts by the names of `METRICS` and "barriers") for each launch."""
    table = "\n".join(line for line in printed.splitlines() if line.startswith('"'))
    found = []
    for row in csv.DictReader(io.StringIO(table)):
        if not row["Kernel Name"]:
            continue  # the row of units
        counts = {ours: int(row[its].split()[0].replace(",", "")) for ours, its in METRICS.items()}
        barriers = re.search(r"\bBAR: ([\d,]+)", row[_OPCODES])
        counts["barriers"] = int(barriers[1].replace(",", "")) if barriers else 0
        found.append((row["Kernel Name"], counts))
    return found


def _plain(value: Any) -> Any:
    """A NumPy number as JSON has it. Anything else is not an argument of a kernel, and the launch itself refuses it."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _ncu() -> str:
    path = shutil.which("ncu")
    if path is None:
        raise CudaError(
            "mode='count' on a GPU needs Nsight Compute: ncu, of CUDA's toolkit, is not on PATH. "
            "rl.cuda.compile(..., backend='simt') counts without it"
        )
    return path


def _printed(counted: Sequence[str], kernels: str) -> str:
    """What ncu prints of a program."""
    package = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))}
    try:
        printed, code = program.run(command(counted, kernels), _SECONDS, environment)
    except TimeoutError:
        raise CudaError(f"the launch was not counted after {_SECONDS:g} s: does the kernel end?") from None
    if "ERR_NVGPUCTRPERM" in printed:
        raise CudaError(
            "Nsight Compute may not read this GPU's counters: root may, and an administrator can permit it to others "
            "(NVIDIA's page ERR_NVGPUCTRPERM says how). rl.cuda.compile(..., backend='simt') counts without them"
        )
    if code:
        lines = [line for line in printed.splitlines() if line.strip()]
        raise CudaError("Nsight Compute could not count the launch: " + "\n".join(lines[-5:]))
    return printed


def _counts(found: dict[str, int]) -> KernelCounts:
    counts = KernelCounts(barriers=found["barriers"])
    for name in ("global_loads", "global_stores"):
        nbytes = found[f"{name}.bytes"]
        shown = {"bytes": nbytes, "distinct_bytes": nbytes, "sectors": found[f"{name}.sectors"]}
        setattr(counts, name, Access(found[f"{name}.requests"], **shown))
    for name in ("shared_loads", "shared_stores"):
        wavefronts = found[f"{name}.wavefronts"]
        ideal = wavefronts - found[f"{name}.bank_conflicts"]
        setattr(counts, name, Access(found[f"{name}.requests"], wavefronts=wavefronts, ideal_wavefronts=ideal))
    atomics, sectors = ("atom", "red"), ("atom_sectors", "red_sectors")
    counts.global_atomics.requests = sum(found[f"atomics.{name}"] for name in atomics)
    counts.global_atomics.sectors = sum(found[f"atomics.{name}"] for name in sectors)
    counts.shared_atomics.requests = found["shared_atomics.requests"]
    counts.flops = 2 * found["flops.fma"] + found["flops.add"] + found["flops.mul"]
    return counts
