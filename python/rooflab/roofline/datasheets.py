"""Datasheet figures of GPUs and CPUs: what the vendor specifies, with its source.

Every peak is dense. Where a vendor prints a figure with 2:4 sparsity only, it is halved here and its source
says so. 16-bit tensor peaks are those that accumulate in float32. A figure with no document behind it is
absent, not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping

from .machine_spec import MachineSpec, SpecTable


def _gpu(
    name: str,
    bandwidth_gb_s: float,
    peaks: dict[str, float],
    memory_gb: float,
    cache_mib: float | None,
    source: str,
    aliases: tuple[str, ...] = (),
    sms: int | None = None,
    latencies: Mapping[str, int] | None = None,
    **other_sources: str,
) -> MachineSpec:
    present = {"cache": cache_mib is not None, "sm_count": sms is not None, "latency": latencies is not None}
    figures = ["bandwidth", "memory", *peaks, *(figure for figure, known in present.items() if known)]
    tensor = other_sources.pop("tensor", source)
    other_sources = dict.fromkeys(("tfloat32", "float16", "bfloat16"), tensor) | other_sources
    sources = {figure: other_sources.get(figure, source) for figure in figures}
    return MachineSpec(
        name, "gpu", bandwidth_gb_s / 1e3, peaks, memory_gb, cache_mib, sources, aliases, None, sms, latencies or {}
    )


def _cpu(
    name: str,
    cores: int,
    base_ghz: float,
    flop_per_cycle: dict[str, int],
    memory: tuple[int, int],
    l3_mib: float,
    document: str,
    units: str,
    aliases: tuple[str, ...] = (),
) -> MachineSpec:
    channels, mt_s = memory
    peaks = {dtype: round(cores * base_ghz * flop / 1e3, 3) for dtype, flop in flop_per_cycle.items()}
    sources = {
        dtype: f"derived: {cores} cores x {base_ghz} GHz base clock ({document}) x {flop} FLOP a cycle "
        f"({units}); boost clocks exceed it"
        for dtype, flop in flop_per_cycle.items()
    }
    sources["bandwidth"] = f"derived: {channels} channels x 8 bytes x {mt_s} MT/s, one socket ({document})"
    sources["cache"] = document
    return MachineSpec(name, "cpu", channels * 8 * mt_s / 1e6, peaks, None, l3_mib, sources, aliases, cores)


def _peaks(fp32: float, tf32: float | None, half: float, fp64: float, bf16: bool = True) -> dict[str, float]:
    peaks = {"float32": fp32, "float16": half, "float64": fp64}
    if bf16:
        peaks["bfloat16"] = half
    if tf32 is not None:
        peaks["tfloat32"] = tf32
    return peaks


_GA102 = "NVIDIA Ampere GA102 GPU Architecture whitepaper V2.0"
_ADA = "NVIDIA Ada GPU Architecture whitepaper V2"
_A100 = "NVIDIA A100 Tensor Core GPU Architecture whitepaper, table 1 (GA100 against V100 and P100)"
_A100_SHEET = "NVIDIA A100 Tensor Core GPU datasheet, specifications table"
_RTX_BLACKWELL = "NVIDIA RTX Blackwell GPU Architecture whitepaper"
_TURING = "NVIDIA Turing GPU Architecture whitepaper"
_ZEN4 = "two 256-bit FMA units, Software Optimization Guide for the AMD Zen 4 Microarchitecture"
_H100 = "NVIDIA H100 Tensor Core GPU Architecture whitepaper, table 3 (dense columns)"
_FP64_64TH = "derived: 1/64 of float32, {}, SM section"
_HALVED = "{}, specifications table; printed with sparsity, halved"
_A100_LATENCIES = {"global": 290, "l2": 200, "l1": 33, "shared load": 23, "shared store": 19}
_DEMYSTIFYING = (
    "measured: Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture through Microbenchmarking and "
    "Instruction-level Analysis (arXiv 2208.11174), memory latency table"
)

SPECS = SpecTable(
    (
        _gpu(
            "A6000",
            768,
            _peaks(38.7, 77.4, 154.8, 0.605),
            48,
            6,
            f"{_GA102}, appendix C (RTX A6000)",
            ("RTX A6000", "NVIDIA RTX A6000"),
            float64=_FP64_64TH.format(_GA102),
            sms=84,
        ),
        _gpu(
            "A10",
            600,
            _peaks(31.2, 62.5, 125.0, 0.488),
            24,
            6,
            "NVIDIA A10 Tensor Core GPU datasheet, specifications",
            float64=_FP64_64TH.format(_GA102),
            cache=f"{_GA102}, GPC section: 512 KB by each memory controller",
            sms=72,
            sm_count=f"derived: 72 RT cores (A10 datasheet) at one an SM ({_GA102}, SM section)",
        ),
        _gpu(
            "A100 SXM 80GB",
            2039,
            _peaks(19.5, 156.0, 312.0, 19.5),
            80,
            40,
            _A100,
            # An A800 is an A100 whose NVLink is slower; nothing in this table differs.
            ("A100", "A100 80GB", "A100-SXM4-80GB", "A100 SXM", "A800", "A800-SXM4-80GB"),
            bandwidth=_A100_SHEET,
            memory=_A100_SHEET,
            sms=108,
            latencies=_A100_LATENCIES,
            latency=_DEMYSTIFYING,
        ),
        _gpu(
            "A100 SXM 40GB",
            1555,
            _peaks(19.5, 156.0, 312.0, 19.5),
            40,
            40,
            _A100,
            ("A100 40GB", "A100-SXM4-40GB"),
            sms=108,
            latencies=_A100_LATENCIES,
            latency=_DEMYSTIFYING,
        ),
        _gpu(
            "A100 PCIe 80GB",
            1935,
            _peaks(19.5, 156.0, 312.0, 19.5),
            80,
            40,
            _A100,
            ("A100 80GB PCIe", "A100 PCIe", "A800 80GB PCIe"),
            bandwidth=_A100_SHEET,
            memory=_A100_SHEET,
            sms=108,
            latencies=_A100_LATENCIES,
            latency=_DEMYSTIFYING,
        ),
        _gpu(
            "A100 PCIe 40GB",
            1555,
            _peaks(19.5, 156.0, 312.0, 19.5),
            40,
            40,
            _A100,
            ("A100-PCIE-40GB",),
            sms=108,
            latencies=_A100_LATENCIES,
            latency=_DEMYSTIFYING,
        ),
        _gpu(
            "H100 SXM",
            3350,
            _peaks(66.9, 494.7, 989.4, 66.9),
            80,
            50,
            _H100,
            ("H100", "H100 80GB HBM3", "H100 SXM5"),
            bandwidth="NVIDIA H100 Tensor Core GPU datasheet, specifications table",
            sms=132,
        ),
        _gpu("H100 PCIe", 2039, _peaks(51.2, 378.0, 756.0, 51.2), 80, 50, _H100, sms=114),
        _gpu(
            "H200",
            4800,
            _peaks(67.0, 494.5, 989.5, 67.0),
            141,
            60,
            "NVIDIA H200 Tensor Core GPU datasheet, table",
            ("H200 SXM",),
            tensor=_HALVED.format("NVIDIA H200 Tensor Core GPU datasheet"),
            cache="l2CacheSize that the CUDA runtime reports on an H200; no NVIDIA document gives it",
            sms=132,
            sm_count="multiProcessorCount that the CUDA runtime reports on an H200; no NVIDIA document gives it",
        ),
        _gpu(
            "B200",
            8000,
            _peaks(80.0, 1100.0, 2250.0, 40.0),
            180,
            None,
            "NVIDIA Blackwell Architecture Technical Brief, HGX B200 table (1000 W)",
            ("HGX B200",),
            tensor=_HALVED.format("NVIDIA Blackwell Architecture Technical Brief, HGX B200"),
            memory="NVIDIA DGX B200 datasheet: 1440 GB over 8 GPUs",
            sms=148,
            sm_count="measured: Chips and Cheese, Nvidia's B200: Keeping the CUDA Juggernaut Rolling (2025): 74 SMs on "
            "each of two dies; no NVIDIA document gives it",
        ),
        _gpu(
            "T4",
            320,
            _peaks(8.1, None, 65.0, 0.253, bf16=False),
            16,
            4,
            "NVIDIA T4 Tensor Core GPU datasheet, table",
            ("Tesla T4",),
            float64=f"derived: 1/32 of float32, {_TURING}, SM section",
            cache=f"{_TURING}, TU104 table",
            sms=40,
            sm_count=f"derived: 2560 CUDA cores (T4 datasheet) over 64 an SM ({_TURING}, SM section)",
        ),
        _gpu(
            "L4",
            300,
            _peaks(30.3, 60.0, 121.0, 0.473),
            24,
            48,
            "NVIDIA L4 Tensor Core GPU datasheet, table",
            tensor=_HALVED.format("NVIDIA L4 Tensor Core GPU datasheet"),
            float64=_FP64_64TH.format(_ADA),
            cache=f"{_ADA}, appendix (L4 column)",
            sms=58,
            sm_count=f"{_ADA}, appendix (L4 column)",
        ),
        _gpu(
            "L40S",
            864,
            _peaks(91.6, 183.0, 362.05, 1.431),
            48,
            96,
            "NVIDIA L40S GPU datasheet, table, dense column",
            float64=_FP64_64TH.format(_ADA),
            cache=f"{_ADA}, appendix (L40 column, the same AD102 chip)",
            sms=142,
            sm_count="derived: 18176 CUDA cores (L40S datasheet) over 128 an SM",
        ),
        _gpu(
            "RTX 3090",
            936,
            _peaks(35.6, 35.6, 71.0, 0.556),
            24,
            6,
            f"{_GA102}, appendix A (RTX 3090)",
            ("3090",),
            float64=_FP64_64TH.format(_GA102),
            sms=82,
        ),
        _gpu(
            "RTX 4090",
            1008,
            _peaks(82.6, 82.6, 165.2, 1.291),
            24,
            72,
            f"{_ADA}, appendix A (RTX 4090)",
            ("4090",),
            float64=_FP64_64TH.format(_ADA),
            sms=128,
        ),
        _gpu(
            "RTX 5090",
            1792,
            _peaks(104.8, 104.8, 209.5, 1.638),
            32,
            96,
            f"{_RTX_BLACKWELL}, appendix A (RTX 5090)",
            ("5090",),
            float64=_FP64_64TH.format(_RTX_BLACKWELL),
            sms=170,
        ),
        _cpu(
            "Xeon 8480+",
            56,
            2.0,
            {"float32": 64, "float64": 32, "bfloat16": 1024},
            (8, 4800),
            105,
            "Intel ARK, Xeon Platinum 8480+",
            "two 512-bit FMA units; bfloat16: one AMX TDPBF16PS of 8192 multiply-adds every 16 cycles, Intel 64 and "
            "IA-32 Architectures Optimization Reference Manual, AMX chapter",
            ("Xeon Platinum 8480+", "Xeon Platinum 8480C"),
        ),
        _cpu(
            "EPYC 7763",
            64,
            2.45,
            {"float32": 32, "float64": 16},
            (8, 3200),
            256,
            "AMD EPYC 7003 series datasheet",
            "two 256-bit FMA units, Software Optimization Guide for AMD Family 19h",
            ("EPYC 7763 64-Core Processor",),
        ),
        _cpu(
            "EPYC 9654",
            96,
            2.4,
            {"float32": 32, "float64": 16},
            (12, 4800),
            384,
            "AMD EPYC 9004 series datasheet",
            _ZEN4,
            ("EPYC 9654 96-Core Processor",),
        ),
        _cpu(
            "Ryzen 7950X",
            16,
            4.5,
            {"float32": 32, "float64": 16},
            (2, 5200),
            64,
            "AMD Ryzen 9 7950X product page",
            _ZEN4,
            ("Ryzen 9 7950X", "Ryzen 9 7950X 16-Core Processor"),
        ),
    )
)


def find_spec(device_name: str) -> MachineSpec | None:
    """The datasheet of the machine that a driver or ``/proc/cpuinfo`` calls `device_name`, or None.

    Parameters
    ----------
    device_name : str
        As `nvidia-smi` shows it, for example.

    Returns
    -------
    MachineSpec or None
        None for a machine that has no datasheet here.

    Examples
    --------
    >>> from rooflab.machine import find_spec
    >>> find_spec("NVIDIA GeForce RTX 4090").name
    'RTX 4090'
    """
    return SPECS.get(device_name)
