"""`rooflab bench lm`: the steps of a transformer language model, timed, counted, profiled, case by case."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import rooflab as rl
from rooflab.benchmark import lm, lm_results, sweep
from rooflab.benchmark.lm_memory import Memory
from rooflab.cli.arguments import whole_number
from rooflab.cli.progress import Progress


def one_of(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """The type of an argument that names some of `known`, with commas between them, or all of them.

    Examples
    --------
    >>> one_of(("small", "medium", "large"))("small,large"), one_of(("a", "b"))("all")
    (['small', 'large'], ['a', 'b'])
    """

    def parse(text: str) -> list[str]:
        names = list(known) if text == "all" else text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(known)}, or all; got {unknown[0]!r}")
        return list(dict.fromkeys(names))

    return parse


def whole_numbers(text: str) -> list[int]:
    """The type of an argument that is whole numbers from 1 on, with commas between them.

    Examples
    --------
    >>> whole_numbers("128,256")
    [128, 256]
    """
    return list(dict.fromkeys(whole_number(1)(part) for part in text.split(",")))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab bench lm`."""
    sizes = tuple(rl.nn.TRANSFORMER_SIZES)
    add = parser.add_argument
    add("--model-size", type=one_of(sizes), default=["small"], metavar="SIZES",
        help=f"{', '.join(sizes)}; several with commas, or all (default small)")  # fmt: skip
    add("--context-length", type=whole_numbers, default=[128], metavar="L", help="tokens a text; several with commas "
        "(default 128)")  # fmt: skip
    add("--batch-size", type=whole_number(1), default=4, metavar="B", help="texts (default 4)")
    add("--vocab-size", type=whole_number(1), default=10000, metavar="V", help="default 10000")
    add("--mode", type=one_of(lm.MODES), default=["forward"], metavar="MODES",
        help="inference: a forward without a graph; forward: with its graph; backward: that alone; both: forward, "
        "loss and backward; train: both and AdamW; several with commas, or all (default forward)")  # fmt: skip
    add("--attention", choices=lm.ATTENTION, default="composed", help="default composed")
    add("--warmup-steps", type=whole_number(0), default=5, metavar="N", help="steps that do not count (default 5)")
    add("--measure-steps", type=whole_number(1), default=10, metavar="N", help="steps that do (default 10)")
    add("--profile", action="store_true", help="where the time of one more step goes, pass by pass")
    add("--memory", action="store_true", help="where the memory of a step goes, phase by phase, beside a formula")
    add("--device", help="cpu, cuda, cuda:N, or meta:H200 and the like, whose times are a model's and not measured; "
        "default: cuda where there is a GPU")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="keep the rows as JSON; those that FILE holds are not measured again")
    add("--csv", type=Path, metavar="FILE", help="write the rows as CSV")
    add("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")


def details(result: lm.Result, memory: Memory | None) -> Iterator[str]:
    """What stands under a row: the passes of its profile, and its memory when it was counted now."""
    for one in result.profile:
        yield textwrap.indent(str(one), "  ") + "\n"
    if result.profile and not result.case.is_model:
        cost = result.profiled_ms / result.median_ms - 1
        yield f"  the profiled step took {result.profiled_ms:.4g} ms, {cost:+.1%} beside the median of the others\n"
    if memory:
        yield textwrap.indent(str(memory), "  ") + "\n"


def main(arguments: argparse.Namespace) -> int:
    """Measure every case, print each as soon as it is known; exit code 2 for what cannot be run, 130 when stopped."""
    try:
        return _main(arguments)
    except (ValueError, rl.CudaError, OSError) as error:
        print(f"rooflab bench lm: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; the rows that are done are kept in the file of --json.", file=sys.stderr)
        return 130


def _main(arguments: argparse.Namespace) -> int:
    device = arguments.device or ("cuda" if rl.cuda.is_available() else "cpu")
    origin = lm_results.Origin.of(device)
    cases = sweep.cases(
        arguments.model_size, arguments.context_length, arguments.mode,
        batch_size=arguments.batch_size, vocab_size=arguments.vocab_size, attention=arguments.attention, device=device,
        warmup_steps=arguments.warmup_steps, measure_steps=arguments.measure_steps,
    )  # fmt: skip
    print(origin)
    results: list[lm.Result] = []
    memories: dict[lm.Case, Memory] = {}
    with Progress() as progress:

        def measure(case: lm.Case) -> list[lm.Result]:
            progress.subject = f"Case {len(results) + 1} of {len(cases)}, {case.label}"
            result, memory = sweep.measure(case, profile=arguments.profile, memory=arguments.memory, progress=progress)
            if memory:
                memories[case] = memory
            return [result]

        def is_finished(result: lm.Result) -> bool:
            has_profile, has_memory = bool(result.profile), bool(result.memory)
            return result.status != "ok" or (has_profile >= arguments.profile and has_memory >= arguments.memory)

        def show(found: list[lm.Result]) -> None:
            progress.clear()
            results.extend(found)
            for result in found:
                print(result, flush=True)
                print(*details(result, memories.pop(result.case, None)), sep="", end="", flush=True)

        sweep.run(cases, file=arguments.json, origin=origin, measure=measure, is_finished=is_finished, found=show)
    if len(results) > 1:
        print("", lm_results.to_text(results), sep="\n")
    if arguments.csv:
        lm_results.write(arguments.csv, lm_results.to_csv(results))
    if arguments.markdown:
        lm_results.write(arguments.markdown, lm_results.to_markdown(results, origin))
    return 0
