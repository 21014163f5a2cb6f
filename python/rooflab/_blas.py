"""The BLAS that SciPy ships, as matmul's `library` rung on the CPU: its public Cython capsules hold the functions."""

from . import _core


def load() -> None:
    """Hand SciPy's sgemm and dgemm to the core; called by the core when the rung is first asked for."""
    try:
        from scipy.linalg import cython_blas
    except ImportError as error:
        raise ImportError("[matmul] variant: library needs SciPy for its BLAS; pip install scipy") from error
    functions = cython_blas.__pyx_capi__
    _core.set_cpu_blas(functions["sgemm"], functions["dgemm"])
