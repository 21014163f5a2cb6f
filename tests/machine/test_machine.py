"""Ceilings of this machine: measured once, kept, and measured again when they are not its own."""

import json

import pytest
from machine.made_up import ceilings

from rooflab.cli import main
from rooflab.machine import Ceilings, cache, measure, measurement, ridge
from rooflab.machine.probe import cpu_cache_bytes

# --- cache ---


IDENTITY = {"device": "cpu", "name": "AMD EPYC 7763 64-Core Processor", "threads": 2, "version": "0.1.0"}


@pytest.fixture
def cache_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def probes(monkeypatch, cache_home):
    """Replaces the probe by one that counts its calls."""
    calls = []

    def probe(device):
        calls.append(device)
        values = ceilings().to_dict()
        return {key: getattr(ceilings(), key) for key in values if key not in IDENTITY}

    monkeypatch.setattr(measurement, "identify", lambda device: dict(IDENTITY))
    monkeypatch.setattr(measurement, "probe", probe)
    return calls


def test_probed_once_then_cached(probes, cache_home):
    first = measure("cpu")
    assert measure("cpu") == first and probes == ["cpu"]
    assert measure("cpu", refresh=True) == first and len(probes) == 2
    assert [path.suffix for path in (cache_home / "rooflab").iterdir()] == [".json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"device": "cpu"}'])
def test_damaged_cache_is_measured_again(probes, text):
    first = measure("cpu")
    cache.cache_file(IDENTITY).write_text(text)
    assert measure("cpu") == first and len(probes) == 2
    assert measure("cpu") == first and len(probes) == 2


def test_cache_of_another_machine_is_not_ours(probes):
    measure("cpu")
    path = cache.cache_file(IDENTITY)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"threads": 64}))
    measure("cpu")
    assert len(probes) == 2
    names = {cache.cache_file(IDENTITY | {key: "x"}).name for key in IDENTITY}
    assert len(names | {path.name}) == 5


def test_unwritable_cache_is_a_warning(probes, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="not kept"):
        measure("cpu")


def test_cpu_cache_size(tmp_path):
    for index, (level, size) in enumerate([("1", "32K"), ("1", "32K"), ("2", "512K"), ("3", "32768K")]):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "level").write_text(level + "\n")
        (tmp_path / f"index{index}" / "size").write_text(size + "\n")
    assert cpu_cache_bytes(tmp_path) == 32 * 2**20
    assert cpu_cache_bytes(tmp_path / "absent") == 32 * 2**20
    (tmp_path / "index3" / "size").write_text("?")
    assert cpu_cache_bytes(tmp_path) == 512 * 2**10


# --- the real thing ---


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:99", "", None])
def test_no_such_device(device, cache_home):
    with pytest.raises(ValueError, match="machine"):
        measure(device)


def check(found: Ceilings, cache_home):
    figures = [found.copy_bandwidth, found.read_bandwidth, found.cache_bandwidth, found.launch_overhead]
    for one in [*figures, *found.peak.values()]:
        assert 0 < one.p20 <= one.median <= one.p80 and one.n >= 5
    assert "float32" in found.peak
    assert ridge(found, "float32") > 0
    assert measure(found.device) == found  # from the cache
    assert main(["machine", "--device", found.device]) == 0


def test_measure_cpu(cache_home):
    check(measure("cpu", refresh=True), cache_home)


@pytest.mark.gpu
def test_measure_cuda(cache_home):
    found = measure("cuda", refresh=True)
    check(found, cache_home)
    assert {"float32", "float16", "bfloat16"} <= set(found.peak)
    assert found.peak["bfloat16"].median > found.peak["float32"].median
