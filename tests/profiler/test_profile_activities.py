"""What a profile is asked to record, and what it says of all else."""

import pytest

import rooflab as rl
from rooflab.profiler import ProfilerActivity, schedule


def test_activities_are_as_in_pytorch():
    x = rl.ones(10)
    with rl.profile(activities=[ProfilerActivity.CPU]) as on_cpu:
        rl.exp(x)
    assert len(on_cpu.kernels) == len(on_cpu.host) == 1 and on_cpu.source == "cpu clock"
    with rl.profile(activities=["CUDA"]) as on_gpu_only:
        rl.exp(x)
    assert on_gpu_only.kernels == on_gpu_only.host == []
    with pytest.raises(ValueError, match=r"activities needs ProfilerActivity\.CPU"):
        on_gpu_only.key_averages().table(sort_by="cpu_time_total")
    big = rl.empty(1000, device=rl.meta("H200"))
    with rl.profile(activities=[ProfilerActivity.CUDA]) as modelled:
        rl.exp(big)
    assert modelled.is_model and len(modelled.kernels) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activities": []}, "at least one"),
        ({"activities": "cpu"}, "expected a list"),
        ({"activities": 3}, "expected a list"),
        ({"activities": ["xpu"]}, "got 'xpu'"),
        ({"activities": [None]}, "got None"),
        ({"activities": ["cpu"], "source": "cupti"}, "activities has only the CPU"),
    ],
)
def test_wrong_activities_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        rl.profile(**options)


def test_what_was_not_recorded_cannot_be_asked_for():
    with rl.profile() as prof:
        rl.ones(3) + 1
    with pytest.raises(ValueError, match="record_shapes=True"):
        prof.key_averages(group_by_input_shape=True)
    with pytest.raises(ValueError, match="with_stack=True"):
        prof.key_averages(group_by_stack_n=2)
    with pytest.raises(ValueError, match="row_limit"):
        prof.key_averages().table(sort_by="cpu_time", row_limit=-1)
    with pytest.raises(ValueError, match="expected one of"):
        prof.key_averages().host.table(sort_by="duration")
    with rl.profile(with_stack=True) as stacked:
        rl.ones(3) + 1
    with pytest.raises(ValueError, match="at least 0"):
        stacked.key_averages(group_by_stack_n=-1)
    with pytest.raises(ValueError, match=r"group_by_stack_n: expected a whole number of at least 0, got 1.5"):
        stacked.key_averages(group_by_stack_n=1.5)


def test_nothing_ran_is_said_in_words():
    with rl.profile() as prof, rl.count() as counted, rl.memory.record() as timeline:
        sum(range(10))
    said = "nothing of rooflab ran in this block; NumPy and PyTorch on the CPU are not counted"
    assert said in repr(prof) and prof.verdict == said
    assert said in repr(counted) and said in counted._repr_html_()
    for sort_by in ("duration", "cpu_time_total"):
        assert said[1:] in prof.key_averages().table(sort_by=sort_by)
    assert "no tensor of rooflab took memory in this block" in repr(timeline)
    use = rl.benchmark_memory(sum, [1, 2])
    assert "no tensor of rooflab took memory in this call" in str(use) and str(use) in use._repr_html_()
    with rl.profile() as prof, rl.count() as counted, rl.memory.record() as timeline:
        rl.ones(3)
    assert not any("NumPy" in repr(one) for one in (prof, counted, timeline))


@pytest.mark.parametrize(
    ("options", "steps", "said"),
    [
        ({"activities": ["cuda"]}, 0, "no kernel of a GPU was recorded; activities leaves out what runs on the CPU"),
        ({"schedule": schedule(wait=1)}, 0, "no step was profiled, and what runs outside of the profiled steps"),
        ({"schedule": schedule(wait=1)}, 1, "no step was profiled, and what runs outside of the profiled steps"),
        ({"schedule": schedule(wait=1)}, 2, "nothing of rooflab ran in the profiled steps; NumPy"),
        ({"source": "model"}, 0, "no launch on a meta device was recorded (nothing runs on a device without memory; 2"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*no step was profiled")
def test_what_was_left_out_is_not_said_to_be_missing(options, steps, said):
    with rl.profile(**options) as prof:
        rl.ones(3) + 1
        for _ in range(steps):
            prof.step()
    assert said in repr(prof) and said[1:] in prof.key_averages().table()
    assert prof.is_model or said in prof.verdict
    assert "nothing of rooflab ran in this block" not in repr(prof) + prof.verdict + str(prof.key_averages())


def test_launches_on_a_device_that_activities_leaves_out():
    with rl.profile(activities=["cpu"]) as prof:
        rl.empty(3, device="meta") + 1
    assert prof.host and prof.verdict == "no kernel was recorded; activities leaves out other devices"
    assert "No kernel was recorded; activities leaves out other devices." in str(prof.key_averages())
