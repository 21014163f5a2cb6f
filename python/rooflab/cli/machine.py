"""`rooflab machine`: the measured ceilings of this machine beside its datasheet."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

from rooflab.cli.arguments import add_json, told, written
from rooflab.cli.progress import Progress
from rooflab.files import check_figure, check_file, replacing, save_figure
from rooflab.machine import BusyMachineWarning, Ceilings, measure
from rooflab.roofline import Machine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab machine`."""
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    parser.add_argument("--refresh", action="store_true", help="measure again, even if the cache holds figures")
    add_json(parser, "write the figures as JSON")
    parser.add_argument("--plot", type=written, metavar="FILE", help="draw the roofline into an image file")


def main(arguments: argparse.Namespace) -> int:
    """Measure or read, print, and write what was asked for; exit code 2 when the device or a file cannot be used."""
    try:
        check_file(arguments.json)
        check_figure(arguments.plot)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BusyMachineWarning)  # the table says it
            with Progress(f"Measuring {arguments.device}") as progress:
                ceilings = measure(arguments.device, refresh=arguments.refresh, progress=progress)
        if arguments.json:
            spec = ceilings.datasheet()
            report = {"measured": ceilings.to_dict(), "datasheet": asdict(spec) if spec else None}
            with replacing(arguments.json) as unfinished:
                unfinished.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        if arguments.plot:
            _plot(ceilings, arguments.plot)
        print(ceilings)  # last: its reader may leave
    except BrokenPipeError:
        raise  # the reader of the output has left: the end of any command
    except (ValueError, RuntimeError, ImportError, OSError) as error:
        print(f"rooflab machine: {told(error, arguments)}", file=sys.stderr)
        return 2
    return 0


def _plot(ceilings: Ceilings, path: Path) -> None:
    from rooflab.plots import plot_roofline

    spec = ceilings.datasheet()
    dtypes = [dtype for dtype in ("float32", "bfloat16") if dtype in ceilings.peak] or list(ceilings.peak)[:1]
    machines: list[Machine] = [ceilings, spec] if spec else [ceilings]
    save_figure(plot_roofline(machines, dtype=dtypes, title=f"Roofline of {ceilings.name}"), path)
