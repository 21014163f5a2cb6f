"""Measure the kernels of micro_kernels.py by Nsight Compute on a GPU, and write tests/golden/hardware.json.

python tests/cuda/simt/record_hardware.py          # measures; ncu must be allowed to read the counters
python tests/cuda/simt/record_hardware.py -O0      # what ncu runs: launches each kernel once
"""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

from micro_kernels import MICROS, SOURCE

import rooflab as rl

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "hardware.json"
# ptxas as it is asked for each: -O0 leaves every access that the source has.
COMPILED = {"-O0": ["--ptxas-options=-O0"], "-O3": []}
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
OPCODES = "sass__inst_executed_per_opcode"


def launch_all(options):
    module = rl.cuda.compile(SOURCE, options, backend="gpu")
    for micro in MICROS.values():
        tensors = [rl.tensor(array, device="cuda") for array in micro.arrays]
        module[micro.name](micro.grid, micro.block, *tensors)
    rl.cuda.synchronize()


def measured(compiled):
    """The metrics of each kernel by its name."""
    asked = ",".join([*METRICS.values(), OPCODES])
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--metrics", asked]
    command += ["--print-metric-instances", "details", "--kernel-name", "regex:^micro_"]
    done = subprocess.run([*command, sys.executable, __file__, compiled], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout[-4000:] + done.stderr[-4000:])
    table = "\n".join(line for line in done.stdout.splitlines() if line.startswith('"'))
    found = {}
    for row in csv.DictReader(io.StringIO(table)):
        if not row["Kernel Name"]:
            continue  # the row of units
        counts = {ours: int(row[its].split()[0].replace(",", "")) for ours, its in METRICS.items()}
        barriers = re.search(r"\bBAR: ([\d,]+)", row[OPCODES])
        counts["barriers"] = int(barriers[1].replace(",", "")) if barriers else 0
        found[row["Kernel Name"].partition("(")[0].removeprefix("micro_")] = counts
    return found


def main():
    if len(sys.argv) > 1:
        return launch_all(COMPILED[sys.argv[1]])
    by_options = {compiled: measured(compiled) for compiled in COMPILED}
    card = rl.cuda.properties().name
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    compiler = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"release \S+ V(\S+)", compiler)[1]
    kernels = {name: {compiled: by_options[compiled].get(name) for compiled in COMPILED} for name in MICROS}
    GOLDEN.write_text(
        json.dumps({"gpu": card, "driver": driver, "cuda": release, "kernels": kernels}, indent=1) + "\n",
        encoding="utf-8",
    )
    return None


if __name__ == "__main__":
    main()
