"""Findings in small kernels beside those of compute-sanitizer on a GPU: the same verdict, and the same lines."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from planted_bugs import BUGS, ELEMENTS, THREADS

import rooflab as rl

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "sanitizer.json").read_text(encoding="utf-8"))["kernels"]
# Each tool looks for one kind of fault.
KINDS = {
    "memcheck": {"out of bounds", "misaligned"},
    "racecheck": {"race"},
    "synccheck": {"missed barrier", "missed threads of a warp"},
    "initcheck": {"uninitialised"},
}
# Where the two differ, and why; the docs of Finding say the same.
ENDED = "threads that have ended do not hold up a GPU's barrier, and synccheck is silent"
DIFFERENT = {
    "all_write_one": "racecheck is silent where all write the same value",
    "barrier_of_half_a_warp": ENDED,
    "barrier_of_half_a_block": ENDED,
    "return_before_a_barrier": ENDED,
    "barriers_by_warp": ENDED,
    "shuffle_of_half_a_warp": "a GPU waits until the threads that went past it have ended, and synccheck is silent",
    "barriers_of_two_branches": "the GPU waits for ever, and synccheck names no line",
    "shared_that_nobody_wrote": "this version of initcheck looks at global memory only",
    "global_that_nobody_wrote": "here each array counts as written",
}


def lines_found(name):
    """The lines that the findings of the tool's kind name, on both sides of a race."""
    bug = BUGS[name]
    kernel = rl.cuda.compile(bug.source, backend="simt")["planted"]
    x, y = np.zeros(ELEMENTS, np.float32), np.zeros(ELEMENTS, np.float32)
    try:
        findings = kernel(bug.blocks, THREADS, x, y, ELEMENTS).findings
    except rl.cuda.KernelError as error:
        findings = error.findings
    said = "\n".join(str(finding) for finding in findings if finding.kind in KINDS[bug.tool])
    return sorted({int(line) for line in re.findall(r"\bline (\d+)", said)})


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("name", BUGS)
def test_it_finds_what_compute_sanitizer_finds(name):
    judged = GOLDEN[name]
    assert judged["source"] == BUGS[name].source and judged["tool"] == BUGS[name].tool, "record it again"
    assert bool(judged["lines"]) == bool(judged["reports"])
    assert (lines_found(name) == judged["lines"]) == (name not in DIFFERENT), judged


def test_a_kernel_that_hangs_on_a_gpu_has_a_finding():
    hanging = [name for name, judged in GOLDEN.items() if judged["hangs"] or judged["alone"] == "hangs"]
    assert hanging == ["barriers_of_two_branches"] and all(map(lines_found, hanging))


def test_every_kernel_was_judged():
    assert list(GOLDEN) == list(BUGS) and DIFFERENT.keys() <= BUGS.keys()
    assert (len(BUGS), len(DIFFERENT)) == (32, 9)  # as the docs say
