"""No test of figures leaves one open, shows one, or changes how matplotlib draws."""

import matplotlib
import pytest


@pytest.fixture(autouse=True)
def agg():
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    plt.switch_backend("agg")
    yield
    assert not plt.get_fignums()  # no figure stays open, none would show twice in a notebook
    assert dict(matplotlib.rcParams) | {"backend": before["backend"]} == before
