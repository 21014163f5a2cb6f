"""Names that a student of Lab 1 expects: thin wrappers over rooflab's public API.

Times are milliseconds, peaks dense TFLOP/s (1e12 FLOP/s; a multiply-accumulate is 2 FLOPs), bandwidths TB/s (1e12
byte/s), intensities FLOP/byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rooflab import Timing, latency, latency_one_time
from rooflab.labs.lab1_layer import (
    GEMMA3_270M_CONFIG,
    GEMMA3_PSEUDO_CONFIG,
    create_decode_inputs_with_cache,
    create_decode_inputs_without_cache,
    create_prefill_inputs,
    decode_forward,
    get_position_embeddings,
    initialize_kv_cache,
    multi_layer_decode_forward,
    multi_layer_prefill_forward,
    prefill_forward,
)
from rooflab.machine import SPECS, MachineSpec, dtype_name, ridge
from rooflab.memory import benchmark_memory as _benchmark_memory
from rooflab.profiler import Profile, schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "GEMMA3_270M_CONFIG",
    "GEMMA3_PSEUDO_CONFIG",
    "GPU_SPECS",
    "benchmark_latency",
    "benchmark_memory",
    "count_cuda_kernels",
    "create_decode_inputs_with_cache",
    "create_decode_inputs_without_cache",
    "create_prefill_inputs",
    "decode_forward",
    "default_schedule",
    "get_position_embeddings",
    "get_ridge_point",
    "initialize_kv_cache",
    "latency",
    "latency_one_time",
    "multi_layer_decode_forward",
    "multi_layer_prefill_forward",
    "plot_flash_attn_improvement",
    "plot_gemm_gemv_latency",
    "plot_gemm_torch_matmul_latency",
    "plot_roofline",
    "prefill_forward",
]

_GPUS = ("A6000", "A10", "A100", "H100", "H200", "B200", "T4", "L4", "4090", "5090")
_SHORT = {"float64": "fp64", "float32": "fp32", "tfloat32": "tf32", "float16": "fp16", "bfloat16": "bf16"}


def _figures(spec: MachineSpec) -> dict[str, float]:
    peaks = {f"{_SHORT[dtype]}_tflops": peak for dtype, peak in spec.peak_tflop_s.items()}
    memory = {} if spec.memory_gb is None else {"memory_gb": spec.memory_gb}
    return {**peaks, "memory_bandwidth_tb_s": spec.bandwidth_tb_s, **memory}


GPU_SPECS: dict[str, dict[str, float]] = {name: _figures(SPECS[name]) for name in _GPUS}
"""Datasheet figures by GPU: ``"fp32_tflops"``, ``"fp16_tflops"`` ... (dense TFLOP/s), ``"memory_bandwidth_tb_s"``
(TB/s), ``"memory_gb"`` (GB). Their sources stand in `rooflab.machine.SPECS`."""

default_schedule = schedule(wait=1, warmup=3, active=6)
"""Ten steps of `rooflab.profile`: 1 skipped, 3 to warm up, 6 recorded."""


def get_ridge_point(gpu_name: str, dtype: str = "fp16") -> float:
    """Arithmetic intensity, FLOP/byte, from which `gpu_name` is compute-bound: dense peak over bandwidth.

    Parameters
    ----------
    gpu_name : str
        A name in `GPU_SPECS`, or any other in `rooflab.machine.SPECS`.
    dtype : str
        ``"fp32"``, ``"fp16"``, ``"bf16"`` ...: the dtype whose bytes the intensity counts.

    Raises
    ------
    ValueError
        If the machine is unknown or has no figure for that dtype.

    Examples
    --------
    >>> from rooflab.labs.lab1 import get_ridge_point
    >>> round(get_ridge_point("A6000", "fp32"), 1)
    50.4
    """
    return ridge(gpu_name, dtype)


def benchmark_latency(fn: Callable, *args: Any, n_warmup: int = 10, n_repeat: int = 100, **kwargs: Any) -> float:
    """Mean latency of ``fn(*args, **kwargs)`` in milliseconds.

    Prefer `latency`, which keeps every sample: a mean says nothing about spread, and one interrupted run moves it.

    Parameters
    ----------
    fn : callable
        What to time.
    n_warmup, n_repeat : int
        Calls before measuring (>= 0) and calls measured (>= 1).

    Returns
    -------
    float
        Milliseconds.

    Raises
    ------
    ValueError
        If `n_warmup` or `n_repeat` is out of range.

    Examples
    --------
    >>> from rooflab.labs.lab1 import benchmark_latency
    >>> benchmark_latency(sum, [1, 2, 3], n_warmup=1, n_repeat=5) > 0
    True
    """
    return latency(fn, *args, warmup=n_warmup, repeat=n_repeat, **kwargs).mean_ms


def benchmark_memory(fn: Callable, *args: Any, **kwargs: Any) -> tuple[float, float]:
    """Memory of one call ``fn(*args, **kwargs)`` in tensors: (peak GB above what was resident, resident GB).

    GB are 1e9 bytes; counted to the byte, so one call is enough. See `rooflab.benchmark_memory`.

    Raises
    ------
    OutOfMemoryError
        As `fn` raised it.

    Examples
    --------
    >>> from rooflab.labs.lab1 import benchmark_memory
    >>> import rooflab as rl
    >>> x = rl.ones(1_000_000)
    >>> peak_gb, resident_gb = benchmark_memory(rl.exp, x)
    >>> peak_gb
    0.004
    """
    use = _benchmark_memory(fn, *args, **kwargs)
    return use.peak_gb, use.resident_gb


def count_cuda_kernels(prof: Profile) -> dict[str, int]:
    """Kernel launches of *one* profiled step by category; kernels on the CPU count as well.

    Parameters
    ----------
    prof : Profile
        A finished `rooflab.profile`, each step of which made the same launches.

    Returns
    -------
    dict of str to int
        ``gemm``, ``elementwise``, ``softmax``, ``layernorm``, ``memory``, ``other`` and ``total``.
        ``prof.count_kernels(per_step=False)`` adds up all steps.

    Raises
    ------
    ValueError
        If no step was profiled, or the steps differ.

    Examples
    --------
    >>> from rooflab.labs.lab1 import count_cuda_kernels
    >>> import rooflab as rl
    >>> with rl.profile() as prof:
    ...     for _ in range(3):
    ...         _ = rl.matmul(rl.ones((4, 4)), rl.ones((4, 4)))
    ...         prof.step()
    >>> count_cuda_kernels(prof)["gemm"]
    1
    """
    counts = prof.count_kernels()
    counts["memory"] += counts.pop("embedding")
    counts["other"] += counts.pop("attention") + counts.pop("optimizer")
    return counts


def plot_roofline(
    gpu_name: str,
    peak_flops: float,
    peak_bandwidth: float,
    operations: Mapping[str, float] | None = None,
    title: str | None = None,
    dtype: str = "fp32",
) -> Figure:
    """The roofline of one machine by its figures, with operations on it by their intensity.

    Nothing here is measured: each operation is an open marker on the roof, at the most it can reach. For measured
    points and roofs see `rooflab.plots.plot_roofline`.

    Parameters
    ----------
    gpu_name : str
        What to call the machine.
    peak_flops : float
        Dense peak in TFLOP/s, of `dtype`.
    peak_bandwidth : float
        Memory bandwidth in TB/s.
    operations : mapping of str to float, optional
        Arithmetic intensity in FLOP/byte by name.
    title : str, optional
        Above the plot.
    dtype : str
        The dtype that the peak belongs to.

    Raises
    ------
    ValueError
        If a figure is not finite and positive, or `operations` is empty.

    Examples
    --------
    >>> from rooflab.labs.lab1 import plot_roofline
    >>> figure = plot_roofline("A6000", 38.7, 0.768, {"GEMM 1024": 170.7, "GEMV 1024": 0.499})
    """
    from rooflab import plots

    for name, value in (("peak_flops", peak_flops), ("peak_bandwidth", peak_bandwidth)):
        if not 0 < value < float("inf"):
            raise ValueError(f"[plot_roofline] {name}: expected a finite number > 0, got {value!r}")
    key = dtype_name(dtype)
    spec = MachineSpec(gpu_name, "gpu", peak_bandwidth, {key: peak_flops}, None, None, {})
    return plots.plot_roofline(spec, operations, dtype=key, title=title or f"{gpu_name} in {dtype}")


def plot_gemm_torch_matmul_latency(
    sizes: Sequence[int],
    gemm_latency_ms: Sequence[Timing | float | None],
    library_latency_ms: Sequence[Timing | float | None],
    title: str | None = "Three loops against the library",
) -> Figure:
    """Latency of a hand-written product and of the library's over matrix size; both axes logarithmic.

    Parameters
    ----------
    sizes : sequence of int
        N, for (N, N) x (N, N).
    gemm_latency_ms, library_latency_ms : sequence of Timing, float or None
        One entry per size: milliseconds, a Timing (its spread is drawn too), or None where the size was left out; the
        figure then says so.
    title : str, optional
        Above the plot.

    Raises
    ------
    ValueError
        If the lengths differ or nothing was measured.

    Examples
    --------
    >>> from rooflab.labs.lab1 import plot_gemm_torch_matmul_latency
    >>> figure = plot_gemm_torch_matmul_latency([64, 128, 256], [15.0, 120.0, None], [0.01, 0.04, 0.2])
    """
    return _over_size(sizes, {"gemm, three loops": gemm_latency_ms, "rl.matmul": library_latency_ms}, title)


def plot_gemm_gemv_latency(
    sizes: Sequence[int],
    gemm_latency_ms: Sequence[Timing | float | None],
    gemv_latency_ms: Sequence[Timing | float | None],
    title: str | None = "Matrix times matrix, matrix times vector",
) -> Figure:
    """Latency of (N, N) x (N, N) and of (N, N) x (N, 1) over N; both axes logarithmic.

    Parameters
    ----------
    sizes : sequence of int
        N.
    gemm_latency_ms, gemv_latency_ms : sequence of Timing, float or None
        As in `plot_gemm_torch_matmul_latency`.
    title : str, optional
        Above the plot.

    Raises
    ------
    ValueError
        If the lengths differ or nothing was measured.

    Examples
    --------
    >>> from rooflab.labs.lab1 import plot_gemm_gemv_latency
    >>> figure = plot_gemm_gemv_latency([64, 128], [15.0, 120.0], [0.25, 1.0])
    """
    return _over_size(sizes, {"GEMM (N, N) x (N, N)": gemm_latency_ms, "GEMV (N, N) x (N, 1)": gemv_latency_ms}, title)


def plot_flash_attn_improvement(
    table: Mapping[str, Mapping[int, Any]], quantity: str = "latency", title: str | None = None
) -> Figure:
    """Pairs of bars for each length, the ratio written above: `rooflab.plots.plot_flash_attention_improvement`.

    Parameters
    ----------
    table : mapping of str to mapping of int to float or None
        ``{"standard": {L: value}, "flash": {L: value}}``: milliseconds, or bytes; None for out of memory.
    quantity : str
        ``"latency"`` or ``"memory"``.

    Examples
    --------
    >>> from rooflab.labs.lab1 import plot_flash_attn_improvement
    >>> figure = plot_flash_attn_improvement({"standard": {512: 4.0, 1024: None}, "flash": {512: 2.0, 1024: 8.0}})
    """
    from rooflab import plots

    return plots.plot_flash_attention_improvement(table, quantity, title)


def _over_size(
    sizes: Sequence[int], series: Mapping[str, Sequence[Timing | float | None]], title: str | None
) -> Figure:
    from rooflab import plots

    for name, values in series.items():
        if len(values) != len(sizes):
            raise ValueError(f"[plot] {name}: expected one latency per size ({len(sizes)}), got {len(values)}")
    lines = {name: dict(zip(sizes, values, strict=True)) for name, values in series.items()}
    return plots.plot_latency_vs_size(lines, xlabel="N", title=title)
