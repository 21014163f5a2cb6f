"""Steps of training, and checkpoints: weights, moments of the optimizer and losses in one safetensors file."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import dataclass
from typing import Any

from .. import _core
from ..autocast import autocast
from ..composed import Generator
from ..nn import TransformerConfig, TransformerLM
from ..nn.utils import clip_grad_norm_
from ..optim import AdamW, warmup_cosine
from ..results import settle
from ..serialization import load_with_metadata, save
from .bpe_text import BpeText
from .token_text import TokenText

__all__ = ["LanguageModelTraining", "TrainingSettings"]

_MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training, besides the sizes of its model.

    Attributes
    ----------
    steps, batch_size : int
        How many steps, and sequences of a step.
    learning_rate : float
        The highest rate: it rises to that over `warmup` steps and falls to a tenth of it along half a cosine.
    warmup : int
        At most `steps`.
    weight_decay, betas : float, (float, float)
        Options of AdamW.
    clip : float
        The largest norm of all gradients.
    mixed_precision : str
        "bfloat16": forward and loss run under `rl.autocast`; "": all is float32.
    seed : int
        Seed of the random weights and of the places in the text.

    Raises
    ------
    ValueError
        For fewer than one step or text, a warm-up longer than the training, another precision, and for a setting that
        is no number.
    """

    steps: int = 200
    batch_size: int = 16
    learning_rate: float = 1e-3
    warmup: int = 20
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0
    mixed_precision: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        settle(self)
        if self.steps < 1 or self.batch_size < 1:
            raise ValueError(
                f"[TrainingSettings] expected steps and batch_size >= 1, got {self.steps} and {self.batch_size}"
            )
        if not 0 <= self.warmup <= self.steps:
            raise ValueError(f"[TrainingSettings] warmup: expected 0 to steps={self.steps}, got {self.warmup}")
        if self.mixed_precision not in ("", "bfloat16"):
            raise ValueError(f"[TrainingSettings] mixed_precision: expected bfloat16, got {self.mixed_precision!r}")


class LanguageModelTraining:
    """A `TransformerLM` that learns to continue a text, one step at a time.

    On a CPU the same text, sizes and settings give the same weights to the bit, in one run or with checkpoints in
    between, whatever else draws random numbers; the sequence of `rl.manual_seed` does not move. On a GPU the terms of
    some gradients are added in a changing order.

    Parameters
    ----------
    config : TransformerConfig
        Sizes of the model; its vocabulary has to be the text's.
    text : TokenText
        What it learns from, in rows of the model's context length.
    settings : TrainingSettings
        How it learns.
    device : str
        Where it trains.

    Attributes
    ----------
    model : TransformerLM
        What is trained.
    step : int
        Steps done.
    losses : list of float
        The mean cross-entropy of each step, in nats a token.

    Raises
    ------
    ValueError
        When model and text do not fit.

    Examples
    --------
    >>> from rooflab.nn import TransformerConfig
    >>> from rooflab.training import ByteText, LanguageModelTraining, TrainingSettings
    >>> text = ByteText(b"to be or not to be, that is the question", context_length=16)
    >>> config = TransformerConfig(32, 64, 1, 2, vocab_size=256, context_length=16)
    >>> training = LanguageModelTraining(config, text, TrainingSettings(steps=5, batch_size=4, warmup=1))
    >>> 4 < training.advance() < 8, training.step
    (True, 1)
    """

    def __init__(
        self, config: TransformerConfig, text: TokenText, settings: TrainingSettings, device: str = "cpu"
    ) -> None:
        if (config.vocab_size, config.context_length) != (text.vocab_size, text.context_length):
            raise ValueError(
                f"[LanguageModelTraining] config: expected vocab_size={text.vocab_size} and context_length="
                f"{text.context_length} as the text has, got {config.vocab_size} and {config.context_length}"
            )
        self.config, self.text, self.settings = config, text, settings
        self.model = TransformerLM(config, device=device, generator=Generator().manual_seed(settings.seed))
        self.step = 0
        self.losses: list[float] = []
        self._optimizer = AdamW(
            self.model.parameters(), lr=0.0, betas=settings.betas, weight_decay=settings.weight_decay
        )

    def advance(self) -> float:
        """One step; returns its loss.

        Raises
        ------
        FloatingPointError
            When the loss or the norm of the gradients is NaN or infinite. Weights and the number of steps stay as they
            were.
        """
        step, settings = self.step + 1, self.settings
        tokens, targets = self.text.batch(settings.seed, step, settings.batch_size, self.model.device)
        low = settings.mixed_precision
        with autocast(low or "bfloat16", enabled=bool(low)):
            loss = _core.cross_entropy(self.model(tokens).flatten(0, 1), targets.flatten())
        value = loss.item()
        if not math.isfinite(value):
            raise FloatingPointError(f"the loss is {value} at step {step}; try a lower learning rate")
        self._optimizer.zero_grad()
        loss.backward()
        norm = clip_grad_norm_(self.model.parameters(), settings.clip).item()
        if not math.isfinite(norm):
            raise FloatingPointError(f"the norm of the gradients is {norm} at step {step}; try a lower learning rate")
        high = settings.learning_rate
        self._optimizer.param_groups[0]["lr"] = warmup_cosine(step, high, high / 10, settings.warmup, settings.steps)
        self._optimizer.step()  # type: ignore[call-arg]
        self.step = step
        self.losses.append(value)
        return value

    def description(self) -> dict[str, Any]:
        """Sizes, settings and text as plain values: what has to be the same for a training to resume."""
        settings = dataclasses.asdict(self.settings) | {"betas": list(self.settings.betas)}
        return dataclasses.asdict(self.config) | settings | {"text": self.text.digest}

    def save(self, path: str | os.PathLike) -> None:
        """Write a checkpoint, from the first step on. The file at `path` is replaced once the new one is whole.

        Raises
        ------
        ValueError
            Before the first step.
        FloatingPointError
            When a weight is NaN or infinite, because no training can go on from there; what was there is as it was.
        OSError
            When it cannot be written, as on a full disk; what was there is as it was.
        """
        if not self.step:
            raise ValueError("[save] expected at least one step, got none")
        weights = self.model.state_dict()
        for name, weight in weights.items():
            if not _core.isfinite(weight).all().item():
                raise FloatingPointError(
                    f"{name} has numbers that are not finite after step {self.step}; try a lower learning rate"
                )
        names = [name for name, _ in self.model.named_parameters()]
        tensors = {f"model.{name}": weight for name, weight in weights.items()}
        for place, entry in self._optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{moment}.{names[place]}": entry[moment] for moment in _MOMENTS}
        about = {"step": self.step, "losses": self.losses, "description": self.description()}
        # In the same file: a checkpoint and the tokens that it was trained on cannot come apart.
        tokenizer = {"tokenizer": self.text.tokenizer} if isinstance(self.text, BpeText) else {}
        save(tensors, path, {"rooflab_training": json.dumps(about)} | tokenizer)

    def resume(self, path: str | os.PathLike) -> None:
        """Resume from a checkpoint of the same sizes, settings and text.

        The file is read once, so another that takes its place meanwhile is not mixed with it. Nor is one that
        `tokenizer_of` read: a checkpoint fits the tokens that it was trained on, and no others.

        Raises
        ------
        OSError
            When the file cannot be read.
        ValueError
            When it is not a checkpoint, is cut short, or belongs to another training; nothing changes then.
        """
        tensors, texts = load_with_metadata(path, self.model.device)
        about = _about(path, texts)
        mine, theirs = self.description(), about["description"]
        differing = [name for name in mine if mine[name] != theirs.get(name)]
        if differing:
            said = ", ".join(f"{name}={theirs.get(name)!r} there and {mine[name]!r} here" for name in differing)
            raise ValueError(f"[resume] {os.fspath(path)}: it belongs to another training: {said}")
        if not len(about["losses"]) == about["step"] >= 1:
            raise ValueError(f"[resume] {os.fspath(path)}: {len(about['losses'])} losses for {about['step']} steps")
        weights = self.model.state_dict()
        for kind in ("model", *(f"optimizer.{moment}" for moment in _MOMENTS)):
            for name, weight in weights.items():
                found = tensors.get(f"{kind}.{name}", "nothing")
                if not _fits(found, weight):
                    got = f"{found.dtype} {found.shape}" if isinstance(found, _core.Tensor) else found
                    raise ValueError(f"[resume] {os.fspath(path)}: {kind}.{name}: expected {weight.shape}, got {got}")
        state = {
            place: {"step": about["step"]} | {moment: tensors[f"optimizer.{moment}.{name}"] for moment in _MOMENTS}
            for place, name in enumerate(weights)
        }
        self._optimizer.load_state_dict(self._optimizer.state_dict() | {"state": state})  # which may refuse moments
        self.model.load_state_dict({name: tensors[f"model.{name}"] for name in weights})
        self.step, self.losses = about["step"], list(about["losses"])


def _fits(found: Any, weight: _core.Tensor) -> bool:
    return isinstance(found, _core.Tensor) and found.shape == weight.shape and found.dtype.is_floating_point


def _about(path: str | os.PathLike, texts: dict[str, str]) -> dict[str, Any]:
    """What `save` wrote besides the tensors."""
    try:
        about = json.loads(texts.get("rooflab_training", ""))
        is_step = type(about["step"]) is int  # true is an int too
        if is_step and all(map(math.isfinite, about["losses"])) and about["description"].keys():
            return about
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        pass
    raise ValueError(f"[resume] {os.fspath(path)}: expected a checkpoint of a training")
