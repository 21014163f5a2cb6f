"""`rooflab cost --model NAME`: what a pass through a model costs, and the least time on a machine."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from rooflab.cli.arguments import Read, add_json, not_known, told, written
from rooflab.cost import MODELS, Convention, ModelCost, ModelSpec, from_config, model
from rooflab.cost.model_cost import ATTENTION, MODES
from rooflab.cost.model_spec import DTYPES
from rooflab.files import check_file, replacing, save_figure
from rooflab.results import Report
from rooflab.roofline import SPECS, MachineSpec, find_spec

_CONVENTIONS = {one.name: one for one in (Convention.RUNTIME, Convention.ANALYSIS)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab cost`."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", metavar="NAME", help=", ".join(MODELS))
    which.add_argument("--config", type=Read, metavar="FILE", help="a config.json of Hugging Face")
    parser.add_argument("--gpu", metavar="NAME", help="a machine, such as H100, to show times for")
    parser.add_argument(
        "--bandwidth", type=float, metavar="GB_S", help="its memory bandwidth, instead of the datasheet's"
    )
    parser.add_argument("--peak", type=float, metavar="TFLOP_S", help="its peak in --dtype, instead of the datasheet's")
    parser.add_argument("--batch", type=int, default=1, metavar="B", help="sequences per batch (default 1)")
    parser.add_argument("--length", type=int, required=True, metavar="L", help="tokens per sequence")
    parser.add_argument("--mode", choices=MODES, default="prefill", help="default: prefill")
    parser.add_argument("--dtype", choices=DTYPES, default="float16", help="default: float16")
    parser.add_argument("--attention", choices=ATTENTION, default="fused", help="default: fused")
    parser.add_argument("--convention", choices=_CONVENTIONS, default="runtime", help="how to count (default: runtime)")
    add_json(parser, "write everything as JSON")
    parser.add_argument("--csv", type=written, metavar="FILE", help="write one line per part as CSV")
    parser.add_argument("--html", type=written, metavar="FILE", help="write the table as a page")
    parser.add_argument("--plot", type=written, metavar="FILE", help="draw times and roofline into an image file")


def main(arguments: argparse.Namespace) -> int:
    """Print the table and write what was asked for; exit code 2 and a sentence when something does not fit."""
    try:
        check_file(arguments.json, arguments.csv, arguments.html, arguments.plot)
        if arguments.model and arguments.model not in MODELS:
            raise ValueError(f"--model: {not_known(arguments.model, MODELS)}")
        cost = model(
            _described(arguments.config) if arguments.config else arguments.model,
            batch=arguments.batch,
            length=arguments.length,
            mode=arguments.mode,
            dtype=arguments.dtype,
            attention=arguments.attention,
            hardware=_machine(arguments),
            convention=_CONVENTIONS[arguments.convention],
        )
        if arguments.plot and cost.machine is None:
            raise ValueError("--plot needs a machine: give --gpu, or --bandwidth and --peak")
        for path, text in (
            (arguments.json, lambda: json.dumps(cost.to_dict(), indent=2) + "\n"),
            (arguments.csv, cost.to_csv),
            (arguments.html, lambda: _page(cost)),
        ):
            if path:
                with replacing(path) as unfinished:
                    unfinished.write_text(text(), encoding="utf-8")
        if arguments.plot:
            save_figure(cost.plot(), arguments.plot)
        print(cost)  # last: its reader may leave
    except BrokenPipeError:
        raise  # the reader of the output has left: the end of any command
    except (ValueError, OSError) as error:
        print(f"rooflab cost: {told(error, arguments, {'hardware': 'gpu', 'spec': 'model'})}", file=sys.stderr)
        return 2
    return 0


def _described(config: Path) -> ModelSpec:
    """The model of a file, with a sentence on standard error for what it leaves out."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = from_config(config)
    for one in said:
        print(f"rooflab cost: {str(one.message).removeprefix('[cost] ')}.", file=sys.stderr)
    return found


def _machine(arguments: argparse.Namespace) -> MachineSpec | None:
    """The machine of the table, with the given figures in place of its own; None if no machine was asked for."""
    for name in ("bandwidth", "peak"):
        value = getattr(arguments, name)
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"--{name}: expected a positive number, got {value:g}")
    bandwidth, peak = arguments.bandwidth, arguments.peak
    if arguments.gpu:
        spec = find_spec(arguments.gpu)
        if spec is None:
            raise ValueError(f"--gpu: {not_known(arguments.gpu, SPECS)}")
    elif bandwidth is None and peak is None:
        return None
    elif bandwidth is None or peak is None:
        raise ValueError("without --gpu, a machine needs both --bandwidth and --peak")
    else:
        spec = MachineSpec("the machine", "gpu", bandwidth, {}, None, None, {})
    figures: dict[str, Any] = {}
    sources = dict(spec.sources)  # the datasheet's; a figure that was given has none
    if bandwidth is not None:
        figures["bandwidth_tb_s"] = bandwidth / 1e3
        sources.pop("bandwidth", None)
    if peak is not None:
        figures["peak_tflop_s"] = {**spec.peak_tflop_s, arguments.dtype: peak}
        sources.pop(arguments.dtype, None)
    return replace(spec, name=f"{spec.name} as given", sources=sources, **figures) if figures else spec


def _page(cost: ModelCost) -> str:
    report = Report(cost.title)
    report.result(cost)
    return report.html()
