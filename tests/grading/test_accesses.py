"""Arrays in global memory count each element that is read and written, wherever the index is."""

import os

import numpy as np
import pytest

from rooflab.grading import measure
from rooflab.grading.measure.global_array import GlobalArray, packed, unpacked
from rooflab.grading.measure.global_memory import GlobalMemory, counted


def test_each_element_is_counted_as_often_as_it_is_named():
    x, memory = counted(np.arange(12).reshape(3, 4))
    assert (x.shape, x.size, len(x), x.dtype) == ((3, 4), 12, 3, np.int64)
    assert x[1, 2] == 6 and x[0:2, 3:9].tolist() == [[3], [7]]
    assert x[np.array([0, 0]), np.array([1, 1])].tolist() == [1, 1]
    assert x.read_counts.tolist() == [[0, 2, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0]]
    assert (x.reads, x.writes) == (5, 0)
    assert [(place, numbers.tolist()) for place, numbers in memory.order] == [(0, [6]), (0, [3, 7]), (0, [1, 1])]
    x[2] = 7
    x[2, 0] = 8
    assert x.write_counts.tolist() == [[0] * 4, [0] * 4, [2, 1, 1, 1]] and memory.arrays[0][2].tolist() == [8, 7, 7, 7]
    assert x.reads == memory.reads[0].sum() == 5 and x.writes == memory.writes[0].sum() == 5


def test_what_is_read_is_on_the_chip():
    x, memory = counted(np.zeros(4))
    part = x[0:2]
    part += 1
    assert memory.arrays[0].tolist() == [0, 0, 0, 0] and type(part) is np.ndarray


def test_the_whole_array_is_read_by_numpy_and_by_a_loop():
    x, _ = counted(np.arange(6.0))
    assert np.asarray(x).sum() == 15 and x.reads == 6
    assert [float(one) for one in x] == [0, 1, 2, 3, 4, 5] and x.reads == 12


@pytest.mark.parametrize("index", [4, -1, np.array([0, -1]), np.array([0, 4]), np.zeros(2**24 + 1, int)])
def test_outside_is_an_error(index):
    x, memory = counted(np.zeros(4))
    with pytest.raises(IndexError):
        x[index]
    with pytest.raises(IndexError):
        x[index] = 1.0
    assert x.reads == x.writes == 0 and not memory.arrays[0].any()


def test_measured_accesses_come_by_argument():
    def halves(a, n, b):
        b[0:n] = a[0:n] / 2
        return "done"

    a, b = np.arange(5.0), np.full(5, -1.0)
    seen = measure.accesses(halves, a, 3, b)
    assert seen.value == "done" and seen.arrays[1] is None
    assert seen.arrays[2].tolist() == [0, 0.5, 1, -1, -1] and b.tolist() == [-1] * 5
    assert seen.reads[0].tolist() == seen.writes[2].tolist() == [1, 1, 1, 0, 0]
    assert not seen.writes[0].any() and not seen.reads[2].any()


def test_reads_come_in_their_order():
    def last(n, a, b):
        return a[1:3] + b[0], a[np.array([2, 0])]

    seen = measure.accesses(last, 3, np.arange(5.0), np.ones((2, 2)))
    assert [(place, numbers.tolist()) for place, numbers in seen.order] == [(1, [1, 2]), (2, [0, 1]), (1, [2, 0])]


def test_the_order_of_endless_reads_is_not_kept(monkeypatch):
    monkeypatch.setattr("rooflab.grading.measure.global_memory.MAX_ORDERED", 5)
    x, memory = counted(np.zeros(4))
    for index in (slice(0, 0), slice(0, 2), 1, 2, 3, slice(0, 0)):
        x[index]
    assert [len(numbers) for _, numbers in memory.order] == [0, 2, 1, 1] and x.reads == 5


@pytest.mark.parametrize(
    "index",
    [3, np.int64(2), slice(1, None, 2), (1, slice(None)), (..., 2), None, np.array([1, 0]), [True, False, True]],
)
def test_an_index_goes_to_another_process(index):
    x = np.arange(12).reshape(3, 4) if not isinstance(index, int) or index < 3 else np.arange(4)
    kinds = (int, str, tuple, list, np.ndarray, np.generic, type(None))
    assert isinstance(packed(index), kinds) and not isinstance(packed(index), slice)
    assert np.array_equal(x[unpacked(packed(index))], x[index])


@pytest.mark.parametrize("index", [np.zeros(2**13, int), [np.zeros(2**13, int), ("slice", None, None, None)]])
def test_rows_that_do_not_fit_into_memory_are_not_read(index):
    memory = GlobalMemory([np.zeros((2, 2**12))])
    with pytest.raises(IndexError, match="at a time"):
        memory.answer("read", 0, index)


@pytest.mark.parametrize("how", ["read", "write"])
@pytest.mark.parametrize("index", [[None] * 31, [np.zeros((1,) * 16, int), *[None] * 16]])
def test_a_result_of_many_dimensions_does_not_end_the_process(how, index):
    """The test runs it in a process of its own, because NumPy would follow a wild pointer."""
    pid = os.fork()
    if pid == 0:
        try:
            GlobalMemory([np.zeros((8, 8))]).answer(how, 0, index, *[np.ones(1)] * (how == "write"))
        except IndexError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize(
    "question",
    [("values", 0), ("read", 0), ("read", 1, 0), ("write", 0, 0), ("write", 0, 0, "text"), ("arrays", 0)],
)
def test_a_program_can_ask_for_nothing_else(question):
    _, memory = counted(np.zeros(4))
    with pytest.raises((ValueError, IndexError)):
        memory.answer(*question)
    assert not memory.reads[0].any() and not memory.writes[0].any()


def test_counts_that_a_program_gets_are_copies():
    def reads(a):
        a.read_counts[:] = 0
        return a[1]

    seen = measure.accesses(reads, np.arange(3.0))
    assert seen.reads[0].tolist() == [0, 1, 0] and seen.value == 1


def test_a_class_that_was_changed_still_counts(monkeypatch):
    monkeypatch.setattr(GlobalArray, "read_counts", np.zeros(3))
    seen = measure.accesses(lambda a: a[0], np.arange(3.0))
    assert seen.reads[0].tolist() == [1, 0, 0]
