"""Kernels on the CPU."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.cuda.simt import toolchain


@pytest.fixture(autouse=True)
def _needs_a_compiler():
    try:
        toolchain.compiler()
    except toolchain.NoCompiler as missing:
        pytest.skip(str(missing))


@pytest.fixture
def build():
    """A source's only kernel, or the one with this name."""

    def built(source, name=None, options=()):
        module = rl.cuda.compile(source, options, backend="simt")
        return module[name or module.kernels[0]]

    return built


@pytest.fixture
def run(build):
    """run(source, grid, block, *args, ...) -> Launch, with its findings or without any."""

    def ran(source, grid, block, *args, name=None, mode="count", **options):
        try:
            return build(source, name)(grid, block, *args, mode=mode, **options)
        except rl.cuda.KernelError as error:
            return error.launch

    return ran


@pytest.fixture
def refused():
    """refused(source) -> what the compiler says of it."""

    def refused(source):
        with pytest.raises(rl.cuda.CompileError) as error:
            rl.cuda.compile(source, backend="simt")
        return error.value.log

    return refused


@pytest.fixture
def numbers():
    """numbers(shape) -> float32 array, the same at each call."""
    return lambda *shape: np.random.default_rng(7).standard_normal(shape, dtype=np.float32)
