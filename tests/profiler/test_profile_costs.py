"""The costs of a profile's kernels add up to what counters show, and what one records is not lost to another."""

import contextlib
import threading
import time

import pytest
from ops.samples import SPECS, prepared, rungs, samples_of, tensors_of

import rooflab as rl
from rooflab.profiler import schedule

FIELDS = ("macs", "flops", "bytes_read", "bytes_written")
x = rl.ones(40, 40)
index = rl.zeros(40, 40, dtype="int64")


def sums(call):
    """What the counter shows, and the sum over kernels, of one call."""
    with rl.count() as c, rl.profile(source="cpu clock") as prof:
        call()
    return [getattr(c, name) for name in FIELDS], [sum(getattr(k.cost, name) for k in prof.kernels) for name in FIELDS]


@pytest.mark.parametrize("name", SPECS)
def test_kernels_carry_the_cost_of_their_calls_once(name):
    spec = SPECS[name]
    for sample in sorted(samples_of(name), key=lambda sample: sum(getattr(a, "size", 0) for a in sample.args))[-2:]:
        operands = prepared(spec, tensors_of(sample, "float32", "cpu", "strided"), sample)
        for rung in ("", *rungs(spec, "cpu")):
            options = {"variant": rung} if rung else {}
            try:
                counted, carried = sums(lambda: spec.fn(*operands, **sample.kwargs, **options))  # noqa: B023
            except ValueError:
                continue  # the rung does not take these
            assert carried == counted, (sample.label, rung)


@pytest.mark.parametrize(
    "call",
    [
        lambda: x.scatter_add(1, index, x),
        lambda: rl.cat([x, x[:, ::2].to("bfloat16"), x.T], 1),
        lambda: rl.ones(40, 40, requires_grad=True).amax(1).sum().backward(),
    ],
)
def test_calls_of_several_kernels_and_their_replays(call):
    counted, carried = sums(call)
    assert carried == counted and any(counted)
    with rl.Graph(device="cpu").capture() as graph:
        call()
    counted, carried = sums(lambda: [graph.replay() for _ in range(3)])
    assert carried == counted and any(counted)


@pytest.mark.parametrize("call", [lambda: rl.nonzero(x), lambda: x[x > 0], lambda: x.masked_select(x > 0)])
def test_ops_that_do_several_pieces_of_work_keep_the_cost_of_each(call):
    counted, carried = sums(call)
    assert carried == counted and any(counted)


def test_the_longest_kernel_has_the_work():
    with rl.profile(source="cpu clock") as prof:
        x.scatter_add(1, index, x)
    ranked = sorted(prof.kernels, key=lambda kernel: -kernel.duration_us)
    assert len(ranked) > 1 and ranked[0].cost.bytes > 0
    assert all(kernel.cost.bytes == 0 for kernel in ranked[1:] if kernel.op == ranked[0].op)


def test_a_replay_belongs_to_the_ranges_around_it():
    graph = rl.Graph(device="cpu")
    with rl.range("model"), graph.capture(), rl.range("mlp"):
        y = x + 1
    paths = {"": "model/mlp", "rep": "rep/model/mlp", "model": "model/mlp", "mod": "mod/model/mlp"}
    for around, path in paths.items():
        inside = rl.range(around) if around else contextlib.nullcontext()
        with rl.count() as c, rl.profile() as prof, inside:
            graph.replay()
        assert [kernel.range for kernel in prof.kernels] == [path] and y[0, 0].item() == 2
        first = path.split("/")[0]
        assert (c.by_range[path].flops, c.by_range[first].flops, c.by_range[first].launches) == (1600, 1600, 1)
    with rl.Graph(device="cpu").capture() as bare:
        x * 2
    with rl.range("rep"), rl.count() as c:
        bare.replay()
    assert c.by_range["rep"].ops == 1


@contextlib.contextmanager
def while_a_thread_multiplies():
    """Another thread is in a long kernel when the block begins, and is done after it."""
    held, big = rl.memory.allocated("cpu"), rl.zeros(400, 400)
    other = threading.Thread(target=lambda: rl.matmul(big, big, variant="v0_reference"))
    other.start()
    while rl.memory.allocated("cpu") < held + 2 * big.nbytes:
        time.sleep(0.001)
    time.sleep(0.005)  # from the allocation of its result to the kernel
    yield
    other.join()


def test_an_op_that_another_thread_is_in_when_a_step_ends_is_kept():
    with rl.profile() as prof, while_a_thread_multiplies():
        prof.step()
    (op,) = [record for record in prof.host if record.name == "matmul"]
    (kernel,) = [kernel for kernel in prof.kernels if kernel.op == "matmul"]
    assert op.thread == kernel.thread == 1 and op.step == kernel.step == 0
    step = prof.steps[0]
    assert op.start_us + op.duration_us == pytest.approx(step.start_us + step.duration_us)


def test_a_kernel_that_runs_at_the_end_is_missing_and_the_profile_says_so():
    prof = rl.profile()
    with (
        pytest.warns(RuntimeWarning, match="1 kernel was still running in other threads"),
        contextlib.ExitStack() as stack,
        prof,
    ):
        stack.enter_context(while_a_thread_multiplies())
    assert prof.dropped == 1 and "matmul" not in [kernel.op for kernel in prof.kernels]


def test_a_step_in_which_nothing_ran_is_none_also_when_it_is_the_only_one():
    with (
        pytest.warns(RuntimeWarning, match="begins with step 2, the block had 1"),
        rl.profile(schedule(wait=1, active=1)) as prof,
    ):
        rl.exp(x)
        prof.step()
    assert prof.steps == []
    with rl.profile(schedule(wait=1, active=1)) as prof:
        prof.step()
        rl.exp(x)
    assert [step.number for step in prof.steps] == [1] and len(prof.kernels) == 1
