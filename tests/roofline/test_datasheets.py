"""Datasheets: every figure has a source, and a machine is found by the name its driver gives it."""

import math

import pytest

import rooflab as rl
from rooflab.roofline import SPECS, MachineSpec, dtype_name, find_spec


@pytest.mark.parametrize("name", list(SPECS))
def test_every_figure_has_a_source(name):
    spec = SPECS[name]
    wanted = {"bandwidth", *spec.peak_tflop_s}
    wanted |= {"memory"} if spec.memory_gb is not None else set()
    wanted |= {"cache"} if spec.last_level_cache_mib is not None else set()
    wanted |= {"sm_count"} if spec.sm_count is not None else set()
    wanted |= {"latency"} if spec.latency_cycles else set()
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


# Dense TFLOP/s, TB/s. Datasheets print twice as much for tensor cores, "with sparsity".
DENSE = {
    "A6000": {"float32": 38.7, "bfloat16": 154.8, "tfloat32": 77.4, "TB/s": 0.768},
    "A10": {"float32": 31.2, "bfloat16": 125.0, "tfloat32": 62.5, "TB/s": 0.6},
    "A100 SXM 80GB": {"float32": 19.5, "bfloat16": 312.0, "tfloat32": 156.0, "float64": 19.5, "TB/s": 2.039},
    "A100 SXM 40GB": {"float32": 19.5, "bfloat16": 312.0, "tfloat32": 156.0, "float64": 19.5, "TB/s": 1.555},
    "A100 PCIe 80GB": {"float32": 19.5, "bfloat16": 312.0, "TB/s": 1.935},
    "H100 SXM": {"float32": 66.9, "bfloat16": 989.4, "tfloat32": 494.7, "float64": 66.9, "TB/s": 3.35},
    "H100 PCIe": {"float32": 51.2, "bfloat16": 756.0, "tfloat32": 378.0, "float64": 51.2},
    "H200": {"float32": 67.0, "bfloat16": 989.5, "tfloat32": 494.5, "float64": 67.0, "TB/s": 4.8},
    "T4": {"float32": 8.1, "float16": 65.0, "TB/s": 0.32},
    "L4": {"float32": 30.3, "bfloat16": 121.0, "TB/s": 0.3},
    "RTX 4090": {"float32": 82.6, "bfloat16": 165.2, "TB/s": 1.008},
}


@pytest.mark.parametrize("name", DENSE)
def test_peaks_are_the_published_dense_ones(name):
    spec = SPECS[name]
    found = {what: spec.bandwidth_tb_s if what == "TB/s" else spec.peak_tflop_s[what] for what in DENSE[name]}
    assert found == pytest.approx(DENSE[name], rel=0.01)


SMS = {
    "T4": 40, "A100": 108, "A100 40GB": 108, "A100 PCIe": 108, "A6000": 84, "RTX 3090": 82, "RTX 4090": 128,
    "RTX 5090": 170, "H100": 132, "H100 PCIe": 114, "H200": 132, "L4": 58, "L40S": 142, "A10": 72, "B200": 148,
}  # fmt: skip


def test_multiprocessors_are_those_of_the_product_and_not_of_the_full_chip():
    assert {name: SPECS[name].sm_count for name in SMS} == SMS
    assert all((spec.sm_count is None) == (spec.kind == "cpu") for spec in SPECS.values())


def test_latencies_of_an_a100_are_the_published_ones():
    published = {"global": 290, "l2": 200, "l1": 33, "shared load": 23, "shared store": 19}
    known = {name for name in SPECS if SPECS[name].latency_cycles}
    assert known == {name for name in SPECS if name.startswith("A100")}
    assert all(SPECS[name].latency_cycles == published for name in known)
    assert all("2208.11174" in SPECS[name].sources["latency"] for name in known)


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


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["bandwidth_tb_s", "memory_gb", "last_level_cache_mib", "peak_tflop_s"])
def test_figures_of_a_datasheet_are_finite_and_above_0(name, wrong):
    figures = {"bandwidth_tb_s": 1.0, "peak_tflop_s": {"float32": 1.0}, "memory_gb": 1.0, "last_level_cache_mib": 1.0}
    figures[name] = {"float32": wrong} if name == "peak_tflop_s" else wrong
    with pytest.raises(ValueError, match=rf"\[MachineSpec\] {name}.*: expected a finite number above 0, got"):
        MachineSpec("mine", "gpu", sources={}, **figures)
    if name in ("memory_gb", "last_level_cache_mib"):
        with pytest.raises(ValueError, match=r"; None where it is not known$"):
            MachineSpec("mine", "gpu", sources={}, **figures)


def test_peaks_are_by_dtype():
    def spec(peaks):
        return MachineSpec("mine", "gpu", 1.0, peaks, None, None, {})

    assert spec({"fp32": 2, "BF16": 3}).peak_tflop_s == {"float32": 2.0, "bfloat16": 3.0}
    with pytest.raises(ValueError, match=r"^\[MachineSpec\] peak_tflop_s: expected one of float32, .*, got 'foo'"):
        spec({"foo": 1.0})
    with pytest.raises(ValueError, match="peak_tflop_s: expected each dtype once, got fp32, float32"):
        spec({"fp32": 1.0, rl.float32: 2.0})


def test_dtype_names():
    numpy = pytest.importorskip("numpy")
    assert dtype_name("FP32") == dtype_name("torch.float32") == dtype_name(numpy.float32) == "float32"
    assert dtype_name(numpy.dtype("float64")) == "float64"
    with pytest.raises(ValueError, match="float32, float16"):
        dtype_name("int32")
