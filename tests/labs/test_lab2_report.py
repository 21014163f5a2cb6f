"""Lab 2, question 2: what the table of a report has to say."""

import pytest

from rooflab.labs import lab2

REPORTED = {
    "head": ["size", "L", "warm-up", "mode", "source", "status", "mean ms", "std ms"],
    "rows": [
        ["xl", "8", "1", "both", "measured", "ok", "2.50", "0.10"],
        ["xl", "9", "1", "both", "measured", "OOM", "", "-"],
        ["xl", "7", "0", "both", "modelled", "ok", "3.00", ""],
    ],
    "caption": "*A100, fp32, ms, ddof = 0*",
}
_NAMES = ("size", "length", "warmup", "mode", "source", "status", "mean_ms", "std_ms")
MEASURED = [
    dict(zip(_NAMES, row, strict=True))
    for row in (
        ("xl", 8, 1, "both", "measured", "ok", 2.5, 0.1),
        ("xl", 9, 1, "both", "measured", "OOM", None, None),
        ("xl", 7, 0, "both", "modelled", "ok", 3.0, None),
    )
]


def headed(words):
    return {"head": [word.replace("_", " ") for word in words.split()]}


def changed_row(number, place, cell):
    rows = [list(row) for row in REPORTED["rows"]]
    rows[number][place] = cell
    return rows


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        (headed("size L warm-up mode source status std_ms mean_ms"), "expected 2.50, got '0.10'"),
        ({"head": ["", "L", "warm-up", "mode", "source", "status", "mean ms", "std ms"]}, "give every column a header"),
        (headed("size L warm-up mode source status mean std"), "one column whose header says mean and ms"),
        ({"caption": "*A100, fp32, ms, ddof 0 or 1*"}, "has to give the ddof, 0, and no other"),
        ({"caption": "*A100, fp32, ms, ddof 1*"}, "has to give the ddof, 0, and no other"),
        ({"rows": changed_row(1, -2, "nan")}, "empty, got 'nan'"),
        ({"rows": changed_row(2, -1, "0.00")}, "None empty, got '0.00'"),
        ({"rows": changed_row(2, 4, "measured")}, "L = 7, both, column 'source': expected modelled, got 'measured'"),
        (headed("size warm-up L mode source status mean_ms std_ms"), "column 'L': expected 8, got '1'"),
        (headed("size L warm-up model source status mean_ms std_ms"), "L or length, warm, mode"),
    ],
)
def test_what_a_report_has_to_say(change, said):
    if said is None:
        return lab2.assert_report(REPORTED | change, MEASURED, "A100", "fp32", 0)
    with pytest.raises(AssertionError, match=said):
        lab2.assert_report(REPORTED | change, MEASURED, "A100", "fp32", 0)
