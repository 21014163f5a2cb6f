"""Where tensors' memory comes from and goes: blocks that split and merge, bounds, limits, threads."""

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import rooflab as rl

MiB = 1 << 20


@pytest.fixture
def fresh(device):
    """Run code in a process of its own, so that memory cached by other tests does not matter."""

    def run(code, **options):
        start = f"import rooflab as rl\nDEVICE, MiB = {device!r}, 1 << 20\n"
        start += "def block(size): return rl.empty(int(size) // 4, device=DEVICE)\n"
        done = subprocess.run(
            [sys.executable, "-c", start + textwrap.dedent(code)], capture_output=True, text=True, **options
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.slow(step=[8, 24])
@pytest.mark.parametrize("step", [1, 8, 24, 66])
def test_a_growing_tensor_leaves_little_behind(fresh, step):
    fresh(f"""
        x = None
        for megabytes in range({step}, 265, {step}):
            y = block(megabytes * 1e6)
            x = y
            del y
            bound = 1.5 * rl.memory.peak(DEVICE) + 64 * MiB
            assert rl.memory.reserved(DEVICE) <= bound, (megabytes, rl.memory.reserved(DEVICE))
    """)


def test_blocks_split_and_merge(fresh):
    fresh("""
        whole = block(12 * MiB)
        address = whole.data_ptr()
        del whole
        left, right = block(8 * MiB), block(4 * MiB)
        assert left.data_ptr() == address and rl.memory.reserved(DEVICE) == (12 + 16) * MiB
        a, b, c, d = (block(2 * MiB) for _ in range(4))
        first = a.data_ptr()
        assert [x.data_ptr() - first for x in (b, c, d)] == [2 * MiB, 4 * MiB, 6 * MiB]
        del b
        assert block(2 * MiB).data_ptr() == first + 2 * MiB
        del a, c
        assert block(6 * MiB).data_ptr() == first
        assert rl.memory.reserved(DEVICE) == (12 + 16) * MiB
    """)


def test_the_smallest_block_that_fits_is_taken(fresh):
    fresh("""
        large, small = block(64 * MiB), block(40 * MiB)
        address = small.data_ptr()
        del small, large
        assert block(40 * MiB).data_ptr() == address
    """)


def test_small_tensors_do_not_break_up_large_memory(fresh):
    fresh("""
        large = block(64 * MiB)
        address = large.data_ptr()
        del large
        small = [block(size) for size in (4, 5000, 2 * MiB)]
        assert block(64 * MiB).data_ptr() == address
    """)


def test_many_tensors_take_little_more_than_they_hold(fresh):
    fresh("""
        for size in (1100, 70_000, 1_100_000, 9_000_000):
            held = [block(size) for _ in range(64_000_000 // size)]
            assert rl.memory.reserved(DEVICE) < 1.25 * rl.memory.allocated(DEVICE) + 16 * MiB
            del held
            rl.memory.empty_cache(DEVICE)
            assert rl.memory.reserved(DEVICE) == 0
    """)


def test_what_is_kept_can_be_trimmed(fresh):
    fresh("""
        held = [block(10 * MiB) for _ in range(5)]
        kept = held.pop()
        del held
        rl.memory.empty_cache(DEVICE, keep_bytes=30 * MiB)
        assert rl.memory.reserved(DEVICE) == 30 * MiB
        rl.memory.empty_cache(DEVICE)
        assert rl.memory.reserved(DEVICE) == 10 * MiB
    """)


@pytest.mark.parametrize("size", [1, 63, 257, 5000, 100_000, 3_000_000, 20_000_000])
def test_blocks_are_aligned(device, size):
    address = rl.empty(size, dtype="bool", device=device).data_ptr()
    assert address % (4096 if size >= 4096 else 256) == 0


@pytest.fixture
def limit(device, no_garbage):
    yield lambda above: rl.memory.set_limit(rl.memory.allocated(device) + above, device)
    rl.memory.set_limit(None, device)


def test_beyond_the_limit_there_is_no_memory(device, limit):
    limit(4000)
    with pytest.raises(rl.OutOfMemoryError, match=r"asked for .* the limit is"):
        rl.empty(1001, device=device)
    x = rl.empty(1000, device=device)
    with pytest.raises(rl.OutOfMemoryError):
        rl.exp(x)
    del x
    assert rl.empty(1000, device=device).nbytes == 4000
    rl.memory.set_limit(None, device)
    assert rl.empty(1001, device=device).nbytes == 4004
    with pytest.raises(ValueError, match="bytes: expected >= 0 or None, got -1"):
        rl.memory.set_limit(-1, device)


def test_the_limit_bounds_what_is_available(device, limit):
    limit(MiB)
    assert rl.memory.available(device) == MiB
    x = rl.empty(1000, device=device)
    assert rl.memory.available(device) == MiB - x.nbytes
    limit(-1)
    assert rl.memory.available(device) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say in advance what they can back")
def test_what_no_memory_can_back_is_refused_before_it_is_written():
    """Linux grants such memory, and would kill the process that writes to it."""
    kept = []
    with pytest.raises(rl.OutOfMemoryError):
        while True:
            kept.append(rl.empty(200 * MiB, dtype="bool"))
    assert (
        200 * MiB * len(kept)
        <= int(Path("/proc/meminfo").read_text(encoding="utf-8").split("MemTotal:")[1].split()[0]) * 1024
    )
    kept.clear()
    rl.memory.empty_cache()


@pytest.fixture
def small_container():
    """A control group of 300 MiB; yields what moves a process into it."""
    if sys.platform != "linux":
        pytest.skip("control groups are Linux's")
    groups = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines())
    if "memory" in groups:
        parent, file = Path("/sys/fs/cgroup/memory" + groups["memory"]), "memory.limit_in_bytes"
    else:
        parent, file = Path("/sys/fs/cgroup" + groups.get("", "")), "memory.max"
    group = parent / f"rooflab-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        (group / file).write_text(str(300 * MiB), encoding="utf-8")
        (group / "cgroup.procs").write_text("", encoding="utf-8")
    except OSError as error:
        group.rmdir()
        pytest.skip(f"the control group cannot be limited: {error}")
    yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")
    group.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu"])
@pytest.mark.parametrize("megabytes", [1, 10, 100, 1000])
def test_a_container_s_limit_is_kept(fresh, small_container, megabytes):
    out = fresh(
        f"""
        kept = []
        try:
            while True:
                kept.append(rl.ones({megabytes} * MiB // 4))
        except rl.OutOfMemoryError:
            print(len(kept))
        """,
        preexec_fn=small_container,
    )
    assert int(out) * megabytes < 300
    assert int(out) * megabytes >= (120 if megabytes <= 100 else 0)


@pytest.mark.parametrize("device", ["cpu"])
def test_available_counts_what_is_kept_for_reuse(fresh, small_container):
    fresh(
        """
        before = rl.memory.available()
        assert before < 300 * MiB
        x = rl.ones(100 * MiB // 4)
        assert abs(before - 100 * MiB - rl.memory.available()) < 20 * MiB
        del x
        assert abs(before - rl.memory.available()) < 20 * MiB and rl.memory.reserved() >= 100 * MiB
        """,
        preexec_fn=small_container,
    )


@pytest.mark.slow
def test_threads_that_drop_tensors_without_python_s_lock_keep_the_records_right(no_garbage):
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # ctypes releases the GIL for the call
    used = b"used_dltensor"

    def export(size):
        """The deleter that a consumer of DLPack holds, and that any thread may call."""
        capsule = rl.empty(size).__dlpack__()
        managed = pointer_of(capsule, b"dltensor")
        rename(capsule, used)
        end = deleter(ctypes.c_void_p.from_address(managed + 56).value)
        return lambda: end(managed)

    def drop_all(ends):
        for end in ends:
            end()

    before = rl.memory.allocated()
    with rl.memory.record() as timeline, rl.count() as counted:
        for _ in range(20):
            shares = [[export(100 + i) for i in range(200)] for _ in range(4)]
            threads = [threading.Thread(target=drop_all, args=(share,)) for share in shares]
            for thread in threads:
                thread.start()
            for i in range(500):
                rl.empty(1000 + i)
            for thread in threads:
                thread.join()
    assert rl.memory.allocated() == before
    assert rl.benchmark_memory(lambda: None, device="cpu").resident_bytes == before
    assert timeline.retained_bytes == 0 and len(timeline.events) == 2 * counted.allocations == 2 * 20 * (800 + 500)
