"""Text generation: the next token is chosen from its scores, again and again."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from .._numbers import number, whole
from .functional.operands import check_kind, check_tensor
from .gemma3_model import Gemma3ForCausalLM
from .kv_cache import KVCache

__all__ = ["generate", "sample"]


def sample(
    logits: np.ndarray,
    rng: np.random.Generator,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> np.ndarray:
    """Draw a token for each row of scores.

    Parameters
    ----------
    logits : array
        (B, V). -inf rules a token out; where scores are +inf, one of these tokens is drawn, each as likely.
    rng : numpy.random.Generator
        Where the randomness comes from.
    temperature : float
        Scores are divided by it first: below 1, likely tokens become more likely. Greater than 0, and finite.
    top_k : int, optional
        Only the k most likely tokens may be drawn.
    top_p : float, optional
        Only the most likely tokens may be drawn, as many as are needed for a total probability of `top_p`.

    Returns
    -------
    array
        (B,), int64.

    Raises
    ------
    ValueError
        For a parameter out of range, scores of another shape, scores that are complex or NaN, or a row of -inf alone.
    TypeError
        When `rng` is no generator of random numbers.

    Notes
    -----
    `top_p` is nucleus sampling: Holtzman et al. (arXiv:1904.09751).

    Examples
    --------
    >>> from rooflab.nn import sample
    >>> sample(np.array([[0.0, 9.0, 1.0]]), np.random.default_rng(0), top_k=1).tolist()
    [1]
    """
    _check_options("sample", temperature, top_k, top_p)
    if not hasattr(rng, "random") or rng is random or isinstance(rng, random.Random):  # Python's has no shapes
        owner = "rooflab's " if type(rng).__module__.startswith("rooflab.") else ""
        raise TypeError(f"[sample] rng: expected a numpy.random.Generator, got {owner}{type(rng).__name__}")
    if np.iscomplexobj(logits):
        raise ValueError("[sample] logits: expected real numbers, got complex ones")
    scores = np.asarray(logits, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise ValueError(f"[sample] logits: expected (B, V) with V >= 1, got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError("[sample] logits: a score is NaN")
    order = np.argsort(-scores, axis=-1, kind="stable")
    ranked = np.take_along_axis(scores, order, -1)
    top = ranked[:, :1]
    if np.isneginf(top).any():
        raise ValueError("[sample] logits: every score of a row is -inf")
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf, and far scores divided by a small temperature
        weights = np.where(ranked == top, 1.0, np.exp((ranked - top) / temperature))
    if top_k is not None:
        weights[:, top_k:] = 0
    shares = weights / weights.sum(-1, keepdims=True)
    if top_p is not None:
        shares[np.cumsum(shares, -1) - shares >= top_p] = 0
    ends = np.cumsum(shares, -1)
    drawn = rng.random((len(ends), 1)) * ends[:, -1:]  # below the last end, which need not be 1
    places = (ends <= drawn).sum(-1, keepdims=True)
    return np.take_along_axis(order, places, -1)[:, 0]


def _check_options(owner: str, temperature: Any, top_k: Any, top_p: Any) -> None:
    if not 0 < number(f"[{owner}] temperature", temperature) < math.inf:
        raise ValueError(f"[{owner}] temperature: expected a finite number > 0, got {temperature}")
    if top_k is not None:
        whole(f"[{owner}] top_k", top_k, 1)
    if top_p is not None and not 0 < number(f"[{owner}] top_p", top_p) <= 1:
        raise ValueError(f"[{owner}] top_p: expected in (0, 1], got {top_p}")


def generate(
    model: Gemma3ForCausalLM,
    prompt: Tensor,
    max_new_tokens: int,
    *,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    eos_token: int | None = None,
    graph: bool = True,
) -> Tensor:
    """Continue a prompt.

    Parameters
    ----------
    model : Gemma3ForCausalLM
        The model whose scores decide.
    prompt : Tensor
        (B, L), int64 or int32, with L >= 1.
    max_new_tokens : int
        How many tokens to add at most.
    do_sample : bool
        Whether to draw tokens at random; otherwise the most likely one is taken.
    temperature, top_k, top_p
        As in `sample`. They change nothing without `do_sample`.
    seed : int, optional
        Seed of the draws: the same seed gives the same text. By default `rl.manual_seed` decides.
    eos_token : int, optional
        A token of the vocabulary. Writing ends once every text of the batch has it. A text that has it is padded with
        it until then.
    graph : bool
        Replay a captured step with one host call a token, instead of launching each op again.

    Returns
    -------
    Tensor
        (B, L + at most max_new_tokens), int64, the prompt included.

    Raises
    ------
    ValueError
        For an empty prompt or one that is not of integers, a parameter out of range, scores that are NaN, or a row of
        scores that are all -inf. Without `do_sample` the scores of the last token alone are looked at.
    TypeError
        For another model, and a prompt that is no tensor.

    Examples
    --------
    >>> from rooflab.nn import generate
    >>> import rooflab as rl
    >>> config = rl.nn.Gemma3Config(num_hidden_layers=1, vocab_size=100)
    >>> model = rl.nn.Gemma3ForCausalLM(config, dtype="float32")  # random weights
    >>> generate(model, rl.tensor([[1, 2, 3]]), max_new_tokens=2).shape
    (1, 5)
    """
    if not hasattr(model, "prefill"):
        check_kind("generate", model, Gemma3ForCausalLM, "model")
    if check_tensor("generate", prompt, "prompt").dtype not in (_core.int64, _core.int32):
        raise ValueError(f"[generate] prompt: expected int64 or int32, got {prompt.dtype}")
    if prompt.ndim != 2 or prompt.shape[1] == 0:
        raise ValueError(f"[generate] prompt: expected (B, L) with L >= 1, got {prompt.shape}")
    max_new_tokens = whole("[generate] max_new_tokens", max_new_tokens, 0)
    _check_options("generate", temperature, top_k, top_p)
    if seed is not None:
        seed = whole("[generate] seed", seed, 0)
    if eos_token is not None:
        eos_token = whole("[generate] eos_token", eos_token, 0)
        if eos_token >= model.config.vocab_size:
            raise ValueError(f"[generate] eos_token: expected below V={model.config.vocab_size}, got {eos_token}")
    batch, length = prompt.shape
    texts = prompt.to(model.device).to("int64")
    if max_new_tokens == 0:
        return texts.clone()
    if do_sample and seed is None:
        seed = int(_core.rand(1, dtype="float64").item() * 2**53)
    rng = np.random.default_rng(seed)
    cache = KVCache(model.config, batch, length + max_new_tokens, dtype=str(model.dtype), device=model.device)

    def choose(logits: Tensor) -> Tensor:
        last = logits[:, -1]
        if not do_sample:
            return last.argmax(-1, keepdim=True)
        drawn = sample(last.float().cpu().numpy(), rng, temperature=temperature, top_k=top_k, top_p=top_p)
        return _core.tensor(drawn[:, None], device=model.device)

    # The chosen tokens stay on the device, so that the host submits the next step without waiting for this one.
    written, is_over = [texts], None
    logits = model.prefill(texts, cache)
    step = model.capture_decode(cache, batch) if graph and max_new_tokens > 2 else lambda x: model.decode(x, cache)
    for remaining in range(max_new_tokens, 0, -1):
        chosen = choose(logits)
        if eos_token is not None:
            chosen = chosen if is_over is None else chosen.masked_fill(is_over, eos_token)
            is_over = chosen == eos_token
        written.append(chosen)
        if remaining == 1 or (is_over is not None and is_over.all().item()):
            break
        logits = step(chosen)
    if not do_sample and not model.device.startswith("meta"):
        # Of the last token alone, because a look at each would be launches a token. What is NaN in keys and values
        # stays so in the cache; what the last layer's MLP, norm and head make of one token is not seen later.
        best = logits[:, -1].amax(-1)
        if not (best > -math.inf).all().item():
            raise ValueError("[generate] model: a score is NaN, or every score of a token is -inf")
    return _core.cat(written, 1)
