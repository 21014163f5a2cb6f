"""Profiles on a GPU: what CUPTI sees of rooflab and of other libraries, and what remains without it."""

import math
import time
from itertools import pairwise

import pytest

import rooflab as rl
from rooflab.profiler import schedule

pytestmark = pytest.mark.gpu


@pytest.fixture
def cupti():
    with rl.profile() as probe:
        rl.ones(8, device="cuda")
    if probe.source != "cupti":
        pytest.skip(probe.reason)


def test_cupti_sees_launch_shape_and_symbol(cupti):
    a = rl.ones(256, 256, device="cuda")
    rl.matmul(a, a, variant="v0_naive")
    with rl.profile() as prof, rl.range("here"):
        rl.matmul(a, a, variant="v0_naive")
    (kernel,) = prof.kernels
    assert (kernel.op, kernel.range, kernel.kernel) == ("matmul", "here", "matmul_cuda_v0_naive")
    assert kernel.name.startswith("matmul_cuda_v0_naive")
    assert min(kernel.grid) >= 1 and math.prod(kernel.block) > 1 and kernel.registers > 0
    assert kernel.device == "cuda:0"


def test_cublas_kernels_are_gemm(cupti):
    a = rl.ones(512, 512, dtype="bfloat16", device="cuda")
    rl.matmul(a, a, variant="library")
    with rl.profile() as prof:
        for _ in range(3):
            rl.matmul(a, a, variant="library")
            prof.step()
    counts = prof.count_kernels()
    assert counts["gemm"] >= 1 and counts["gemm"] + counts["memory"] == counts["total"]
    assert sum(kernel.cost.macs for kernel in prof.kernels) == 3 * 512**3
    assert all(kernel.op == "matmul" and kernel.kernel == "matmul_cuda_library" for kernel in prof.kernels)


def test_events_and_cupti_tell_the_same(cupti):
    x = rl.ones(4096, 4096, device="cuda")
    rl.gelu(x)
    found = {}
    for source in ("cupti", "cuda events"):
        with rl.profile(schedule(warmup=1, active=5), source=source) as prof:
            for _ in range(6):
                rl.gelu(x)
                prof.step()
        assert prof.source == source and prof.count_kernels()["total"] == 1
        found[source] = min(kernel.duration_us for kernel in prof.kernels)
    # The GPU may be shared, so neither bound is tight; a wrong unit or a wrong pair of events is far outside.
    assert found["cupti"] * 0.5 <= found["cuda events"] <= found["cupti"] * 3 + 30


def test_latency_of_an_empty_kernel_is_its_duration_and_a_launch_gap(cupti):
    timing = rl.latency(lambda: rl.cuda.launch_empty(), device="cuda", repeat=200)
    with rl.profile() as prof:
        for _ in range(50):
            rl.cuda.launch_empty()
    kernels = [kernel for kernel in prof.kernels if "empty_kernel" in kernel.name]
    assert len(kernels) == 50
    duration = min(kernel.duration_us for kernel in kernels)
    gap = min(later.start_us - one.start_us for one, later in pairwise(kernels)) - duration
    latency = timing.min_ms * 1e3
    print(
        f"empty kernel: latency {latency:.2f} us, CUPTI duration {duration:.2f} us + gap {gap:.2f} us, "
        f"overhead {timing.overhead_ms * 1e3:.2f} us"
    )
    assert duration <= latency <= duration + gap + timing.overhead_ms * 1e3 + 10


def test_launches_that_no_source_times_are_reported_as_dropped():
    x = rl.ones(8, device="cuda")
    with pytest.warns(RuntimeWarning, match="1 kernel records are missing"), rl.profile(source="cpu clock") as prof:
        rl.exp(x)
    assert prof.dropped == 1 and prof.kernels == []


def test_copies_between_devices_are_memory():
    x = rl.ones(1024, device="cuda")
    with rl.profile() as prof:
        x.cpu()
    (kernel,) = prof.kernels
    assert (kernel.op, kernel.category, kernel.cost.bytes) == ("memcpy", "memory", 2 * 4096)


def test_what_was_submitted_before_is_not_in_the_profile(cupti):
    a = rl.ones(4096, 4096, device="cuda")
    for _ in range(20):
        x = rl.matmul(a, a)[:1] + rl.tensor([1.0] * 4096, device="cuda")
        with rl.profile() as prof:
            rl.exp(x)
        assert [kernel.op for kernel in prof.kernels] == ["exp"]


@pytest.mark.peer
def test_kernels_of_pytorch_are_seen(cupti):
    torch = pytest.importorskip("torch")
    x = torch.ones(256, 256, device="cuda", dtype=torch.bfloat16)

    def step():
        torch.softmax(x @ x, dim=-1)

    step()
    with rl.profile() as prof:
        for _ in range(2):
            step()
            prof.step()
    counts = prof.count_kernels()
    assert (counts["softmax"], counts["total"]) == (1, counts["gemm"] + 1) and counts["gemm"] >= 1
    assert {(kernel.op, kernel.id) for kernel in prof.kernels} == {("", 0)}


@pytest.mark.peer
def test_a_running_pytorch_profiler_keeps_cupti(cupti):
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity

    x = rl.ones(8, device="cuda")
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]):
        with rl.profile() as prof:
            rl.exp(x)
        with pytest.raises(RuntimeError, match="held by PyTorch's profiler"), rl.profile(source="cupti"):
            pass
    assert prof.source == "cuda events" and "PyTorch" in prof.reason
    assert [kernel.op for kernel in prof.kernels] == ["exp"]
    with rl.profile() as after:
        rl.exp(x)
    assert after.source == "cupti" and [kernel.op for kernel in after.kernels] == ["exp"]


def test_each_kernel_has_its_submission_on_the_host(cupti):
    a = rl.ones(512, 512, device="cuda")
    rl.gelu(rl.matmul(a, a))
    rl.cuda.synchronize()
    with rl.profile(record_shapes=True, with_stack=True) as prof, rl.range("step"):
        rl.gelu(rl.matmul(a, a))
        rl.cuda.synchronize()
    launches = [record for record in prof.host if record.kind == "launch"]
    assert {record.launch for record in launches} == {kernel.id for kernel in prof.kernels}
    first = {kernel.id: kernel for kernel in reversed(prof.kernels)}
    slack = 20  # the GPU's clock is mapped onto the host's
    assert all(first[record.launch].start_us > record.start_us - slack for record in launches)
    rows = {(row.kind, row.name): row for row in prof.key_averages().host}
    on_device = sum(kernel.duration_us for kernel in prof.kernels)
    assert rows["range", "step"].device_us == pytest.approx(on_device)
    ops = rows["op", "matmul"].device_us + rows["op", "gelu"].device_us
    assert ops == pytest.approx(on_device)
    assert rows["wait", "synchronize"].calls == 1 and rows["wait", "end of step"].calls == 1
    matmul = next(record for record in prof.host if record.name == "matmul")
    assert matmul.input_shapes == "[[512, 512], [512, 512]]"
    assert matmul.stack[0].name == "test_each_kernel_has_its_submission_on_the_host"
    table = prof.key_averages().table(sort_by="cuda_time_total")
    assert "self CUDA" in table and table.splitlines()[2].split()[:2] == ["step", "range"]


def test_who_waits_for_whom_is_told_right():
    large, small = rl.ones(4096, 4096, device="cuda"), rl.ones(8, device="cuda")
    rl.matmul(large, large), rl.exp(small)
    rl.cuda.synchronize()
    with rl.profile() as busy:
        for _ in range(20):
            rl.matmul(large, large)
    with rl.profile() as idle:
        for _ in range(20):
            rl.exp(small)
            rl.cuda.synchronize()  # so that launches do not pile up while another process has the GPU
            time.sleep(0.001)
    assert busy.waiting[0].is_host_bound is False and busy.verdict.startswith("device-bound: cuda:0 waited")
    assert busy.waiting[0].waited_share < 0.5 < busy.waiting[0].host_waited_us / busy.waiting[0].total_us
    assert idle.waiting[0].is_host_bound and idle.verdict.startswith("host-bound: cuda:0 waited")
    assert idle.waiting[0].waited_share > 0.9 and idle.waiting[0].gap_us > 900
    assert "Host-bound" in idle.key_averages().table()


def test_a_copy_to_the_host_is_a_wait():
    x = rl.ones(1000, device="cuda")
    with rl.profile() as prof:
        x.to("cpu")
    assert ("wait", "copy and wait") in {(record.kind, record.name) for record in prof.host}


def test_the_cpu_alone_is_recorded_if_only_that_is_asked_for():
    x = rl.ones(1000, device="cuda")
    with rl.profile(activities=["cpu"]) as prof:
        rl.exp(x)
    assert prof.kernels == [] and prof.dropped == 0
    assert [record.name for record in prof.host if record.kind == "op"] == ["exp"]
    with rl.profile(activities=["cuda"]) as kernels:
        rl.exp(x)
        rl.exp(x.to("cpu"))
    assert {kernel.device for kernel in kernels.kernels} == {"cuda:0"} and kernels.host == []
    assert kernels.waiting[0].is_host_bound is None
