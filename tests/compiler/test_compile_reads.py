"""A compiled function that reads a tensor's value runs as it is written: a program would repeat the first value."""

import threading

import numpy as np
import pytest

import rooflab as rl

X = rl.ones(2)
READS = {
    "item": lambda x, t: x * t[0].item(),
    "tolist": lambda x, t: x * t.tolist()[0],
    "numpy": lambda x, t: x * float(t.numpy()[0]),
    "array": lambda x, t: x * float(np.asarray(t)[0]),
    "dlpack": lambda x, t: x * float(np.from_dlpack(t)[0]),
    "float": lambda x, t: x * float(t[0]),
    "int": lambda x, t: x * int(t[0]),
    "bool": lambda x, t: x * (5.0 if t[1] else 2.0),
    "index": lambda x, t: x * len(range(t[0])),
    "format": lambda x, t: x * float(f"{t[0]}"),
    "repr": lambda x, t: x * float(repr(t[0])[len("tensor(")]),
}


@pytest.mark.parametrize("name", READS)
def test_a_value_of_a_tensor_is_not_kept(name):
    t = rl.tensor([2, 0])
    compiled = rl.compile(lambda x: READS[name](x, t))
    with pytest.warns(UserWarning, match=rf"\[{name}\] reads the value of a tensor, .*read it before, and pass"):
        assert compiled(X).tolist() == [2.0, 2.0]
    t.fill_(5)
    assert compiled(X).tolist() == [5.0, 5.0]


def test_other_threads_and_later_calls_read():
    t, found = rl.tensor(2.0), []

    def function(x):
        thread = threading.Thread(target=lambda: found.append(t.item()))
        thread.start()
        thread.join()
        return x * 2

    before = vars(rl.Tensor)["item"]
    assert rl.compile(function)(X).tolist() == [2.0, 2.0]
    assert found == [2.0] and vars(rl.Tensor)["item"] is before
