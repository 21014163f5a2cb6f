"""Let compute-sanitizer judge the kernels of planted_bugs.py on a GPU, and write tests/golden/sanitizer.json.

python tests/cuda/simt/record_sanitizer.py
"""

import json
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planted_bugs import BUGS, ELEMENTS, THREADS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "sanitizer.json"
MAIN = """#include <cstdio>
#include "planted.cuh"
int main() {{
  float *x, *y;
  cudaMalloc(&x, {elements} * sizeof(float));
  cudaMalloc(&y, {elements} * sizeof(float));
  cudaMemset(x, 0, {elements} * sizeof(float));
  planted<<<{blocks}, {threads}>>>(x, y, {elements});
  std::printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
}}
"""
COMPILE = ["nvcc", "-lineinfo", "-Xptxas", "-O0", "-arch=native", "main.cu", "-o", "main"]


def judged(name):
    """What the tool says: the first lines of its reports without addresses, and the lines of the source in them."""
    bug = BUGS[name]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "planted.cuh").write_text(bug.source, encoding="utf-8")
        main = MAIN.format(blocks=bug.blocks, threads=THREADS, elements=ELEMENTS)
        (Path(folder) / "main.cu").write_text(main, encoding="utf-8")
        subprocess.run(COMPILE, cwd=folder, check=True)
        command = ["compute-sanitizer", "--tool", bug.tool, "./main"]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    wanted = r"Invalid \w+ (?:read|write) of size \d+ bytes|is misaligned|is out of bounds|Race reported|Barrier error"
    reports = sorted({found[0] for found in re.finditer(wanted, said)})
    lines = sorted({int(found[1]) for found in re.finditer(r"planted\.cuh:(\d+)", said)})
    return {"tool": bug.tool, "reports": reports, "lines": lines, "said": said[:1500]}


def main():
    with ThreadPoolExecutor(8) as pool:
        verdicts = dict(zip(BUGS, pool.map(judged, BUGS), strict=True))
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"]
    card = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"Version (\S+)", version)
    found = {"gpu": card, "compute-sanitizer": release[1] if release else "", "kernels": verdicts}
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
