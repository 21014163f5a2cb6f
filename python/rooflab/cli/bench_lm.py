"""`rooflab bench lm`: the steps of a transformer language model, timed, counted, profiled, case by case."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Iterator

import rooflab as rl
from rooflab.benchmark import lm, lm_results, slurm, sweep
from rooflab.benchmark.lm_memory import Memory
from rooflab.cli.arguments import add_json, measured, peer_version, whole_number, written
from rooflab.cli.progress import Progress
from rooflab.files import check_file
from rooflab.units import rounded


def one_of(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """The type of an argument that names some of `known`, separated by commas, or all of them.

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


def whole_numbers(least: int) -> Callable[[str], list[int]]:
    """The type of an argument that is a list of whole numbers of `least` or more, separated by commas.

    Examples
    --------
    >>> whole_numbers(1)("128,256"), whole_numbers(0)("0,1,5")
    ([128, 256], [0, 1, 5])
    """
    return lambda text: list(dict.fromkeys(whole_number(least)(part) for part in text.split(",")))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab bench lm`."""
    sizes = tuple(rl.nn.TRANSFORMER_SIZES)
    add = parser.add_argument
    add("--model-size", type=one_of(sizes), default=["small"], metavar="SIZES",
        help=f"{', '.join(sizes)}; several with commas, or all (default small)")  # fmt: skip
    add("--context-length", type=whole_numbers(1), default=[128], metavar="L", help="tokens per sequence; several with "
        "commas (default 128)")  # fmt: skip
    add("--batch-size", type=whole_number(1), default=4, metavar="B", help="sequences per batch (default 4)")
    add("--vocab-size", type=whole_number(1), default=10000, metavar="V", help="size of the vocabulary (default 10000)")
    add("--mode", type=one_of(lm.MODES), default=["forward"], metavar="MODES",
        help="inference: a forward pass without an autograd graph; forward: one with it; backward: a backward pass "
        "alone; both: forward, loss and backward; train: both and AdamW; several with commas, or all "
        "(default forward)")  # fmt: skip
    add("--attention", choices=lm.ATTENTION, default="composed", help="how attention is computed (default composed)")
    add("--mixed-precision", nargs="?", const="bfloat16", default="", choices=("bfloat16", "float16"), metavar="DTYPE",
        help="run forward and loss under autocast to bfloat16 or, if it is named, to float16")  # fmt: skip
    add("--recompute", action="store_true", help="keep only the input of each block and run it again in backward")
    add("--compile", action="store_true", help="run forward and backward as programs of rooflab.compile")
    add("--graph", action="store_true", help="run the step as a captured graph, replayed by one host call")
    add("--warmup-steps", type=whole_numbers(0), default=[5], metavar="N", help="steps before those measured "
        "(default 5); several with commas: each case then has a process of its own, which starts cold")  # fmt: skip
    add("--measure-steps", type=whole_number(1), default=10, metavar="N", help="steps that are measured (default 10)")
    add("--profile", action="store_true", help="show where the time of one more step goes, pass by pass")
    add("--memory", action="store_true", help="show where the memory of a step goes, phase by phase, beside a formula")
    add("--peer", choices=("torch",), help="time PyTorch too, eager and compiled, step by step beside rooflab")
    add("--device", help="cpu, cuda, cuda:N, or a meta device such as meta:H200, whose times come from a model and are "
        "not measured; default: cuda where there is a GPU")  # fmt: skip
    add("--only", type=whole_number(0), metavar="N", help="run only the case with this number, counted from 0")
    add("--slurm", action="store_true", help="submit the cases as a Slurm job array, one task per case; needs --json")
    add("--slurm-option", action="append", default=[], metavar="OPTION", help="an option of sbatch, such as "
        "--slurm-option=--partition=gpu; may be repeated")  # fmt: skip
    add("--gather", action="store_true", help="collect the rows of --slurm's tasks so far, and measure nothing")
    add_json(parser, "keep the rows in FILE as JSON; rows in it are not measured again")
    add("--csv", type=written, metavar="FILE", help="write the rows as CSV")
    add("--markdown", type=written, metavar="FILE", help="write the table as Markdown")


def beside(peer: lm.Result, ours: lm.Result) -> str:
    """A peer's row, with how many times as fast rooflab is."""
    both_ran = ours.status == peer.status == "ok"
    ratio = f"; rooflab is {rounded(peer.median_ms / ours.median_ms)} x as fast" if both_ran else ""
    note = f" ({peer.reason})" if peer.reason and peer.status == "ok" else ""
    return f"  {peer.contender}: {peer}{ratio}{note}"


def details(result: lm.Result, memory: Memory | None) -> Iterator[str]:
    """What is printed under a row: the passes of its profile, and its memory if it was counted in this run."""
    for one in result.profile:
        yield textwrap.indent(str(one), "  ") + "\n"
    if result.profile and not result.case.is_model:
        cost = result.profiled_ms / result.median_ms - 1
        yield f"  the profiled step took {result.profiled_ms:.4g} ms, {cost:+.1%} from the median of the others\n"
    if memory:
        yield textwrap.indent(str(memory), "  ") + "\n"


def main(arguments: argparse.Namespace) -> int:
    """Measure every case, print each as soon as it is known; exit code 2 if a case cannot be run, 130 if stopped."""
    stopped = "Stopped; the rows that are done are kept in the file of --json."
    file = arguments.json
    return measured("bench lm", arguments, lambda: file and file.exists(), stopped, lambda: _main(arguments))


def _main(arguments: argparse.Namespace) -> int:
    check_file(arguments.json, arguments.csv, arguments.markdown, makes_folder=True)
    device = arguments.device or ("cuda" if rl.cuda.is_available() else "cpu")
    cases = sweep.cases(
        arguments.model_size, arguments.context_length, arguments.mode, arguments.warmup_steps,
        batch_size=arguments.batch_size, vocab_size=arguments.vocab_size, attention=arguments.attention,
        recompute=arguments.recompute, mixed_precision=arguments.mixed_precision,
        compile=arguments.compile, graph=arguments.graph, device=device,
        measure_steps=arguments.measure_steps,
    )  # fmt: skip
    if arguments.slurm or arguments.gather:
        if not arguments.json:
            raise ValueError("--slurm: expected --json FILE, beside which the tasks leave their rows")
        return _gather(arguments, len(cases)) if arguments.gather else _submit(arguments, len(cases))
    if arguments.only is not None:
        if arguments.only >= len(cases):
            raise ValueError(f"--only: expected 0 to {len(cases) - 1}, got {arguments.only}")
        cases = [cases[arguments.only]]
    if len(arguments.warmup_steps) > 1 and (arguments.peer or arguments.memory):
        raise ValueError("--warmup-steps: with several numbers leave --peer and --memory out")
    if len(arguments.warmup_steps) > 1 and cases[0].is_model:
        raise ValueError(
            "--warmup-steps: times on a meta device come from a model, which no step warms up; give one number"
        )
    if arguments.peer and arguments.profile:
        raise ValueError("--peer: --profile shows rooflab alone; leave --peer out")
    peer = peer_version(arguments.peer)
    origin = lm_results.Origin.of(device, peer)
    print(origin)
    _write(_measure(cases, arguments, origin), origin, arguments)
    return 0


def _measure(cases: list[lm.Case], arguments: argparse.Namespace, origin: lm_results.Origin) -> list[lm.Result]:
    """Every case, each printed as soon as it is known."""
    shown: list[lm.Case] = []
    memories: dict[lm.Case, Memory] = {}
    with Progress() as progress:

        def measure(case: lm.Case) -> list[lm.Result]:
            progress.subject = f"Case {len(shown) + 1} of {len(cases)}, {case.label}"
            if len(arguments.warmup_steps) > 1 and not case.is_model:
                return sweep.in_a_new_process(case, profile=arguments.profile)
            results, memory = sweep.measure(
                case, profile=arguments.profile, memory=arguments.memory, peer=arguments.peer, progress=progress
            )
            if memory:
                memories[case] = memory
            return results

        def is_finished(result: lm.Result) -> bool:
            return sweep.has(result, profile=arguments.profile, memory=arguments.memory)

        def show(found: list[lm.Result]) -> None:
            progress.clear()
            shown.append(found[0].case)
            for result in found:
                print(result if result is found[0] else beside(result, found[0]), flush=True)
                memory = memories.pop(result.case, None)
                print(*details(result, memory), sep="", end="", flush=True)

        return sweep.run(
            cases, file=arguments.json, origin=origin, measure=measure, is_finished=is_finished, found=show
        )


def _write(results: list[lm.Result], origin: lm_results.Origin, arguments: argparse.Namespace) -> None:
    if arguments.csv:
        lm_results.write(arguments.csv, lm_results.to_csv(results))
    if arguments.markdown:
        lm_results.write(arguments.markdown, lm_results.to_markdown(results, origin))
    if len(results) > 1:
        print("", lm_results.to_text(results), sep="\n")


def _submit(arguments: argparse.Namespace, tasks: int) -> int:
    command = [*slurm.this_command(), "bench", "lm", *words(arguments)]
    path, job = slurm.submit(command, tasks, arguments.json, arguments.slurm_option)
    print(f"Job {job}: {tasks} tasks of {path}. The same command with --gather instead of --slurm collects their rows.")
    return 0


def _gather(arguments: argparse.Namespace, tasks: int) -> int:
    results, origin = slurm.gathered(arguments.json)
    lm_results.save(arguments.json, results, origin)
    print(origin)
    _write(results, origin, arguments)
    missing = tasks - len({result.case for result in results})
    if missing > 0:
        print(f"{missing} of {tasks} cases have no row yet: their tasks are waiting or running, or failed; logs are in "
              f"{slurm.rows_folder(arguments.json)}")  # fmt: skip
    return 0


def words(arguments: argparse.Namespace) -> list[str]:
    """The options that say what a sweep measures, as they are given on the command line."""
    names = ("model-size", "context-length", "mode", "warmup-steps")
    lists = {name: getattr(arguments, name.replace("-", "_")) for name in names}
    found = [word for name, values in lists.items() for word in (f"--{name}", ",".join(map(str, values)))]
    options = "batch-size vocab-size attention mixed-precision measure-steps device peer"
    for name in options.split():
        value = getattr(arguments, name.replace("-", "_"))
        found += [f"--{name}", str(value)] if value not in (None, "") else []
    return found + [
        f"--{name}" for name in ("recompute", "compile", "graph", "profile", "memory") if getattr(arguments, name)
    ]
