"""Measure the kernels of micro_kernels.py by Nsight Compute on a GPU, and write tests/golden/hardware.json.

python tests/cuda/simt/record_hardware.py          # measures; ncu must be allowed to read the counters
python tests/cuda/simt/record_hardware.py -O0      # what ncu runs: launches each kernel once
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from micro_kernels import MICROS, SOURCE

import rooflab as rl
from rooflab.cuda import hardware

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "hardware.json"
# ptxas as it is asked for each: -O0 leaves every access that the source has.
COMPILED = {"-O0": ["--ptxas-options=-O0"], "-O3": []}


def launch_all(options):
    module = rl.cuda.compile(SOURCE, options, backend="gpu")
    for micro in MICROS.values():
        tensors = [rl.tensor(array, device="cuda") for array in micro.arrays]
        module[micro.name](micro.grid, micro.block, *tensors)
    rl.cuda.synchronize()


def measured(compiled):
    """The metrics of each kernel by its name."""
    command = hardware.command([sys.executable, __file__, compiled], "^micro_")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout[-4000:] + done.stderr[-4000:])
    return {name.partition("(")[0].removeprefix("micro_"): counts for name, counts in hardware.read(done.stdout)}


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
