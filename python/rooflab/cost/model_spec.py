"""The sizes of decoder-only transformers, as far as they decide what a pass costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from .. import empty, nn
from .checks import check_choice, check_whole

_CHOICES = {"activation": ("gelu", "silu"), "norm": ("rms_norm", "layer_norm")}
_MAY_BE_0 = ("experts", "experts_per_token", "window", "sliding_layers", "learned_positions")
DTYPES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class ModelSpec:
    """What a decoder-only transformer is made of.

    Attributes
    ----------
    name : str
        The name that tables show.
    layers, d_model, d_ff, vocabulary : int
        Layers, D, I and V.
    heads, kv_heads, head_size : int
        H, H_kv and D_h.
    gated : bool
        Whether the MLP is ``down(activation(gate(x)) * up(x))``; otherwise ``down(activation(up(x)))``.
    activation : str
        ``"gelu"`` or ``"silu"``.
    norm : str
        ``"rms_norm"``, or ``"layer_norm"``, which has a bias.
    zero_centered : bool
        Whether an RMS norm multiplies by 1 + weight, as in Gemma.
    post_norms : bool
        Whether the results of attention and MLP are normalised before they are added, as in Gemma 3.
    qk_norm : bool
        Whether each head of queries and keys is normalised.
    attention_bias, mlp_bias : bool
        Whether the projections of the attention and of the MLP have biases.
    tied_head : bool
        Whether the output head has the embedding's weights.
    scaled_embedding : bool
        Whether embeddings are multiplied by a number, as in Gemma.
    learned_positions : int
        Rows of the table of positions, which is added to the embedding; 0: positions rotate queries and keys (rope).
    window, sliding_layers : int
        `sliding_layers` of the layers see only the last `window` tokens; 0 and 0: all see the whole text.
    experts, experts_per_token : int
        MLPs of a layer, and how many of them a router chooses for a token; 0 and 0: one MLP and no router.

    Raises
    ------
    ValueError
        For a size that is not a whole number, below 1 or 2^63 or more, and for sizes that contradict each other.

    Examples
    --------
    >>> from rooflab.cost import MODELS
    >>> MODELS["gpt2-xl"].parameters
    1557611200
    """

    name: str
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    head_size: int
    d_ff: int
    vocabulary: int
    gated: bool = True
    activation: str = "silu"
    norm: str = "rms_norm"
    zero_centered: bool = False
    post_norms: bool = False
    qk_norm: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    tied_head: bool = False
    scaled_embedding: bool = False
    learned_positions: int = 0
    window: int = 0
    sliding_layers: int = 0
    experts: int = 0
    experts_per_token: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, what = getattr(self, field.name), f"{self.name}: {field.name}"
            if field.type == "int":
                least = 0 if field.name in _MAY_BE_0 else 1
                object.__setattr__(self, field.name, check_whole(what, value, least))
            elif field.name in _CHOICES:
                check_choice(what, value, _CHOICES[field.name])
            elif field.type == "bool" and not isinstance(value, bool):
                raise ValueError(f"[cost] {what}: expected True or False, got {value!r}")
        contradictions = {
            f"heads: expected a multiple of kv_heads={self.kv_heads}, got {self.heads}": self.heads % self.kv_heads,
            f"sliding_layers: expected at most layers={self.layers}, got {self.sliding_layers}": (
                self.sliding_layers > self.layers
            ),
            f"window: expected 1 or more for {self.sliding_layers} sliding layers, got 0": (
                self.sliding_layers and not self.window
            ),
            f"experts_per_token: expected at most experts={self.experts}, got {self.experts_per_token}": (
                self.experts_per_token > self.experts
            ),
            f"experts_per_token: expected 1 or more of {self.experts} experts, got 0": (
                self.experts and not self.experts_per_token
            ),
            "zero_centered: a layer_norm has no such weight": self.zero_centered and self.norm == "layer_norm",
        }
        for sentence, holds in contradictions.items():
            if holds:
                raise ValueError(f"[cost] {self.name}: {sentence}")

    @property
    def rope(self) -> bool:
        """Whether positions rotate queries and keys."""
        return not self.learned_positions

    @property
    def attention_parameters(self) -> int:
        """Weights and biases of a layer's projections, and its norms of queries and keys."""
        wide, narrow = self.heads * self.head_size, self.kv_heads * self.head_size
        biases = (wide + 2 * narrow + self.d_model) * self.attention_bias
        return self.d_model * (2 * wide + 2 * narrow) + biases + 2 * self._norm(self.head_size) * self.qk_norm

    @property
    def mlp_parameters(self) -> int:
        """Weights and biases of one MLP: of one expert where there are several."""
        into = 1 + self.gated
        return (into + 1) * self.d_model * self.d_ff + (into * self.d_ff + self.d_model) * self.mlp_bias

    @property
    def norm_parameters(self) -> int:
        """Weights and biases of one norm of a token."""
        return self._norm(self.d_model)

    def _norm(self, size: int) -> int:
        return size * (2 if self.norm == "layer_norm" else 1)

    def _parameters(self, experts: int) -> int:
        mlp = experts * self.mlp_parameters + self.experts * self.d_model
        norms = (4 if self.post_norms else 2) * self.norm_parameters
        tables = self.d_model * (self.vocabulary * (1 if self.tied_head else 2) + self.learned_positions)
        return self.layers * (self.attention_parameters + mlp + norms) + tables + self.norm_parameters

    @property
    def parameters(self) -> int:
        """Parameters of the model, embedding included; a tied head once."""
        return self._parameters(self.experts or 1)

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses: `experts_per_token` experts of each layer, and all the rest."""
        return self._parameters(self.experts_per_token or 1)

    def cache_bytes(self, batch: int, length: int, dtype: str = "float16") -> int:
        """Bytes of keys and values of `batch` sequences of `length` tokens; a sliding layer keeps its window only."""
        batch, length = check_whole("batch", batch), check_whole("length", length)
        kept = (self.layers - self.sliding_layers) * length + self.sliding_layers * min(length, self.window)
        return empty(2, batch * kept, self.kv_heads, self.head_size, dtype=dtype, device="meta").nbytes


@dataclass(frozen=True)
class ModelTable(Mapping[str, ModelSpec]):
    """Models by name; case does not matter.

    Examples
    --------
    >>> from rooflab.cost import MODELS
    >>> MODELS["Llama3-8B"].kv_heads
    8
    """

    _specs: tuple[ModelSpec, ...]

    def __getitem__(self, name: str) -> ModelSpec:
        for spec in self._specs:
            if isinstance(name, str) and spec.name == name.lower():
                return spec
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (spec.name for spec in self._specs)

    def __len__(self) -> int:
        return len(self._specs)


def of_gemma3(config: nn.Gemma3Config, name: str = "gemma3") -> ModelSpec:
    """The sizes of a model of `rl.nn`.

    Examples
    --------
    >>> import rooflab as rl
    >>> of_gemma3(rl.nn.GEMMA3_270M).sliding_layers
    15
    """
    return ModelSpec(
        name=name,
        layers=config.num_hidden_layers,
        d_model=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_size=config.head_dim,
        d_ff=config.intermediate_size,
        vocabulary=config.vocab_size,
        activation="gelu",
        zero_centered=True,
        post_norms=True,
        qk_norm=True,
        tied_head=True,
        scaled_embedding=True,
        window=config.sliding_window,
        sliding_layers=sum(config.window(i) is not None for i in range(config.num_hidden_layers)),
    )


def of_transformer(config: nn.TransformerConfig, name: str = "transformer") -> ModelSpec:
    """The sizes of a `rl.nn.TransformerLM`.

    Examples
    --------
    >>> import rooflab as rl
    >>> of_transformer(rl.nn.TransformerConfig.of("xl")).parameters
    1998235200
    """
    return ModelSpec(
        name=name,
        layers=config.num_layers,
        d_model=config.d_model,
        heads=config.num_heads,
        kv_heads=config.num_heads,
        head_size=config.head_dim,
        d_ff=config.d_ff,
        vocabulary=config.vocab_size,
    )


def of_gpt2(
    name: str, layers: int, d_model: int, heads: int, vocabulary: int = 50257, context: int = 1024
) -> ModelSpec:
    """A GPT-2 of these sizes (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019).

    Examples
    --------
    >>> of_gpt2("gpt2", 12, 768, 12).parameters
    124439808
    """
    d_model, heads = check_whole(f"{name}: d_model", d_model), check_whole(f"{name}: heads", heads)
    if d_model % heads:
        raise ValueError(f"[cost] {name}: d_model: expected a multiple of heads={heads}, got {d_model}")
    return ModelSpec(
        name=name,
        layers=layers,
        d_model=d_model,
        heads=heads,
        kv_heads=heads,
        head_size=d_model // heads,
        d_ff=4 * d_model,
        vocabulary=vocabulary,
        gated=False,
        activation="gelu",
        norm="layer_norm",
        attention_bias=True,
        mlp_bias=True,
        tied_head=True,
        learned_positions=context,
    )


MODELS = ModelTable(
    (
        of_gpt2("gpt2", 12, 768, 12),
        of_gpt2("gpt2-medium", 24, 1024, 16),
        of_gpt2("gpt2-large", 36, 1280, 20),
        of_gpt2("gpt2-xl", 48, 1600, 25),
        of_gemma3(nn.GEMMA3_270M, "gemma3-270m"),
        # Grattafiori et al., "The Llama 3 Herd of Models", arXiv:2407.21783, table 3.
        ModelSpec("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256),
        ModelSpec("llama3-70b", 80, 8192, 64, 8, 128, 28672, 128256),
        # Jiang et al., "Mixtral of Experts", arXiv:2401.04088, table 1.
        ModelSpec("mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000, experts=8, experts_per_token=2),
    )
)
"""Known models by name."""


def kv_bytes_per_token(model: ModelSpec | str, dtype: str = "float16") -> int:
    """Bytes of keys and values that one more token leaves in the cache of a model: 2 n layers H_kv D_h.

    A sliding layer whose window is full keeps no more, but it is counted here.

    Parameters
    ----------
    model : ModelSpec or str
        A description, or a name in `MODELS`.
    dtype : str
        The dtype of the cache.

    Returns
    -------
    int
        Bytes per text of the batch.

    Raises
    ------
    ValueError
        For a model or a dtype that is not known.

    Examples
    --------
    >>> from rooflab.cost import kv_bytes_per_token
    >>> [kv_bytes_per_token(name) for name in ("gpt2-xl", "gemma3-270m", "llama3-8b")]
    [307200, 18432, 131072]
    """
    check_choice("dtype", dtype, DTYPES)
    return replace(find_model(model), sliding_layers=0).cache_bytes(1, 1, dtype)


def find_model(model: ModelSpec | str) -> ModelSpec:
    """A description as it is, or the one of that name.

    Raises
    ------
    ValueError
        For a name that `MODELS` does not have.
    """
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, str) and model in MODELS:
        return MODELS[model]
    raise ValueError(f"[cost] model: expected a ModelSpec or one of {', '.join(MODELS)}; got {model!r}")
