"""Gemma 3: its attention, MLP and decoder layer. The computation is csrc/nn/gemma3.cpp."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._core import Tensor, _gemma3
from ..autograd import no_grad
from .gemma3_config import Gemma3Config
from .layers import Linear, Packed, RMSNorm
from .module import Module

__all__ = ["Gemma3Attention", "Gemma3DecoderLayer", "Gemma3MLP"]


class Gemma3Attention(Packed):
    """Grouped-query attention with normalised queries and keys, over the whole text or a sliding window.

    Parameters
    ----------
    config : Gemma3Config
        The sizes.
    layer : int
        Which layer it is: this decides on the window.
    fused : bool
        Whether the norms of queries and keys run in one kernel with the rotary embedding, and q, k and v are one
        product.
    """

    _packed = ("q_proj", "k_proj", "v_proj")

    def __init__(
        self,
        config: Gemma3Config,
        layer: int = 0,
        *,
        fused: bool = True,
        dtype: str = "bfloat16",
        device: str = "cpu",
    ) -> None:
        wide = config.num_attention_heads * config.head_dim
        narrow = config.num_key_value_heads * config.head_dim
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.q_proj = Linear(config.hidden_size, wide, bias=False, **where)
        self.k_proj = Linear(config.hidden_size, narrow, bias=False, **where)
        self.v_proj = Linear(config.hidden_size, narrow, bias=False, **where)
        self.o_proj = Linear(wide, config.hidden_size, bias=False, **where)
        self.pack()
        self.eps = config.rms_norm_eps
        self.q_norm = RMSNorm(config.head_dim, self.eps, zero_centered=True, **where)
        self.k_norm = RMSNorm(config.head_dim, self.eps, zero_centered=True, **where)
        self.scale = config.query_pre_attn_scalar**-0.5
        self.window = config.window(layer)
        self.fused = fused

    def native(self) -> _gemma3.Attention:
        """The weights as csrc/nn takes them."""
        return _gemma3.Attention(
            q_proj=_weight(self, "q_proj"),
            k_proj=_weight(self, "k_proj"),
            v_proj=_weight(self, "v_proj"),
            o_proj=_weight(self, "o_proj"),
            q_norm=_gain(self, "q_norm", self.eps),
            k_norm=_gain(self, "k_norm", self.eps),
            scale=self.scale,
            eps=self.eps,
            window=self.window,
            fused=self.fused,
        )

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: _gemma3.KvCache | None = None) -> Tensor:
        """x (B, L, D) to (B, L, D); the other arguments as in `Gemma3DecoderLayer.forward`."""
        return self.native().forward(x, cos, sin, cache)


class Gemma3MLP(Packed):
    """``down_proj(gelu(gate_proj(x)) * up_proj(x))`` with the tanh form of GeLU; no biases.

    Parameters
    ----------
    config : Gemma3Config
        The sizes.
    fused : bool
        Whether gate and up are one product.
    dtype : dtype or str
        Of the parameters.
    device : str
        Where they lie.

    Examples
    --------
    >>> from rooflab.nn import Gemma3MLP
    >>> import rooflab as rl
    >>> config = rl.nn.Gemma3Config(num_hidden_layers=1, vocab_size=100)
    >>> Gemma3MLP(config, dtype="float32")(rl.ones(1, 2, config.hidden_size)).shape
    (1, 2, 640)
    """

    _packed = ("gate_proj", "up_proj")

    def __init__(
        self, config: Gemma3Config, *, fused: bool = True, dtype: str = "bfloat16", device: str = "cpu"
    ) -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size, bias=False, **where)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size, bias=False, **where)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, bias=False, **where)
        self.pack()
        self.fused = fused

    def native(self) -> _gemma3.Mlp:
        """The weights as csrc/nn takes them."""
        return _gemma3.Mlp(
            gate_proj=_weight(self, "gate_proj"),
            up_proj=_weight(self, "up_proj"),
            down_proj=_weight(self, "down_proj"),
            fused=self.fused,
        )

    def forward(self, x: Tensor) -> Tensor:
        """x (B, L, D) to (B, L, D)."""
        return self.native().forward(x)


class Gemma3DecoderLayer(Module):
    """One layer: attention and an MLP, each between two norms and beside a residual.

    Parameters
    ----------
    config : Gemma3Config
        The sizes.
    layer : int
        Which layer it is, from 0: every sixth sees the whole text.
    fused : bool
        Whether norms run in one kernel with what comes next (the rotary embedding, or a residual and another norm), and
        products of the same x are one. If not, each is a kernel and, for profiles, a range of its own.

    Examples
    --------
    >>> from rooflab.nn import Gemma3DecoderLayer
    >>> import rooflab as rl
    >>> layer = Gemma3DecoderLayer(rl.nn.GEMMA3_270M, dtype="float32")
    >>> cos, sin = rl.nn.RotaryEmbedding(1e4, 256, dtype="float32")(0, 3)
    >>> layer(rl.randn(1, 3, 640), cos, sin).shape, layer.num_parameters()
    ((1, 3, 640), 5573632)
    """

    def __init__(
        self,
        config: Gemma3Config,
        layer: int = 0,
        *,
        fused: bool = True,
        dtype: str = "bfloat16",
        device: str = "cpu",
    ) -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device}

        def norm() -> RMSNorm:
            return RMSNorm(config.hidden_size, config.rms_norm_eps, zero_centered=True, dtype=dtype, device=device)

        self.self_attn = Gemma3Attention(config, layer, fused=fused, **where)
        self.mlp = Gemma3MLP(config, fused=fused, **where)
        self.input_layernorm = norm()
        self.post_attention_layernorm = norm()
        self.pre_feedforward_layernorm = norm()
        self.post_feedforward_layernorm = norm()

    def native(self) -> _gemma3.Layer:
        """The weights as csrc/nn takes them."""
        attention = _part(self, "self_attn", Gemma3Attention)
        return _gemma3.Layer(
            attention.native(),
            _part(self, "mlp", Gemma3MLP).native(),
            input_layernorm=_gain(self, "input_layernorm", attention.eps),
            post_attention_layernorm=_gain(self, "post_attention_layernorm", attention.eps),
            pre_feedforward_layernorm=_gain(self, "pre_feedforward_layernorm", attention.eps),
            post_feedforward_layernorm=_gain(self, "post_feedforward_layernorm", attention.eps),
        )

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: _gemma3.KvCache | None = None) -> Tensor:
        """One pass through the layer.

        Parameters
        ----------
        x : Tensor
            (B, L, D).
        cos, sin : Tensor
            (L, D_h) or (B, L, D_h), of the tokens' positions: see `RotaryEmbedding`.
        cache : optional
            ``KVCache.layer(i)``. The tokens then come after those that it has seen, their keys and values are written
            into it, and no gradient is recorded. Call ``KVCache.begin(L, x)`` before the first layer
            and ``KVCache.advance(L)`` after the last.

        Returns
        -------
        Tensor
            (B, L, D).

        Raises
        ------
        ValueError
            When shapes do not fit, the cache is full, or a module inside has hooks or computes otherwise.
        """
        if cache is None:
            return self.native().forward(x, cos, sin)
        with no_grad():
            return self.native().forward(x, cos, sin, cache)


_NOTHING: dict[str, Any] = {}


def _plain(part: Any, kind: type) -> dict[str, Any]:
    """A part's own attributes where it is of that very class and has no hooks; each pass asks this of all parts."""
    if type(part) is not kind:
        return _NOTHING
    own: dict[str, Any] = part.__dict__
    return _NOTHING if "forward" in own or "_before_forward" in own or "_after_forward" in own else own


def _part(owner: Module, name: str, kind: Any, options: dict[str, Any] = _NOTHING) -> Any:
    """A module inside of a layer, of which csrc/nn takes the weights: ValueError if calling it does anything else."""
    part = owner.__dict__[name]
    if not options and _plain(part, kind):
        return part
    own = vars(part) if isinstance(part, kind) else _NOTHING
    has_hooks = own.get("_before_forward") or own.get("_after_forward")
    if not isinstance(part, kind):
        found = f"a {type(part).__name__}"
    elif has_hooks:
        found = "one with hooks; put them on the decoder layer"
    elif type(part).forward is not kind.forward or "forward" in own or type(part).__call__ is not Module.__call__:
        found = f"a {type(part).__name__} with a forward of its own"
    elif differing := [option for option, value in options.items() if own.get(option) != value]:
        found = f"{differing[0]}={own.get(differing[0])}"
    else:
        return part
    expected = ", ".join([f"a plain {kind.__name__}", *(f"{option}={value}" for option, value in options.items())])
    raise ValueError(
        f"[{type(owner).__name__}] {name}: expected {expected}, because one call runs the layer and reads its weights; "
        f"got {found}"
    )


def _weight(owner: Module, name: str) -> Tensor:
    own = _plain(owner.__dict__[name], Linear)
    if own and own["bias"] is None:
        return own["weight"]
    return _part(owner, name, Linear, {"bias": None}).weight


def _gain(owner: Module, name: str, eps: float) -> Tensor:
    own = _plain(owner.__dict__[name], RMSNorm)
    if own and own["zero_centered"] is True and own["eps"] == eps:
        return own["weight"]
    return _part(owner, name, RMSNorm, {"eps": eps, "zero_centered": True}).weight


_forward = Gemma3DecoderLayer.forward


def steps_of(
    layers: Iterable[Module], angles: list[tuple[Tensor, Tensor]], caches: list[_gemma3.KvCache]
) -> list[_gemma3.DecodeStep] | None:
    """Decoder layers as csrc/nn runs them one after the other; none if calling one is more than `forward` above."""
    steps = []
    for layer, (cos, sin), cache in zip(layers, angles, caches, strict=True):
        if not isinstance(layer, Gemma3DecoderLayer) or layer._before_forward or layer._after_forward:
            return None
        if getattr(layer.forward, "__func__", None) is not _forward:
            return None
        steps.append(_gemma3.DecodeStep(layer.native(), cos, sin, cache))
    return steps
