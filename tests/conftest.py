"""Shared by all tests: devices, and skipping what this machine cannot run."""

import contextlib
import gc
import os
import platform
import zlib
from unittest import mock

import pytest

if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    # The processes of tests share the processors, and NumPy's products would take them all. NumPy reads this once.
    with mock.patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"):
        import numpy  # noqa: F401

import rooflab as rl

# Where these are set, pytest says in full how two files differ: minutes for a thousand bytes, hours for a checkpoint.
for name in ("CI", "BUILD_NUMBER"):
    os.environ.pop(name, None)

# Without a GPU half of all tests would only say that they skip.
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)] if rl.cuda.is_available() else ["cpu"]


def pytest_addoption(parser):
    parser.addoption("--fuzz-minutes", type=float, default=0, help="how long each test of test_fuzz.py draws new calls")
    parser.addoption("--all-tests", action="store_true", help="run the slow tests too: all answers to all labs")
    parser.addoption("--gpu", metavar="DEVICE", default="cuda", help="the GPU that is tested, for example cuda:1")
    parser.addoption(
        "--as-gpu", metavar="NAME", help="run on the GPU as on this one of rl.meta: T4 after a build for 75-virtual"
    )
    parser.addoption("--rewrite-golden", action="store_true", help="take what is found as what tests/golden shall say")


def pytest_configure(config):
    """The processes of tests share the processors. Kernels are chosen for the named GPU, whose instructions the code of
    this build must not exceed.
    """
    rl.set_num_threads(max(1, rl.num_threads() // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))
    name = config.getoption("--as-gpu")
    if not name:
        return
    wanted = rl._core._target.of(rl.meta(name))
    for index in range(rl.cuda.device_count()):
        target = rl._core._target.of(f"cuda:{index}")
        if target.code.number > wanted.code.number:
            raise pytest.UsageError(
                f"--as-gpu {name}: build with ROOFLAB_CUDA_ARCHITECTURES={wanted.code.number}-virtual"
            )
        target.sm_count, target.shared_bytes_of_block = wanted.sm_count, wanted.shared_bytes_of_block


def pytest_report_header(config):
    gpus = rl.cuda.device_count() if rl.cuda.is_available() else 0
    code = [rl._core._target.of(f"cuda:{index}").code.number for index in range(gpus)]
    named = f", as {config.getoption('--as-gpu')}" if config.getoption("--as-gpu") else ""
    return (
        f"GPUs: {gpus}, code for {code}{named}" if gpus else f"devices: the CPU alone ({rl.cuda.unavailable_reason()})"
    )


def is_slow(item):
    """Marked as slow; a mark with keywords is for the cases with one of these values of the named parameters alone, and
    but_every=3 spares about every third case. Which ones depends on each case's id alone, not on its neighbours.
    """
    case = getattr(item, "callspec", None)
    values = case.params | {"id": case.id} if case else {}

    def holds(mark):
        named = {name: some for name, some in mark.kwargs.items() if name != "but_every"}
        if "but_every" in mark.kwargs and zlib.crc32(case.id.encode()) % mark.kwargs["but_every"] == 0:
            return False
        return all(values[name] in some for name, some in named.items())

    return any(holds(mark) for mark in item.iter_markers("slow"))


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--all-tests"):
        config.hook.pytest_deselected(items=[item for item in items if is_slow(item)])
        items[:] = [item for item in items if not is_slow(item)]
    if rl.cuda.is_available():
        return
    skip = pytest.mark.skip(reason=rl.cuda.unavailable_reason())
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


def spare_what_lives():
    """Keep all that is alive now out of later garbage collections: there are many, and thousands of tests are alive."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish():
    spare_what_lives()


@pytest.fixture(scope="module", autouse=True)
def _spare_what_lives():
    yield
    spare_what_lives()


@pytest.fixture(params=DEVICES)
def device(request):
    """Each test runs on the CPU, and on the GPU where there is one."""
    return request.config.getoption("--gpu") if request.param == "cuda" else request.param


@pytest.fixture
def refused(device):
    """refused(error, match): a block that raises it, on the CPU by itself, on a GPU when the host next waits."""

    @contextlib.contextmanager
    def block(error, match):
        with pytest.raises(error, match=match):
            yield
            rl.ones(1, device=device).cpu()
        rl.ones(1, device=device).cpu()  # it is raised once

    return block


@pytest.fixture(autouse=True)
def _seed():
    rl.manual_seed(0)


@pytest.fixture(autouse=True)
def _visible_gpus(monkeypatch):
    """A grading command that runs in a test's own process must not hide the GPU from later tests."""
    monkeypatch.setattr("rooflab.grading.jail.jail.hide_gpus", lambda: None)


@pytest.fixture
def set_isa():
    """Set the instruction set of CPU kernels until the test ends; skip the test if this CPU lacks it."""
    before = rl.cpu_isa()

    def set_to(isa):
        try:
            rl.set_cpu_isa(isa)
        except ValueError as error:
            pytest.skip(str(error))
        assert rl.cpu_isa() == isa

    yield set_to
    rl.set_cpu_isa(before)


# The instruction sets of this processor, the best one last; a CPU may lack some, and so may a build.
IS_ARM = platform.machine() in ("aarch64", "arm64")
ISAS = ["neon", "neon_bf16"] if IS_ARM else ["baseline", "avx2", "avx512", "avx512_bf16"]


@pytest.fixture
def isas():
    return ISAS


@pytest.fixture(params=ISAS)
def instruction_set(request, set_isa):
    """Each test runs with the kernels of every instruction set that there is here."""
    set_isa(request.param)
    return request.param


@pytest.fixture
def instruction_sets():
    """Set one instruction set after the other within a test, to compare them."""
    best = rl.cpu_isa()

    def each():
        for isa in ISAS[: ISAS.index(best) + 1]:
            with contextlib.suppress(ValueError):
                rl.set_cpu_isa(isa)
                yield isa

    yield each
    rl.set_cpu_isa(best)


@pytest.fixture
def no_garbage():
    """Collect garbage that earlier tests left in cycles, and collect none during a test that compares memory."""
    gc.collect()


@pytest.fixture
def two_threads():
    """Two threads, because the CPU's scratch memory depends on how many threads work."""
    before = rl.num_threads()
    rl.set_num_threads(2)
    yield
    rl.set_num_threads(before)
