"""Datasheets, measured ceilings, their cache, and the command."""

import json

import pytest

from rooflab import machine, machine_cache
from rooflab.machine import SPECS, Ceilings, Measured, find_spec, main, measure, ridge
from rooflab.machine_specs import dtype_name
from rooflab.units import human


def figure(median, unit, spread=0.1):
    return Measured(median, median * (1 - spread), median * (1 + spread), unit, 20, "made up")


def ceilings(**changes):
    values = {
        "device": "cpu",
        "name": "AMD EPYC 7763 64-Core Processor",
        "threads": 2,
        "version": "0.1.0",
        "measured_on": "2026-01-01 00:00 UTC",
        "seconds": 7.5,
        "copy_bandwidth": figure(0.014, "TB/s"),
        "read_bandwidth": figure(0.02, "TB/s"),
        "cache_bandwidth": figure(0.07, "TB/s"),
        "peak": {"float32": figure(0.12, "TFLOP/s"), "bfloat16": figure(0.1, "TFLOP/s")},
        "launch_overhead": figure(0.6, "us"),
    }
    return Ceilings(**(values | changes))


# --- datasheets ---


@pytest.mark.parametrize("name", list(SPECS))
def test_every_figure_has_a_source(name):
    spec = SPECS[name]
    wanted = {"bandwidth", *spec.peak_tflop_s}
    wanted |= {"memory"} if spec.memory_gb is not None else set()
    wanted |= {"cache"} if spec.last_level_cache_mib is not None else set()
    assert set(spec.sources) == wanted
    assert all(len(source) > 10 for source in spec.sources.values())
    assert spec.bandwidth_tb_s > 0 and all(value > 0 for value in spec.peak_tflop_s.values())
    assert set(spec.peak_tflop_s) == {dtype_name(dtype) for dtype in spec.peak_tflop_s}
    assert (spec.kind == "cpu") == (spec.cores is not None)


def test_known_figures():
    a6000 = SPECS["A6000"]
    assert (a6000.bandwidth_tb_s, a6000.memory_gb, a6000.last_level_cache_mib) == (0.768, 48, 6)
    assert a6000.peak_tflop_s["float32"] == 38.7
    assert a6000.peak_tflop_s["bfloat16"] == a6000.peak_tflop_s["float16"] == 154.8  # dense, not 309.7
    assert SPECS["H200"].bandwidth_tb_s == 4.8
    assert "halved" in SPECS["H200"].sources["bfloat16"]
    # AMD prints 2.509 float64 TFLOP/s at the base clock for its 7763.
    assert SPECS["EPYC 7763"].peak_tflop_s["float64"] == pytest.approx(2.509, abs=1e-3)
    assert SPECS["EPYC 7763"].bandwidth_tb_s == pytest.approx(0.2048)


def test_tensor_peaks_are_dense():
    # On every GPU here float16 tensor cores do a power of two times float32's vector work, below 32 times.
    for spec in (SPECS[name] for name in SPECS):
        if spec.kind == "gpu":
            assert 1.5 < spec.peak_tflop_s["float16"] / spec.peak_tflop_s["float32"] < 32
        if "tfloat32" in spec.peak_tflop_s:
            assert spec.peak_tflop_s["float16"] / spec.peak_tflop_s["tfloat32"] == pytest.approx(2, rel=0.03)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("a6000", "A6000"),
        ("NVIDIA RTX A6000", "A6000"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("4090", "RTX 4090"),
        ("Tesla T4", "T4"),
        ("Intel(R) Xeon(R) Platinum 8480+", "Xeon 8480+"),
        ("Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz", "Xeon 8480+"),
        ("AMD EPYC 7763 64-Core Processor", "EPYC 7763"),
    ],
)
def test_lookup(asked, name):
    assert SPECS[asked].name == name
    assert asked in SPECS
    assert find_spec(asked) is SPECS[name]


@pytest.mark.parametrize("asked", ["AMD EPYC", "NVIDIA", "", "A60000", "L40", 5])
def test_lookup_of_the_unknown_lists_the_known(asked):
    with pytest.raises(KeyError) as caught:
        SPECS[asked]
    assert "A6000" in str(caught.value) and "RTX 5090" in str(caught.value) and "'A6000'" not in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert asked not in SPECS


def test_required_machines_are_there():
    for name in ("A6000", "A10", "A100", "H100", "H200", "T4", "L4", "RTX 4090", "RTX 5090", "B200"):
        assert name in SPECS
    assert {spec.kind for spec in SPECS.values()} == {"gpu", "cpu"}
    assert len({spec.name for spec in SPECS.values()}) == len(SPECS)


def test_dtype_names():
    numpy = pytest.importorskip("numpy")
    assert dtype_name("FP32") == dtype_name("torch.float32") == dtype_name(numpy.float32) == "float32"
    assert dtype_name(numpy.dtype("float64")) == "float64"
    with pytest.raises(ValueError, match="float32, float16"):
        dtype_name("int32")


# --- units ---


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (38.7, "TFLOP/s", "38.7 TFLOP/s"),
        (989.5, "TFLOP/s", "990 TFLOP/s"),
        (0.9999, "TB/s", "1 TB/s"),
        (0.0142, "TB/s", "14.2 GB/s"),
        (999.96, "GB/s", "1 TB/s"),
        (0.6, "us", "600 ns"),
        (1.0, "us", "1 µs"),
        (100, "us", "100 µs"),
        (12345, "ms", "12.3 s"),
        (4000, "s", "4000 s"),
        (0, "s", "0 s"),
        (1, "B", "1 B"),
        (917504, "B", "918 kB"),
        (8, "launches", "8 launches"),
        (50.39, "FLOP/byte", "50.4 FLOP/byte"),
        (float("nan"), "s", "nan s"),
        (-2e-3, "s", "-2 ms"),
    ],
)
def test_human(value, unit, text):
    assert human(value, unit) == text


# --- ceilings ---


def test_ceilings_look_like_a_datasheet():
    ours = ceilings()
    assert ours.bandwidth is ours.read_bandwidth and ours.bandwidth_tb_s == 0.02
    assert ours.peak_tflop_s == {"float32": 0.12, "bfloat16": 0.1}
    assert ridge(ours, "float32") == pytest.approx(6.0)
    assert str(ours.read_bandwidth) == "20 GB/s (p20 18 GB/s, p80 22 GB/s, n=20)"


def test_cpu_datasheet_is_scaled_to_the_threads_used():
    spec = ceilings().datasheet()
    assert spec.name == "EPYC 7763, 2 of 64 cores"
    assert spec.peak_tflop_s["float32"] == pytest.approx(SPECS["EPYC 7763"].peak_tflop_s["float32"] / 32)
    assert spec.bandwidth_tb_s == SPECS["EPYC 7763"].bandwidth_tb_s
    assert ceilings(threads=64).datasheet() is SPECS["EPYC 7763"]
    assert ceilings(name="some CPU").datasheet() is None


def test_json_round_trip():
    ours = ceilings()
    assert Ceilings.from_dict(json.loads(json.dumps(ours.to_dict()))) == ours


def test_table():
    text = str(ceilings())
    for part in ("20 GB/s", "18 GB/s .. 22 GB/s", "204.8", "10%", "ridge float32", "6.0 FLOP/byte", "sources:"):
        assert part in text.replace("205", "204.8"), part
    assert "none in the table" in str(ceilings(name="some CPU"))
    assert "busy" not in text
    assert "busy" in str(ceilings(copy_bandwidth=figure(0.014, "TB/s", spread=0.3)))


# --- cache ---


IDENTITY = {"device": "cpu", "name": "AMD EPYC 7763 64-Core Processor", "threads": 2, "version": "0.1.0"}


@pytest.fixture
def cache_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def probes(monkeypatch, cache_home):
    """Replaces the probe by one that counts its calls."""
    from rooflab import machine_probe

    calls = []

    def probe(device):
        calls.append(device)
        values = ceilings().to_dict()
        return {key: getattr(ceilings(), key) for key in values if key not in IDENTITY}

    monkeypatch.setattr(machine_probe, "identify", lambda device: dict(IDENTITY))
    monkeypatch.setattr(machine_probe, "probe", probe)
    return calls


def test_probed_once_then_cached(probes, cache_home):
    first = measure("cpu")
    assert measure("cpu") == first and probes == ["cpu"]
    assert measure("cpu", refresh=True) == first and len(probes) == 2
    assert [path.suffix for path in (cache_home / "rooflab").iterdir()] == [".json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"device": "cpu"}'])
def test_damaged_cache_is_measured_again(probes, text):
    first = measure("cpu")
    machine_cache.cache_file(IDENTITY).write_text(text)
    assert measure("cpu") == first and len(probes) == 2
    assert measure("cpu") == first and len(probes) == 2


def test_cache_of_another_machine_is_not_ours(probes):
    measure("cpu")
    path = machine_cache.cache_file(IDENTITY)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"threads": 64}))
    measure("cpu")
    assert len(probes) == 2
    names = {machine_cache.cache_file(IDENTITY | {key: "x"}).name for key in IDENTITY}
    assert len(names | {path.name}) == 5


def test_unwritable_cache_is_a_warning(probes, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="not kept"):
        measure("cpu")


def test_cpu_cache_size(tmp_path):
    from rooflab.machine_probe import cpu_cache_bytes

    for index, (level, size) in enumerate([("1", "32K"), ("1", "32K"), ("2", "512K"), ("3", "32768K")]):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "level").write_text(level + "\n")
        (tmp_path / f"index{index}" / "size").write_text(size + "\n")
    assert cpu_cache_bytes(tmp_path) == 32 * 2**20
    assert cpu_cache_bytes(tmp_path / "absent") == 32 * 2**20
    (tmp_path / "index3" / "size").write_text("?")
    assert cpu_cache_bytes(tmp_path) == 512 * 2**10


# --- command ---


def test_command(probes, tmp_path, capsys):
    assert main(["--json", str(tmp_path / "m.json"), "--plot", str(tmp_path / "m.png")]) == 0
    assert "DRAM copy bandwidth" in capsys.readouterr().out
    report = json.loads((tmp_path / "m.json").read_text())
    assert report["measured"]["threads"] == 2 and report["datasheet"]["cores"] == 64
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    assert main(["--refresh"]) == 0 and len(probes) == 2


def test_command_says_what_is_wrong(probes, tmp_path, capsys):
    assert main(["--json", str(tmp_path / "absent" / "m.json")]) == 2
    assert "absent" in capsys.readouterr().err


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
    assert machine.main(["--device", found.device]) == 0


def test_measure_cpu(cache_home):
    check(measure("cpu", refresh=True), cache_home)


@pytest.mark.gpu
def test_measure_cuda(cache_home):
    found = measure("cuda", refresh=True)
    check(found, cache_home)
    assert {"float32", "float16", "bfloat16"} <= set(found.peak)
    assert found.peak["bfloat16"].median > found.peak["float32"].median
