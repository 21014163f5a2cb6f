"""NumPy's functions of tensors."""

import numpy as np
import pytest

import rooflab as rl


def test_numpy_is_refused_what_is_not_counted():
    x = rl.ones(2, requires_grad=True)
    with rl.count() as c:
        np.exp(x).sum().backward()
    assert c.launches > 1 and x.grad.tolist() == [np.exp(np.float32(1))] * 2
    with pytest.raises(ValueError, match="requires grad"):
        np.arctan(x)
    for wrong in (lambda: np.add.reduce(x), lambda: np.exp(rl.ones(2), out=np.ones(2))):
        with pytest.raises(TypeError, match=r"\[numpy\] np\."):
            wrong()
