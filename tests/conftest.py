"""Shared by all tests: devices, and skipping what this machine cannot run."""

import pytest

import rooflab as rl

DEVICES = [pytest.param("cpu", id="cpu"), pytest.param("cuda", id="cuda", marks=pytest.mark.gpu)]


def pytest_addoption(parser):
    parser.addoption("--cpu-isa", help="the instruction set of CPU kernels: baseline, avx2, avx512 or avx512_bf16")
    parser.addoption("--rewrite-golden", action="store_true", help="take what is found as what tests/golden shall say")


def pytest_configure(config):
    if isa := config.getoption("--cpu-isa"):
        rl.set_cpu_isa(isa)


def pytest_collection_modifyitems(items):
    if rl.cuda.is_available():
        return
    skip = pytest.mark.skip(reason=rl.cuda.unavailable_reason())
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(params=DEVICES)
def device(request):
    """Each test runs on the CPU, and on the GPU where there is one."""
    return request.param


@pytest.fixture(autouse=True)
def _seed():
    rl.manual_seed(0)


@pytest.fixture
def two_threads():
    """The CPU's scratch depends on how many threads work."""
    before = rl.num_threads()
    rl.set_num_threads(2)
    yield
    rl.set_num_threads(before)
