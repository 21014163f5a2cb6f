"""Ceilings of this machine: measured once, kept, and measured again if they are another machine's or it was busy."""

import datetime
import json
import re

import numpy as np
import pytest
from machine.made_up import TODAY, ceilings

import rooflab as rl
from rooflab import host
from rooflab.machine import BusyMachineWarning, Ceilings, cache, measure, measurement, probe, ridge, rounds

IDENTITY = {
    "device": "cpu",
    "name": "AMD EPYC 7763 64-Core Processor",
    "host": "desk",
    "driver": "Linux 6.1.0",
    "threads": 2,
    "version": "0.1.0",
}
BUSY = "The machine is busy: made up."


@pytest.fixture
def cache_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


class Probes:
    """Stands in for probing: counts how often it is called, and gives ceilings that differ in `changes`."""

    def __init__(self):
        self.calls, self.changes = 0, {}

    def __call__(self, device, progress):
        self.calls += 1
        found = ceilings(**self.changes)
        return {key: getattr(found, key) for key in found.to_dict() if key not in IDENTITY}


@pytest.fixture
def probes(monkeypatch, cache_home):
    made = Probes()
    monkeypatch.setattr(measurement, "identify", lambda device: dict(IDENTITY))
    monkeypatch.setattr(measurement, "measure_now", made)
    return made


# Cache


def test_probed_once_then_cached(probes, cache_home):
    first = measure("cpu")
    assert measure("cpu") == first and probes.calls == 1
    assert measure("cpu", refresh=True) == first and probes.calls == 2
    (path,) = (cache_home / "rooflab").iterdir()
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept.items() >= {**IDENTITY, "measured_on": TODAY}.items()


def test_what_a_busy_machine_showed_is_not_kept(probes, cache_home):
    probes.changes = {"busy": BUSY, "seconds": 30.0}
    with pytest.warns(BusyMachineWarning, match=re.escape(BUSY)):
        assert measure("cpu").busy == BUSY
    assert list(cache_home.iterdir()) == []
    probes.changes = {}
    assert measure("cpu").seconds == 7.5 and probes.calls == 2
    probes.changes = {"busy": BUSY, "seconds": 30.0}
    with pytest.warns(BusyMachineWarning):
        assert measure("cpu", refresh=True).seconds == 30.0
    assert measure("cpu").seconds == 7.5 and probes.calls == 3  # what was kept before is still valid


@pytest.mark.parametrize(("days", "calls"), [(0, 1), (29, 1), (31, 2), (-0.9, 1), (-2, 2)])
def test_figures_expire_and_none_are_of_the_future(probes, days, calls):
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)
    probes.changes = {"measured_on": then.strftime("%Y-%m-%d %H:%M UTC")}
    measure("cpu")
    probes.changes = {}
    measure("cpu")
    assert probes.calls == calls


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"device": "cpu"}'])
def test_damaged_cache_is_measured_again(probes, text):
    first = measure("cpu")
    cache.cache_file(IDENTITY).write_text(text, encoding="utf-8")
    assert measure("cpu") == first and probes.calls == 2
    assert measure("cpu") == first and probes.calls == 2


@pytest.mark.parametrize("key", IDENTITY)
def test_cache_of_another_machine_is_not_ours(probes, monkeypatch, key):
    measure("cpu")
    path, another = cache.cache_file(IDENTITY), 99 if key == "threads" else "another"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {key: another}), encoding="utf-8")
    measure("cpu")
    assert probes.calls == 2
    monkeypatch.setattr(measurement, "identify", lambda device: IDENTITY | {key: another})
    assert getattr(measure("cpu"), key) == another and probes.calls == 3
    monkeypatch.setattr(measurement, "identify", lambda device: dict(IDENTITY))
    measure("cpu")
    assert probes.calls == 3  # both are kept


def test_unwritable_cache_is_a_warning(probes, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="not kept"):
        measure("cpu")


# Probes


def test_cpu_cache_size(tmp_path):
    for index, (level, size) in enumerate([("1", "32K"), ("1", "32K"), ("2", "512K"), ("3", "32768K")]):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "level").write_text(level + "\n", encoding="utf-8")
        (tmp_path / f"index{index}" / "size").write_text(size + "\n", encoding="utf-8")
    assert host.cpu_cache_bytes(tmp_path) == 32 * 2**20
    assert host.cpu_cache_bytes(tmp_path / "absent") == 32 * 2**20
    (tmp_path / "index3" / "size").write_text("?", encoding="utf-8")
    assert host.cpu_cache_bytes(tmp_path) == 512 * 2**10


@pytest.mark.slow
def test_figures_are_work_over_time_in_their_units(monkeypatch):
    """Every call takes 200 ms, so each figure follows from what it says was run."""

    def latency(fn, warmup, repeat, device):
        fn()
        return rl.Timing(np.full(repeat, 200.0), 0.0, device)

    monkeypatch.setattr(probe, "latency", latency)
    monkeypatch.setattr(probe, "cpu_cache_bytes", lambda: 8 * 2**20)
    found = {one.name: one for one in probe._probes("cpu")}
    assert {"copy_bandwidth", "read_bandwidth", "cache_bandwidth", "peak float32"} <= found.keys()
    for one in found.values():
        size = re.search(r"of (\d+) MiB|N=(\d+)|(\d+) in a row", one.how)
        mib, n, calls = (int(number or 0) for number in size.groups())
        if mib:
            # A copy writes as much as it reads; what the other reductions write is next to nothing.
            expected = mib * 2**20 * (2 if one.name == "copy_bandwidth" else 1) / 0.2 / 1e12
        else:
            expected = 2 * n**3 / 0.2 / 1e12 if n else 0.2 / calls * 1e6
        assert one.sample() == pytest.approx([expected] * len(one.sample()), rel=0.01)


@pytest.fixture
def timings(monkeypatch):
    """Times of calls: the `ms` of the callable, or that of its keyword `variant`."""
    ms = {}

    def latency(fn, warmup, repeat, device):
        return rl.Timing(np.full(repeat, ms[fn.keywords["variant"]] if hasattr(fn, "keywords") else fn.ms), 0.0, device)

    monkeypatch.setattr(probe, "latency", latency)
    return ms


def test_the_fastest_call_is_first(timings):
    def taking(ms):
        def call():
            pass

        call.ms = ms
        return call

    def refused():
        raise ValueError("another dtype")

    found = probe._fastest("cpu", [("b", lambda: taking(2.0)), ("no", refused), ("a", lambda: taking(1.0))])
    assert [(ms, name) for ms, name, _ in found] == [(1.0, "a"), (2.0, "b")]


@pytest.mark.slow
def test_a_peak_is_the_fastest_rung_but_never_the_reference(timings):
    names = [rung.name for rung in rl.variants("matmul", "cpu")]
    timings.update(dict.fromkeys(names, 10.0) | {"v2_blocked": 2.0, "v0_reference": 1.0})
    found = probe._peak("cpu", "float32")
    size = int(found.how.partition("N=")[2])
    assert found.how == f"matmul v2_blocked, N={size}"
    assert found.sample()[0] == pytest.approx(2 * size**3 / 2e-3 / 1e12)


@pytest.mark.parametrize("cache", [4, 8, 40])
def test_buffers_are_several_times_the_cache(monkeypatch, cache):
    """They are at least 4 times as large, and 128 MiB if memory allows. The one for the cache fits into half of it."""
    monkeypatch.setattr(probe, "cpu_cache_bytes", lambda: cache * 2**20)
    monkeypatch.setattr(rl.memory, "available", lambda device: 2**40)
    monkeypatch.setattr(probe, "_warm_up", lambda device, call: None)
    monkeypatch.setattr(probe, "_fastest", lambda device, makes: [(1.0, *next(iter(makes)))])
    monkeypatch.setattr(probe, "_peak", lambda device, dtype: None)
    sizes = {one.name: float(m[1]) for one in probe._probes("cpu") if (m := re.search(r"of (\d+) MiB", one.how))}
    assert sizes["copy_bandwidth"] == sizes["read_bandwidth"] == max(128, 4 * cache)
    assert 0 < sizes["cache_bandwidth"] <= cache / 2


def test_the_mean_of_the_middle_leaves_out_what_is_far_off():
    samples = np.array([0.004, 0.005, 0.005, 0.006, 0.006, 0.006, 0.006, 0.005, 0.005, 900.0])
    assert probe._middle_ms(rl.Timing(samples, 0.0, "cuda:0")) == pytest.approx(0.0055)


# The real thing


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:99", "", None])
def test_no_such_device(device, cache_home):
    with pytest.raises(ValueError, match="machine"):
        measure(device)


def check(found: Ceilings, cache_home):
    figures = [found.copy_bandwidth, found.read_bandwidth, found.cache_bandwidth, found.launch_overhead]
    for one in [*figures, *found.peak.values()]:
        assert 0 < one.p20 <= one.median <= one.p80 and one.n >= 2
    assert "float32" in found.peak
    assert ridge(found, "float32") > 0
    assert any(cache_home.rglob("*.json")) != bool(found.busy)
    if not found.busy:
        assert measure(found.device) == found  # from the cache


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rooflab.machine.BusyMachineWarning")
def test_measure_cpu(cache_home, monkeypatch):
    # Two rounds, small buffers and one dtype show that it works.
    monkeypatch.setattr(rounds, "_SECONDS", 0.0)
    monkeypatch.setattr(probe, "cpu_cache_bytes", lambda: 8 << 20)
    monkeypatch.setattr(probe, "_DTYPES", ("float32",))
    check(measure("cpu"), cache_home)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::rooflab.machine.BusyMachineWarning")
def test_measure_cuda(cache_home):
    found = measure("cuda")
    check(found, cache_home)
    assert {"float32", "float16", "bfloat16"} <= set(found.peak)
    assert found.peak["bfloat16"].median > found.peak["float32"].median
