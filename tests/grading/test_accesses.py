"""Arrays in global memory count each element that is read and written, wherever the index is."""

import contextlib

import numpy as np
import pytest

from rooflab.grading import measure
from rooflab.grading.accesses import counted
from rooflab.grading.global_array import GlobalArray


def test_each_element_is_counted_as_often_as_it_is_named():
    x, look = counted(np.arange(12).reshape(3, 4))
    assert (x.shape, x.size, len(x), x.dtype) == ((3, 4), 12, 3, np.int64)
    assert x[1, 2] == 6 and x[0:2, 3:9].tolist() == [[3], [7]]
    assert x[np.array([0, 0]), np.array([1, 1])].tolist() == [1, 1]
    assert x.read_counts.tolist() == [[0, 2, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0]]
    assert (x.reads, x.writes, x.most_at_once) == (5, 0, 2)
    x[2] = 7
    x[2, 0] = 8
    assert x.write_counts.tolist() == [[0] * 4, [0] * 4, [2, 1, 1, 1]] and look("values")[2].tolist() == [8, 7, 7, 7]
    assert x.reads == look("reads").sum() == 5 and x.writes == look("writes").sum() == 5


def test_what_is_read_is_on_the_chip():
    x, look = counted(np.zeros(4))
    part = x[0:2]
    part += 1
    assert look("values").tolist() == [0, 0, 0, 0] and type(part) is np.ndarray


def test_the_whole_array_is_read_by_numpy_and_by_a_loop():
    x, _ = counted(np.arange(6.0))
    assert np.asarray(x).sum() == 15 and x.reads == 6
    assert [float(one) for one in x] == [0, 1, 2, 3, 4, 5] and x.reads == 12


@pytest.mark.parametrize("index", [4, -1, np.array([0, -1]), np.array([0, 4])])
def test_outside_is_an_error(index):
    x, look = counted(np.zeros(4))
    with pytest.raises(IndexError):
        x[index]
    with pytest.raises(IndexError):
        x[index] = 1.0
    assert x.reads == x.writes == 0 and not look("values").any()


def test_measured_accesses_come_by_argument():
    def halves(a, n, b):
        b[0:n] = a[0:n] / 2
        return "done"

    a, b = np.arange(5.0), np.full(5, -1.0)
    seen = measure.accesses(halves, a, 3, b)
    assert seen.value == "done" and seen.arrays[1] is None and seen.most_at_once == (3, None, 0)
    assert seen.arrays[2].tolist() == [0, 0.5, 1, -1, -1] and b.tolist() == [-1] * 5
    assert seen.reads[0].tolist() == seen.writes[2].tolist() == [1, 1, 1, 0, 0]
    assert not seen.writes[0].any() and not seen.reads[2].any()


@pytest.mark.parametrize(
    "code",
    ["a._read.__self__", "a._read.__closure__", "a._look('values').value + 0", "a.read_counts[:] = 0",
     "type(a).__getitem__.__globals__['counted']"],
)  # fmt: skip
def test_nothing_leads_past_the_counts(code):
    """An attempt fails, or changes nothing that is measured."""

    def reads(a):
        with contextlib.suppress(Exception):
            exec(code)
            tried.append(code)
        return a[1]

    tried = []
    seen = measure.accesses(reads, np.arange(3.0))
    assert seen.reads[0].tolist() == [0, 1, 0] and seen.value == 1
    assert tried == ([code] if "read_counts" in code else [])


def test_a_class_that_was_changed_still_counts(monkeypatch):
    monkeypatch.setattr(GlobalArray, "__init__", lambda *_: 1 / 0)
    monkeypatch.setattr(GlobalArray, "read_counts", np.zeros(3))
    monkeypatch.setattr(GlobalArray, "__setattr__", lambda *_: 1 / 0)
    assert measure.accesses(lambda a: a[0], np.arange(3.0)).reads[0].tolist() == [1, 0, 0]
