"""`rooflab train lm`: a transformer language model on a text file, with checkpoints, a curve and its numbers."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import rooflab as rl
from rooflab.cli.arguments import MOST, Read, add_json, whole_number, written
from rooflab.cli.progress import Progress
from rooflab.files import check_figure, check_file, replacing, save_figure
from rooflab.nn import TRANSFORMER_SIZES, TransformerConfig
from rooflab.training import BpeText, ByteText, LanguageModelTraining, TokenText, TrainingSettings, tokenizer_of

# Small enough for a laptop: about a minute with the defaults below.
_SIZES = {"d_model": 128, "d_ff": 384, "num_layers": 4, "num_heads": 4}
_VOCAB_SIZE = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab train lm`."""
    count, positive = whole_number(1), _positive
    parser.add_argument("text", type=Read, help="the file to learn from")
    tokens = parser.add_argument_group("the tokens")
    tokens.add_argument(
        "--tokens", choices=("bytes", "bpe"), default="bytes",
        help="bytes: each byte is a token; bpe: byte pair encoding, learnt from the text and kept in the checkpoint "
        "(needs the package tokenizers); default bytes",
    )  # fmt: skip
    tokens.add_argument(
        "--vocab-size",
        type=whole_number(257),
        metavar="N",
        help=f"size of the vocabulary of --tokens bpe (default {_VOCAB_SIZE})",
    )
    sizes = parser.add_argument_group("the model")
    sizes.add_argument("--model-size", choices=TRANSFORMER_SIZES, help="sizes of Lab 2, in place of the four below")
    for name, text in (("d_model", "D"), ("d_ff", "I"), ("num_layers", "layers"), ("num_heads", "heads")):
        option = f"--{name.replace('_', '-')}"
        sizes.add_argument(option, type=count, metavar="N", help=f"{text} (default {_SIZES[name]})")
    sizes.add_argument(
        "--context-length", type=count, default=128, metavar="N", help="tokens per sequence (default 128)"
    )
    sizes.add_argument("--attention", choices=("composed", "flash"), default="flash", help="which (default flash)")
    sizes.add_argument("--recompute", action="store_true", help="keep only the input of each block for backward")
    steps = parser.add_argument_group("the training")
    steps.add_argument("--steps", type=count, default=200, metavar="N", help="how many steps (default 200)")
    steps.add_argument("--batch-size", type=count, default=16, metavar="N", help="sequences per step (default 16)")
    steps.add_argument("--lr", type=positive, default=3e-3, metavar="X", help="highest learning rate (default 0.003)")
    steps.add_argument(
        "--warmup",
        type=whole_number(0),
        metavar="N",
        help="steps in which the learning rate rises (default: a tenth of all)",
    )
    steps.add_argument("--weight-decay", type=_not_negative, default=0.1, metavar="X", help="of AdamW (default 0.1)")
    steps.add_argument("--clip", type=positive, default=1.0, metavar="X", help="largest norm of gradients (default 1)")
    steps.add_argument("--mixed-precision", action="store_true", help="run forward and loss under autocast to bfloat16")
    steps.add_argument("--seed", type=whole_number(0, MOST), default=0, help="seed of weights and batches (default 0)")
    steps.add_argument("--device", help="cpu, cuda or cuda:N; default: cuda where there is a GPU")
    files = parser.add_argument_group("files")
    files.add_argument("--checkpoint", type=written, metavar="FILE", help="written every --every steps and at the end")
    files.add_argument("--every", type=count, default=50, metavar="N", help="steps between checkpoints (default 50)")
    files.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    add_json(files, "write settings and losses as JSON")
    files.add_argument("--plot", type=written, metavar="FILE", help="draw the loss curve (png, pdf or svg)")


def run(arguments: argparse.Namespace) -> int:
    """Train and write.

    Raises
    ------
    ValueError, OSError, ImportError
        A text, a size or a file cannot be used; raised before the first step where that can be known.
    FloatingPointError
        The loss, the norm of the gradients or a weight of a checkpoint is NaN or infinite.
    """
    check_file(arguments.checkpoint, arguments.json)
    check_figure(arguments.plot)
    if arguments.resume and not arguments.checkpoint:
        raise ValueError("--resume: expected --checkpoint too, got none")
    training = _training(arguments)
    if arguments.resume:
        training.resume(arguments.checkpoint)
        print(f"going on after step {training.step} of {arguments.checkpoint}")
    text = training.text
    size = f"{len(text):,} {text.unit}s of text" + (f" ({text.bytes:,} bytes)" if isinstance(text, BpeText) else "")
    print(
        f"{training.model.num_parameters():,} parameters, {size}, on {training.model.device}; guessing has a loss of "
        f"{math.log(text.vocab_size):.3f} nats a {text.unit}"
    )
    with Progress("training") as progress:
        _steps(training, arguments, progress)
    return 0


def _training(arguments: argparse.Namespace) -> LanguageModelTraining:
    given = {name: getattr(arguments, name) for name in _SIZES if getattr(arguments, name) is not None}
    if arguments.model_size and given:
        raise ValueError(f"--model-size: expected no --{next(iter(given)).replace('_', '-')} beside it")
    text = _text(arguments)
    options: dict[str, Any] = {
        "vocab_size": text.vocab_size,
        "context_length": arguments.context_length,
        "attention": arguments.attention,
        "recompute": arguments.recompute,
    }
    if arguments.model_size:
        config = TransformerConfig.of(arguments.model_size, **options)
    else:
        config = TransformerConfig(**{**_SIZES, **given, **options})
    settings = TrainingSettings(
        steps=arguments.steps,
        batch_size=arguments.batch_size,
        learning_rate=arguments.lr,
        warmup=arguments.steps // 10 if arguments.warmup is None else arguments.warmup,
        weight_decay=arguments.weight_decay,
        clip=arguments.clip,
        mixed_precision="bfloat16" if arguments.mixed_precision else "",
        seed=arguments.seed,
    )
    device = arguments.device or ("cuda" if rl.cuda.is_available() else "cpu")
    return LanguageModelTraining(config, text, settings, device)


def _text(arguments: argparse.Namespace) -> TokenText:
    if arguments.tokens == "bytes":
        if arguments.vocab_size:
            raise ValueError("--vocab-size: expected --tokens bpe too; there are 256 bytes")
        return ByteText.from_file(arguments.text, arguments.context_length)
    tokenizer = tokenizer_of(arguments.checkpoint) if arguments.resume else None
    vocab_size = arguments.vocab_size or _VOCAB_SIZE
    return BpeText.from_file(arguments.text, arguments.context_length, vocab_size, tokenizer)


def _steps(training: LanguageModelTraining, arguments: argparse.Namespace, progress: Progress) -> None:
    """The remaining steps, with a line and a checkpoint every `--every` of them."""
    kept = training.step  # the step that the checkpoint holds: 0 for none, else where this run goes on from
    try:
        if training.step >= arguments.steps:  # the checkpoint is that of the whole training
            _write_results(training, arguments)
        while training.step < arguments.steps:
            loss = training.advance()
            progress(f"step {training.step} of {arguments.steps}, loss {loss:.3f}")
            if training.step % arguments.every == 0 or training.step == arguments.steps:
                if arguments.checkpoint:
                    training.save(arguments.checkpoint)
                    kept = training.step
                if training.step == arguments.steps:
                    _write_results(training, arguments)  # before the line, whose reader may have left
                progress.clear()
                recent = training.losses[-min(arguments.every, 10) :]
                mean = f"mean of {len(recent)} steps" if len(recent) > 1 else "of this step"
                print(f"step {training.step:6}   loss {sum(recent) / len(recent):6.3f} ({mean})", flush=True)
    except (KeyboardInterrupt, FloatingPointError, OSError):
        progress.clear()
        if kept:
            print(f"{arguments.checkpoint} holds step {kept} of {arguments.steps}; --resume goes on from there")
        raise


def _write_results(training: LanguageModelTraining, arguments: argparse.Namespace) -> None:
    if arguments.json:
        about = training.description() | {"device": training.model.device, "rooflab": rl.__version__}
        with replacing(arguments.json) as unfinished:
            text = json.dumps(about | {"losses": training.losses}, indent=2)
            unfinished.write_text(text + "\n", encoding="utf-8")
    if arguments.plot:
        title = f"{training.model.num_parameters():,} parameters, {arguments.text.name}"
        guess = math.log(training.text.vocab_size)
        drawn = rl.plots.plot_losses({training.config.attention + " attention": training.losses}, guess, title)
        save_figure(drawn, arguments.plot)


def _positive(text: str) -> float:
    number = _number(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number


def _not_negative(text: str) -> float:
    number = _number(text)
    if not number >= 0:
        raise argparse.ArgumentTypeError(f"expected a number of 0 or more, got {text!r}")
    return number


def _number(text: str) -> float:
    """The number, or NaN if the text is not a finite number."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
