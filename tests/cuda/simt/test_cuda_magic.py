"""``%%cuda_kernel`` in a notebook."""

import numpy as np
import pytest

pytest.importorskip("IPython")


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    # A history would have a thread and a file of its own.
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.run_line_magic("load_ext", "rooflab.cuda")
    yield shell
    InteractiveShell.clear_instance()


CELL = "__global__ void scale(float* x) {\n  x[threadIdx.x] *= FACTOR;\n}\n"


def test_a_cell_becomes_a_module(shell, capsys):
    shell.run_cell(f"%%cuda_kernel scaling --backend=simt -DFACTOR=3\n{CELL}").raise_error()
    assert capsys.readouterr().out == "scaling = Module(scale; simt)\n"
    x = np.ones(4, np.float32)
    shell.user_ns["scaling"]["scale"](1, 4, x)
    assert x.tolist() == [3.0] * 4
    shell.run_cell("%%cuda_kernel --backend=simt\n__global__ void f(float* x) { x[0] = 1; }").raise_error()
    assert shell.user_ns["module"].kernels == ["f"]


def test_errors_bear_the_cells_line(shell, capsys):
    shell.run_cell(f"%%cuda_kernel scaling --backend=simt\n{CELL}").raise_error()
    assert "source(3): error: 'FACTOR' was not declared" in capsys.readouterr().err
    assert "scaling" not in shell.user_ns
    with pytest.raises(ValueError, match="expected a name for the module, got '3x'"):
        shell.run_cell(f"%%cuda_kernel 3x\n{CELL}").raise_error()
