"""`rooflab train`: the models of Lab 6 (`recall`), and a language model on a text (`lm`), one curve per run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.cli import train_lm
from rooflab.cli.arguments import MOST, add_json, told, whole_number, written
from rooflab.cli.progress import Progress
from rooflab.files import check_file, replacing
from rooflab.labs import lab6

BAR = 0.9
SCORED_ROWS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab train`."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    text = "Associative recall: attention layers alone learn to answer a key by its value (Lab 6)."
    recall = tasks.add_parser("recall", help=text, description=text)
    recall.add_argument("--num-layers", type=whole_number(1), required=True, metavar="N", help="layers of attention")
    recall.add_argument(
        "--pairs", type=whole_number(1), default=8, metavar="N",
        help="pairs per row (default 8); there are twice as many keys and values",
    )  # fmt: skip
    recall.add_argument(
        "--steps", type=whole_number(1), default=lab6.STEPS, metavar="N", help="training steps (default 400)"
    )
    recall.add_argument(
        "--every", type=whole_number(1), default=50, metavar="N", help="steps between scores (default 50)"
    )
    recall.add_argument("--seed", type=whole_number(0, MOST), default=0, help="seed of weights and rows (default 0)")
    recall.add_argument("--device", help="cpu, cuda or cuda:N; default: cuda where there is a GPU")
    recall.add_argument("--output", type=written, metavar="FILE", help="write the weights (safetensors)")
    add_json(recall, "write settings, losses and accuracies as JSON")
    recall.set_defaults(run=_recall)
    text = "A transformer language model on a text file, of bytes or BPE tokens, with checkpoints."
    lm = tasks.add_parser("lm", help=text, description=text)
    train_lm.add_arguments(lm)
    lm.set_defaults(run=train_lm.run)


def main(arguments: argparse.Namespace) -> int:
    """Train and write; exit code 1 if the loss is NaN or infinite, 2 if a file or the device fails, 130 if stopped."""
    try:
        return arguments.run(arguments)
    except BrokenPipeError:
        raise  # the reader of the output has left: the end of any command
    except (ValueError, ImportError, rl.CudaError, MemoryError, OSError, FloatingPointError) as error:
        print(f"rooflab train {arguments.task}: {told(error, arguments)}", file=sys.stderr)
        return 1 if isinstance(error, FloatingPointError) else 2


def _recall(arguments: argparse.Namespace) -> int:
    check_file(arguments.output, arguments.json)
    device = arguments.device or ("cuda" if rl.cuda.is_available() else "cpu")
    task = {"pairs": arguments.pairs, "keys": 2 * arguments.pairs, "values": 2 * arguments.pairs}
    model = lab6.RecallModel(arguments.num_layers, lab6.fused_attention, seed=arguments.seed, device=device, **task)
    batch = partial(lab6.recall_rows, **task)
    layers = f"{arguments.num_layers} layer" + "s" * (arguments.num_layers > 1)
    print(f"{layers} of attention, {model.num_parameters():,} parameters, {arguments.pairs} pairs, on {device}; "
          f"guessing among the values shown: {1 / arguments.pairs:.1%}")  # fmt: skip
    run: dict[str, Any] = {"losses": [], "accuracies": {}}

    def write() -> None:
        if arguments.output:
            settings = {name: str(value) for name, value in _settings(arguments, device).items()}
            rl.save(model.state_dict(), arguments.output, settings)
        if arguments.json:
            with replacing(arguments.json) as unfinished:
                text = json.dumps(_settings(arguments, device) | run, indent=2)
                unfinished.write_text(text + "\n", encoding="utf-8")

    with Progress(layers) as progress:
        _train(model, batch, arguments, run, progress, write)
    first = next((step for step, accuracy in run["accuracies"].items() if accuracy >= BAR), None)
    print(f"90 % reached at step {first}" if first else f"90 % not reached in {arguments.steps} steps")
    return 0


def _train(
    model: Any,
    batch: Any,
    arguments: argparse.Namespace,
    run: dict[str, Any],
    progress: Progress,
    write: Callable[[], None],
) -> None:
    """Fill `run` with losses and accuracies, and print each score as soon as it is known; `write` before the last."""
    rows = batch(np.random.default_rng((arguments.seed, 2)), SCORED_ROWS)
    for step, loss in lab6.training(model, batch, seed=arguments.seed, steps=arguments.steps):
        run["losses"].append(loss)
        progress(f"step {step} of {arguments.steps}, loss {loss:.3f}")
        if step % arguments.every == 0 or step == arguments.steps:
            run["accuracies"][step] = accuracy = lab6.recall_accuracy(model, *rows)
            if step == arguments.steps:
                write()
            progress.clear()
            print(f"step {step:5}   loss {loss:6.3f}   accuracy {accuracy:6.1%}", flush=True)


def _settings(arguments: argparse.Namespace, device: str) -> dict[str, Any]:
    names = ("num_layers", "pairs", "steps", "seed")
    return {name: getattr(arguments, name) for name in names} | {"device": device, "rooflab": rl.__version__}
