"""Let compute-sanitizer judge the kernels of planted_bugs.py on a GPU, and write its verdicts as JSON.

python tests/cuda/simt/record_sanitizer.py                       # writes tests/golden/sanitizer.json
python tests/cuda/simt/record_sanitizer.py verdicts.json logs    # writes there, and all that was printed to logs

Each kernel is a program of its own, which is ended after a while: some barriers wait on a GPU for ever.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planted_bugs import BUGS, ELEMENTS, THREADS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "sanitizer.json"
SECONDS = 45
MAIN = """#include <cstdio>
#include "planted.cuh"
int main() {{
  float *x, *y;
  cudaMalloc(&x, {elements} * sizeof(float));
  cudaMalloc(&y, {elements} * sizeof(float));
  cudaMemset(x, 0, {elements} * sizeof(float));
  planted<<<{blocks}, {threads}>>>(x, y, {elements});
  std::printf("ended: %s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
}}
"""
# As in record_hardware.py: ptxas -O0 leaves every access that the source has, each with its line.
COMPILE = ["-lineinfo", "-Xptxas", "-O0", "-arch=native", "main.cu", "-o", "main"]
REPORT = re.compile(
    r"Invalid \w+ \w+ of size \d+ bytes|is misaligned|is out of bounds|Race reported between \w+ access|"
    r"Barrier error detected\. [^.\n]+|Uninitialized \w+ memory read of size \d+ bytes"
)


def tool(name):
    """The path of one of CUDA's programs."""
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if not found:
        raise SystemExit(f"{name} is not installed")
    return found


def said(folder, *command):
    """What a program prints, and whether it had to be ended."""
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        running = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=True
        )
        try:
            running.wait(SECONDS)
            hangs = False
        except subprocess.TimeoutExpired:
            hangs = True
            os.killpg(running.pid, signal.SIGKILL)  # compute-sanitizer starts the program as another process
            running.wait()
        printed.seek(0)
        return printed.read(), hangs


def judged(name, logs):
    """What the tool says of a kernel, and how the kernel ends without the tool."""
    bug = BUGS[name]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "planted.cuh").write_text(bug.source, encoding="utf-8")
        main = MAIN.format(blocks=bug.blocks, threads=THREADS, elements=ELEMENTS)
        (Path(folder) / "main.cu").write_text(main, encoding="utf-8")
        subprocess.run([tool("nvcc"), *COMPILE], cwd=folder, check=True)
        # Without room between them, an access behind x may be one of y.
        options = ["--padding", "65536"] if bug.tool == "memcheck" else []
        command = [tool("compute-sanitizer"), "--tool", bug.tool, "--show-backtrace", "device", *options, "./main"]
        text, hangs = said(folder, *command)
        alone, hangs_alone = said(folder, "./main")
    if logs:
        (logs / f"{name}.log").write_text(f"{bug.source}\n{text}\nalone: {alone}", encoding="utf-8")
    if not hangs and "SUMMARY: " not in text:
        print(f"{name}: compute-sanitizer did not judge it\n{text[-2000:]}", file=sys.stderr)
        return None
    ended = re.search(r"ended: (.*)", alone)
    return {
        "tool": bug.tool,
        "source": bug.source,
        "reports": sorted({found[0] for found in REPORT.finditer(text)}),
        "lines": sorted({int(found[1]) for found in re.finditer(r"planted\.cuh:(\d+)", text)}),
        "hangs": hangs,
        "alone": "hangs" if hangs_alone else ended[1] if ended else alone.strip()[-200:],
    }


def versions():
    """The card, its driver, and the versions of compiler and tool."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"]
    card = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    gpu, _, driver = card.partition(", ")
    found = {"gpu": gpu, "driver": driver}
    for ours, name, pattern in (
        ("cuda", "nvcc", r"release \S+ V(\S+)"),
        ("compute_sanitizer", "compute-sanitizer", r"Version (\S+)"),
    ):
        printed = subprocess.run([tool(name), "--version"], capture_output=True, text=True, check=True).stdout
        version = re.search(pattern, printed)
        found[ours] = version[1] if version else printed.strip()
    return found


def main():
    golden, logs = (*map(Path, sys.argv[1:]), None, None)[:2]
    if logs:
        logs.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(4) as pool:
        verdicts = dict(zip(BUGS, pool.map(lambda name: judged(name, logs), BUGS), strict=True))
    (golden or GOLDEN).write_text(json.dumps({**versions(), "kernels": verdicts}, indent=1) + "\n", encoding="utf-8")
    return 1 if None in verdicts.values() else 0


if __name__ == "__main__":
    sys.exit(main())
