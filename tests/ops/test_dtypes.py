"""Dtypes and values of expressions beside PyTorch: tests/golden/dtypes.json holds what PyTorch gives.

`pytest tests/ops/test_dtypes.py --rewrite-golden` writes the file again where PyTorch is installed; read its diff.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from ops.dtype_expressions import SUBJECTS, evaluated

import rooflab as rl

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "dtypes.json"

# Where the two differ, and why; "raises" where rooflab refuses what PyTorch takes.
DEPARTURES = {
    "i + 2**31": "raises: int32 cannot hold the number, and PyTorch wraps it around",
    "i * 2**40": "raises: int32 cannot hold the number, and PyTorch gives 0",
    "l.masked_fill(m, 0.5)": "raises: PyTorch cuts off the fraction",
    "rl.full_like(l, 2.7)": "raises: PyTorch cuts off the fraction",
    "m ** True": "raises: powers are of numbers, and PyTorch refuses m ** m too",
    "i < 2**40": "the truth; PyTorch wraps the number around to 0",
    "l @ l": "raises: products are of floating dtypes",
    "rl.randint(0, 1, (2,), dtype=float)": "raises: random integers are int64 or int32",
    "l - True": "int64, as True is 1",
    "h - True": "float16, as True is 1",
    "m - f": "float32, as True is 1",
    "m - 2": "int64, as True is 1",
    "m - 2.0": "float32, as True is 1",
    "m - 1.5": "float32, as True is 1",
    "2 - m": "int64, as True is 1",
    "1.5 - m": "float32, as True is 1",
    "rl.sub(m, f)": "float32, as True is 1",
    "t = l.clone(); t -= True": "int64, as True is 1",
    "rl.masked_fill(h, m, 1e10)": "inf, the float16 nearest to the number",
    "rl.arange(3, dtype=bool)": "bool",
    "grad(lambda x: rl.floor_divide(x, 2) + x, f)": "the slope of a step function is 0",
}


def is_like(found, expected):
    """Both refuse, or dtype and values are equal. Errors have texts of their own, but for a division by zero."""
    return "error" in found if expected.get("error") == "an error" else found == expected


@pytest.mark.parametrize("subject", SUBJECTS)
def test_dtypes_and_values_are_those_of_pytorch(subject):
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    differ = {}
    for text in SUBJECTS[subject]:
        found = evaluated(text, rl, np)
        if text in DEPARTURES:
            assert ("error" in found) == DEPARTURES[text].startswith("raises"), text
            assert not is_like(found, golden[text]), f"{text} is no departure any more"
        elif not is_like(found, golden[text]):
            differ[text] = (golden[text], found)
    assert not differ


@pytest.mark.peer
def test_pytorch_gives_what_the_golden_file_holds(request):
    torch = pytest.importorskip("torch", minversion="2.15", reason="PyTorch 2.15 is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        now = {text: evaluated(text, torch, np) for texts in SUBJECTS.values() for text in texts}
    if request.config.getoption("--rewrite-golden"):
        lines = (f"{json.dumps(text)}: {json.dumps(value)}" for text, value in now.items())
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert {text: golden.get(text) for text in now} == now


def test_each_departure_is_an_expression():
    assert set(DEPARTURES) <= {text for texts in SUBJECTS.values() for text in texts}
