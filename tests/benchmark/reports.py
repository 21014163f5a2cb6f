"""What the tests of reports share: a modelled machine, a laptop, and the tables of a report."""

import dataclasses

import rooflab as rl
from rooflab.benchmark import lm_results, report

A100 = rl.meta("A100 SXM 40GB")
MODELLED = report.Settings(A100, model_sizes=("small", "2.7B"), context_lengths=(128, 256))
LAPTOP = dataclasses.replace(MODELLED, device="cpu", model_sizes=("small",))
HERE = lm_results.Origin({"kind": "cpu", "name": "A laptop", "threads": 2}, "1.0")


def tables(rows, *parts, compare=None):
    """The tables of some parts, as lists of cells, with the head first."""
    text = report.written(rows, parts, compare).markdown()
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    return [[line.strip("| ").split(" | ") for line in (block[0], *block[2:])] for block in blocks]
