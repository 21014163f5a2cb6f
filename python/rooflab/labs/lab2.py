"""What Lab 2 gives its students: checks of numbers and of measured times.

Letters: B sequences, L tokens, D model, I feed-forward, n layers, H heads, V vocabulary, N parameters. W and R are the
published solutions that the introduction of the lab names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rooflab.testing import is_count, is_near, is_number

__all__ = [
    "LABELS", "ORIGINAL_PEAKS", "R_ATTENTION", "R_PEAKS", "SIZES", "SOFTMAX_OF_SMALL", "W_TIMES", "W_WARMUP",
    "assert_keys", "assert_near", "assert_ranges", "assert_report", "assert_study_row", "assert_summary",
    "assert_timed", "assert_whole", "by_process", "draw_configs",
]  # fmt: skip

W_TIMES = {
    "small": (38.32, 78.33), "medium": (76.59, 154.60), "large": (114.59, 273.11), "xl": (155.08, 457.88),
    "2.7B": (219.24, 672.30),
}  # fmt: skip
"""Published by W at L = 128: mean ms of a forward pass, and of forward and backward together."""

W_WARMUP = {
    0: (226.39, 441.17, 1549.87, 84.33), 1: (77.61, 2.02, 78.77, 76.84), 2: (76.42, 2.58, 74.87, 75.54),
    5: (76.29, 2.13, 75.38, 76.07),
}  # fmt: skip
"""Published by W for the small model by warm-up steps: mean, standard deviation, first and second step, in ms."""

R_ATTENTION = {
    ("small", 128): (0.70, 1.53), ("small", 256): (0.75, 1.41), ("small", 512): (1.20, 2.40),
    ("small", 1024): (11.95, 8.69), ("medium", 128): (1.47, 3.07), ("medium", 256): (1.63, 3.20),
    ("medium", 512): (4.65, 6.30), ("large", 128): (2.23, 3.60), ("large", 256): (2.42, 4.75),
    ("xl", 128): (3.10, 5.81), ("2.7B", 128): (2.01, 3.67),
}  # fmt: skip
"""Published by R by size and L: ms in the softmax of a forward pass, and in both products of attention."""

SOFTMAX_OF_SMALL = {
    128: (0.007, 36.85, 10.9), 256: (0.009, 37.39, 11.9), 512: (0.019, 46.31, 18.1), 1024: (0.036, 103.95, 47.4),
}  # fmt: skip
"""Published for the small model by L: by W the softmax's share of all kernels, and the ms of the forward pass in its
profile; by R the ms of a forward pass."""

ORIGINAL_PEAKS = {
    128: (12.77, 17.92, 51.27, 56.11), 256: (12.88, 24.15, 51.29, 62.37), 512: (13.31, 39.61, 65.40, 77.99),
}  # fmt: skip
"""Counted with the original assignment's model and AdamW for 2.7B by L, in GiB: inference, forward with its graph,
step, step whose gradients are zeroed in place."""

R_PEAKS = {128: (18.51, 57.18), 256: (25.34, 66.09), 512: (44.17, "did not fit")}
"""Published by R for 2.7B by L, in GiB: forward, step."""

SIZES = ("small", "medium", "large", "xl", "2.7B")
"""Names of the models, the smallest first."""

LABELS = {"forward": ("forward",), "backward": ("backward",), "both": ("forward", "backward")}
"""The passes that the fake device launches in the time of a step, by mode."""

_TOLERANCE = 0.01
_NO_CLOCK = "No clock of the fake device was read: call time.perf_counter() by this name where you measure"


def assert_keys(name: str, value: Any, keys: Sequence[str]) -> None:
    """Assert that `value` is a dict with exactly these keys.

    Raises
    ------
    AssertionError
        Which keys are expected.

    Examples
    --------
    >>> from rooflab.labs.lab2 import assert_keys
    >>> assert_keys("row", {"mean_ms": 1.0}, ["mean_ms"])
    """
    listed = ", ".join(map(str, keys))
    assert isinstance(value, dict), f"{name} has to be a dict with the keys {listed}, not a {type(value).__name__}"
    got = ", ".join(map(str, value))
    assert set(value) == set(keys), f"{name}: expected the keys {listed}, got {got or 'none'}"


def assert_near(name: str, value: Any, right: float, relative: float, hint: str) -> None:
    """Assert that `value` is a number within `relative` of `right`.

    Raises
    ------
    AssertionError
        What was expected, what it is, and `hint`.

    Examples
    --------
    >>> from rooflab.labs.lab2 import assert_near
    >>> assert_near("ratio", 2.0004, 2.0, 1e-3, "divide times, not rates")
    """
    assert is_number(value), f"{name} has to be a number, not {value!r}"
    assert is_near(value, right, relative), f"{name}: expected {right:.6g}, got {value}; {hint}"


def assert_whole(function: Callable[..., Any], cases: Iterable[tuple[tuple, int]], hint: str) -> None:
    """Assert that ``function(*arguments)`` is the whole number of each case (arguments, number).

    Raises
    ------
    AssertionError
        The call, what was expected, what it gave, and `hint`.

    Examples
    --------
    >>> from rooflab.labs.lab2 import assert_whole
    >>> assert_whole(lambda config, B: B * config["n"], [(({"n": 3}, 2), 6)], "one for each layer")
    """
    for arguments, right in cases:
        call = f"{getattr(function, '__name__', 'the function')}({', '.join(map(repr, arguments))})"
        got = function(*arguments)
        assert is_count(got), f"{call} has to return an int, not {got!r}"
        assert got == right, f"{call}: expected {right}, got {got}; {hint}"


def draw_configs(rng: np.random.Generator, count: int = 20) -> list[tuple[dict[str, int], int, int, int]]:
    """Draw (config, V, B, L) at which two different formulas are most unlikely to agree.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the sizes are drawn from, such as `measure.rng()`.
    count : int
        How many.

    Examples
    --------
    >>> from rooflab.labs.lab2 import draw_configs
    >>> config, V, B, L = draw_configs(np.random.default_rng(1))[0]
    >>> list(config), config["d_model"] % (2 * config["num_heads"])
    (['d_model', 'd_ff', 'num_layers', 'num_heads'], 0)
    """
    found = []
    for _ in range(count):
        heads, half, inner, layers = (int(rng.integers(*ends)) for ends in ((1, 6), (3, 40), (7, 400), (1, 7)))
        V, B, L = (int(rng.integers(*ends)) for ends in ((11, 900), (1, 6), (2, 90)))
        config = {"d_model": 2 * heads * half, "d_ff": inner, "num_layers": layers, "num_heads": heads}
        found.append((config, V, B, L))
    return found


def assert_timed(seen: Any, mode: str, warmup_steps: int, measure_steps: int) -> None:
    """Assert that the samples that a benchmark on the fake device returned are the times of its steps.

    Parameters
    ----------
    seen : Faked
        From `measure.faked`: the samples in seconds, and the log of the device.
    mode : {"forward", "backward", "both"}
        What was to be timed.
    warmup_steps, measure_steps : int
        Steps that were to be run, and to be measured.

    Raises
    ------
    AssertionError
        What went wrong, as far as the log tells: the steps, the unit, or where the host did not wait.
    """
    case = f"{mode}, {warmup_steps} + {measure_steps} steps"
    forwards, backwards = seen.launches("forward"), seen.launches("backward")
    count = warmup_steps + measure_steps
    assert len(forwards) == count, f"{case}: expected {count} forward passes, got {len(forwards)}"
    if mode != "forward":
        assert len(backwards) == count, f"{case}: expected {count} backward passes, got {len(backwards)}"
    _assert_cleared(seen.log, case)
    steps = np.zeros(count)
    for label in LABELS[mode]:
        steps += [entry.work_ms for entry in seen.launches(label)]
    _assert_samples(seen.value, steps[warmup_steps:], case, {entry.kind for entry in seen.log})


def _assert_cleared(log: Iterable[Any], case: str) -> None:
    kept = sum(entry.kind == "kept" for entry in log)
    assert not kept, f"{case}: clear the gradients in each step; backward passes that found earlier ones: {kept}"


def _assert_samples(samples: Any, right_ms: np.ndarray, case: str, kinds: set[str]) -> None:
    """Samples in s are the times of the steps in ms, one by one; `kinds` are those of the entries in the log."""
    assert isinstance(samples, (list, tuple, np.ndarray)), (
        f"{case}: return a list of samples, not a {type(samples).__name__}"
    )
    assert len(samples) == len(right_ms), (
        f"{case}: expected {len(right_ms)} samples, one for each measured step, got {len(samples)}"
    )
    assert all(map(is_number, samples)), f"{case}: each sample has to be a number"
    got_ms = 1e3 * np.asarray(samples, dtype=np.float64)
    off = np.abs(got_ms - right_ms) > _TOLERANCE * right_ms
    if not off.any():
        return
    step = int(np.argmax(off))
    told, worked = got_ms[step], right_ms[step]
    where = f"{case}: measured step {step} took {worked:.4g} ms, your sample says {told:.4g} ms"
    assert kinds & {"clock", "event"}, f"{where}. {_NO_CLOCK}"
    assert not is_near(told / 1e3, worked, _TOLERANCE), f"{where}. Samples are in seconds"
    assert told > worked, f"{where}. Synchronize before you read the clock at the end of the step"
    assert step or off[1:].any(), f"{where}. Earlier work was still running: synchronize before you start the clock"
    raise AssertionError(f"{where}. Each sample has to contain one step, and nothing else")


def assert_summary(name: str, row: Mapping[str, Any], samples_ms: np.ndarray) -> None:
    """Assert that a row has these samples' mean and median, and their standard deviation with the ddof that it names.

    Raises
    ------
    AssertionError
        Which figure is wrong.

    Examples
    --------
    >>> from rooflab.labs.lab2 import assert_summary
    >>> assert_summary("row", {"mean_ms": 2.0, "median_ms": 2.0, "std_ms": 1.0, "ddof": 0}, np.array([1.0, 3.0]))
    """
    assert row["ddof"] in (0, 1), f"{name}: ddof has to be 0 (divide by m) or 1 (divide by m - 1), got {row['ddof']!r}"
    figures = {"mean_ms": np.mean(samples_ms), "median_ms": np.median(samples_ms)}
    for key, right in figures.items():
        assert is_near(row[key], float(right), _TOLERANCE), f"{name}: expected {key} = {right:.4g}, got {row[key]}"
    right = float(np.std(samples_ms, ddof=row["ddof"]))
    assert is_number(row["std_ms"]), f"{name}: std_ms has to be a number in ms, got {row['std_ms']!r}"
    near = is_near(row["std_ms"], right, 0, absolute=_TOLERANCE * right + 1e-3)
    assert near, f"{name}: expected std_ms = {right:.4g} with ddof = {row['ddof']}, got {row['std_ms']}"


def by_process(log: Iterable[Any]) -> list[np.ndarray]:
    """How long each step in a fake device's log took, by process: forward and backward in ms.

    Examples
    --------
    >>> from rooflab.labs.lab2 import by_process
    >>> by_process([])
    []
    """
    processes: list[list[float]] = []
    for entry in log:
        if entry.kind == "process":
            processes.append([])
        elif entry.kind == "launch" and entry.label == "forward":
            processes[-1].append(entry.work_ms)
        elif entry.kind == "launch" and entry.label == "backward":
            processes[-1][-1] += entry.work_ms
    return [np.array(steps) for steps in processes]


def assert_study_row(name: str, row: Mapping[str, Any], steps_ms: np.ndarray) -> None:
    """Assert that a row of the warm-up study describes these measured steps.

    Raises
    ------
    AssertionError
        Which figure is wrong.

    Examples
    --------
    >>> from rooflab.labs.lab2 import assert_study_row
    >>> row = {"mean_ms": 2.0, "std_ms": 1.0, "first_ms": 1.0, "second_ms": 3.0}
    >>> assert_study_row("row", row, np.array([1.0, 3.0]))
    """
    right = {"mean_ms": steps_ms.mean(), "first_ms": steps_ms[0], "second_ms": steps_ms[1]}
    for key, value in right.items():
        assert is_near(row[key], float(value), _TOLERANCE), f"{name}: expected {key} = {value:.4g}, got {row[key]}"
    assert_summary(name, {**row, "ddof": 0, "median_ms": float(np.median(steps_ms))}, steps_ms)


def assert_ranges(log: Sequence[Any], warmup_steps: int, measure_steps: int, optimizer: bool) -> None:
    """Assert that steps ran inside the ranges of 1.1.4a, that no phase was left before its work was done, and that no
    backward pass found the gradients of an earlier step.

    Raises
    ------
    AssertionError
        Which range is missing, or left too early.
    """
    paths, open_names = [], []
    work_end_ms = 0.0
    for entry in log:
        if entry.kind == "open":
            open_names.append(entry.label)
            paths.append("/".join(open_names))
        elif entry.kind == "launch":
            where = "/".join(open_names)
            assert open_names and open_names[-1] == entry.label, (
                f"work of the phase {entry.label} was launched in the range {where!r}, not in a range {entry.label!r}"
            )
            work_end_ms = entry.end_ms
        elif entry.kind == "close":
            name = open_names.pop()
            early = work_end_ms - entry.at_ms
            assert early <= 0, f"the range {name} ended {early:.3g} ms before its work was done: synchronize first"
    _assert_cleared(log, f"{warmup_steps} + {measure_steps} steps")
    for phase in ("forward", "backward", *["optimizer"] * optimizer):
        count = paths.count(f"warmup/{phase}")
        assert count == warmup_steps, f"expected {warmup_steps} ranges warmup/{phase}, got {count}"
        for step in range(measure_steps):
            path = f"measurement/step_{step}/{phase}"
            assert paths.count(path) == 1, f"expected one range {path}, got {paths.count(path)}"
    for name, steps in {"warmup": warmup_steps, "measurement": measure_steps}.items():
        said = f"expected one range {name} around all of its steps, got {paths.count(name)}"
        assert paths.count(name) == 1 or not steps, said


_TIME_HEADS = {"mean_ms": ("mean", "average"), "std_ms": ("std", "standard deviation", "deviation", "spread")}
_OTHER_HEADS = {
    "size": "(?i:size)", "length": r"\bL\b|(?i:length)", "warmup": "(?i:warm)", "mode": "(?i:mode(?!l))",
    "source": "(?i:source)", "status": "(?i:status)",
}  # fmt: skip
_EMPTY = ("", "-", "--", "\u2013", "\u2014", "oom", "n/a")  # what a cell without a time may hold


def assert_report(found: Any, rows: Sequence[Mapping[str, Any]], machine: str, dtype: str, ddof: int) -> None:
    """Assert that a table of a report has all rows of a benchmark, its times, and a caption that tells their origin.

    Raises
    ------
    AssertionError
        What is missing.
    """
    head, shown, caption = found["head"], found["rows"], found["caption"]
    assert head and all(head), f"give every column a header, got {head}"
    columns = {}
    for key, known in _TIME_HEADS.items():
        fitting = [place for place, name in enumerate(head) if "ms" in name and any(w in name.lower() for w in known)]
        said = f"the table needs one column whose header says {known[0]} and ms, got {head}"
        assert len(fitting) == 1, said
        columns[key] = fitting[0]
    others = {key: [n for n, name in enumerate(head) if re.search(known, name)] for key, known in _OTHER_HEADS.items()}
    said = "the table needs heads that contain size, L or length, warm, mode, source and status"
    assert all(others.values()), f"{said}, got {head}"
    for word in (machine, dtype, "ms", "ddof"):
        assert word in caption, (
            f"the caption {caption!r} lacks {word!r}; name the machine, the dtype, the ddof and the unit"
        )
    named = ddof_in(caption.replace(machine, "").replace(dtype, ""))
    assert named == [str(ddof)], (
        f"the caption {caption!r} has to give the ddof, {ddof}, and no other number after that word"
    )
    assert len(shown) == len(rows), (
        f"expected {len(rows)} rows, got {len(shown)}; rows that are out of memory belong in the table"
    )
    for row, cells in zip(rows, shown, strict=True):
        for key, places in others.items():
            said = f"the row of {row['size']}, L = {row['length']}, {row['mode']}, column {head[places[0]]!r}"
            got = [cells[place] for place in places]
            assert str(row[key]) in got, f"{said}: expected {row[key]}, got {got[0]!r}"
        for key, place in columns.items():
            said = f"the row of {row['size']}, L = {row['length']}, {row['mode']}, column {head[place]!r}"
            if row[key] is None:
                assert cells[place].lower() in _EMPTY, f"{said}: leave a time that is None empty, got {cells[place]!r}"
            else:
                assert cells[place] == f"{row[key]:.2f}", f"{said}: expected {row[key]:.2f}, got {cells[place]!r}"


def ddof_in(caption: str) -> list[str]:
    """The number after the word ddof, and one that is named beside it.

    Examples
    --------
    >>> ddof_in("an A100, ddof = 0, 10 steps, ms"), ddof_in("ms - ddof 0 - 10 steps"), ddof_in("ddof 0 or 1")
    (['0'], ['0'], ['0', '1'])
    """
    beside = r" *(?:,? *(?:or|and|to|/)|(?:,|,? *-)(?! *[0-9]+ *[A-Za-z])) *([0-9]+)"
    found = re.match(rf"[^0-9]*([0-9]+)(?:{beside})?", caption.partition("ddof")[2])
    return [number for number in found.groups() if number] if found else []
