"""The ops of one pass through a model, each called on tensors without memory and counted.

Where a `Convention` counts differently from the runtime, the difference is added to an op's counters at its call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd import set_grad_enabled
from ..specs import itemsize
from .convention import Convention
from .model_spec import ModelSpec
from .work import Step, Work

_NONE = Work()


def steps_of(
    spec: ModelSpec, batch: int, length: int, mode: str, dtype: str, attention: str, convention: Convention
) -> tuple[Step, ...]:
    """The steps of a pass, in order; the arguments are those of `rl.cost.model`.

    Raises
    ------
    ValueError
        When an op of the pass counts more than 2^63.

    Examples
    --------
    >>> from rooflab.cost import MODELS, Convention
    >>> steps = steps_of(MODELS["llama3-8b"], 1, 100, "decode", "float16", "fused", Convention())
    >>> steps[-1].name, steps[-1].work.macs
    ('product', 525336576)
    """
    one = _Pass(spec, batch, length, mode, dtype, attention, convention)
    with _core._PrivateCount():
        one.embedding()
        for layers, window in ((spec.layers - spec.sliding_layers, 0), (spec.sliding_layers, spec.window)):
            if layers:
                with one.times(layers):
                    one.layer(window)
        one.head()
    return tuple(Step(part, name, work) for (part, name), work in one.found.items())


class _Pass:
    def __init__(
        self, spec: ModelSpec, batch: int, length: int, mode: str, dtype: str, attention: str, convention: Convention
    ) -> None:
        self.spec, self.batch, self.length, self.dtype, self.convention = spec, batch, length, dtype, convention
        self.training, self.composed = mode == "training", attention == "composed"
        self.decoding = mode == "decode"
        self.queries = 1 if self.decoding else length
        self.rows = batch * self.queries
        self.joint = not (convention.reread_inputs or self.training)
        self.found: dict[tuple[str, str], Work] = {}
        self._times = 1
        self._check_sizes()

    def _check_sizes(self) -> None:
        """The counters have 64 bits."""
        spec, scores = self.spec, self.batch * self.spec.heads * self.queries * self.length
        wide = (spec.heads + 2 * spec.kv_heads) * spec.head_size
        widest = max(wide, spec.d_model, 2 * spec.d_ff, spec.vocabulary, spec.experts)
        rows = self.rows * max(1, spec.experts_per_token)
        cache = 2 * self.batch * self.length * spec.kv_heads * spec.head_size
        products, weights = 4 * rows * spec.d_model * widest, 64 * spec.d_model * (widest + spec.learned_positions)
        if max(products, weights, 512 * rows * widest, 16 * scores * (spec.head_size + 4), 8 * cache) >= 2**63:
            raise ValueError(
                f"[cost] {spec.name}, batch={self.batch}, length={self.length}: an op would count more than 2^63"
            )

    # --- tensors without memory, and what an op counts on them ---

    def x(self, *shape: int, dtype: str | None = None) -> Tensor:
        """A tensor that needs a gradient in training."""
        return _core.empty(*shape, dtype=dtype or self.dtype, device="meta", requires_grad=self.training and not dtype)

    def fixed(self, *shape: int) -> Tensor:
        """A tensor that never needs a gradient."""
        return _core.empty(*shape, dtype=self.dtype, device="meta")

    @contextmanager
    def times(self, number: int) -> Iterator[None]:
        """Count what runs inside the block `number` times."""
        before, self._times = self._times, self._times * number
        yield
        self._times = before

    def add(self, part: str, name: str, work: Work) -> None:
        """Add work to a step, if there is any."""
        if work != _NONE:
            self.found[part, name] = self.found.get((part, name), _NONE) + work * self._times

    def run(self, part: str, name: str, op: Callable[..., Any], *operands: Any, **kwargs: Any) -> Work:
        """Count an op, in training its backward too. Returns what one call counts forward."""
        with set_grad_enabled(self.training), _core._PrivateCount() as there:
            result = op(*operands, **kwargs)
        self.add(part, name, _work(there))
        if self.training:
            result = result.values if isinstance(result, _core.ValuesAndIndices) else result
            with _core._PrivateCount() as back:
                result.backward(None if result.ndim == 0 else _core.empty_like(result))
            self.add(part, f"{name}, backward", _work(back))
        return _work(there)

    def gradients_meet(self, part: str, sums: int, *shape: int) -> None:
        """In training, add the sums of gradients of a tensor that several ops have read."""
        if self.training and sums:
            with set_grad_enabled(False), _core._PrivateCount() as counted:
                _core.add(self.fixed(*shape), self.fixed(*shape))
            self.add(part, "sums of gradients", _work(counted) * sums)

    def products(self, part: str, name: str, rows: int, size: int, widths: Sequence[int], bias: bool) -> None:
        """One input (rows, size) times several weights: one product if they are joint."""
        for width in [sum(widths)] if self.joint else widths:
            self.run(part, name, _core.linear, self.x(rows, size), self.x(width, size))
            if bias and self.convention.bias == "fused":
                self.add(part, name, Work(flops=rows * width, bytes_read=width * itemsize(self.dtype)))
            elif bias:
                self.run(part, "bias", _core.add, self.x(rows, width), self.x(width))
        self.gradients_meet(part, len(widths) - 1, rows, size)

    # --- the parts of a model ---

    def embedding(self) -> None:
        """Tokens to vectors."""
        spec = self.spec
        if not self.convention.counts("embedding"):
            return
        hidden = (self.batch, self.queries, spec.d_model)
        tokens = self.x(self.batch, self.queries, dtype="int64")
        self.run("embedding", "rows", _core.embedding, tokens, self.x(spec.vocabulary, spec.d_model))
        if spec.scaled_embedding:
            self.run("embedding", "scale", _core.mul, self.x(*hidden), 2.0)
        if spec.learned_positions:
            places = self.x(self.queries, dtype="int64")
            self.run("embedding", "positions", _core.embedding, places, self.x(spec.learned_positions, spec.d_model))
            self.run("embedding", "sum", _core.add, self.x(*hidden), self.x(*hidden[1:]))

    def norm(self, part: str, name: str, *shape: int) -> None:
        """A norm over the last dimension."""
        x, weight, size = self.x(*shape), self.x(shape[-1]), shape[-1]
        if self.spec.norm == "layer_norm":
            self.run(part, name, _core.layer_norm, x, weight, self.x(size))
        else:
            self.run(part, name, _core.rms_norm, x, weight, 1e-6, self.spec.zero_centered)

    def layer(self, window: int) -> None:
        """A decoder layer; a `window` of 0 sees the whole text."""
        spec, d_model = self.spec, self.spec.d_model
        wide, narrow = spec.heads * spec.head_size, spec.kv_heads * spec.head_size
        bias = spec.attention_bias and self.convention.counts("attention biases")
        if self.convention.counts("norms"):
            self.norm("norms", "before attention", self.rows, d_model)
            self.gradients_meet("norms", 2, self.rows, d_model)
        self.products("projections", "product", self.rows, d_model, (wide, narrow, narrow), bias)
        if self.convention.counts("rope"):
            self.place("queries", spec.heads)
            self.place("keys", spec.kv_heads)
        self.keep(window)
        (self.attend_composed if self.composed else self.attend_fused)(window)
        self.products("output projection", "product", self.rows, wide, (d_model,), bias)
        self.join("after attention", is_last=False)
        if spec.experts:
            self.experts()
        else:
            self.mlp(self.rows)
        self.join("after MLP", is_last=True)

    def join(self, name: str, is_last: bool) -> None:
        """Add a branch to the residual stream; what comes next in the layer reads the sum normalised."""
        if not self.convention.counts("norms"):
            return
        spec, size = self.spec, self.spec.d_model
        hidden = (self.batch, self.queries, size)
        if spec.post_norms and spec.norm == "rms_norm" and not self.training:
            x, weight = self.x(*hidden), self.x(size)
            following = None if is_last else self.x(size)
            residual = self.x(*hidden)
            self.run("norms", name, _core.rms_norm_add, x, residual, weight, following, 1e-6, spec.zero_centered)
            return
        if spec.post_norms:
            self.norm("norms", name, self.rows, size)
        self.run("norms", "residual", _core.add, self.x(*hidden), self.x(*hidden))
        if not is_last:
            self.norm("norms", "before MLP", self.rows, size)

    def place(self, name: str, heads: int) -> None:
        """Queries or keys normalised, and rotated by their positions."""
        spec, size = self.spec, self.spec.head_size
        x, angles = self.x(self.batch, heads, self.queries, size), (self.queries, size)
        if spec.qk_norm and spec.rope and spec.norm == "rms_norm" and not self.training:
            tables = (self.fixed(*angles), self.fixed(*angles))
            self.run("rope", name, _core.rms_norm_rope, x, self.x(size), *tables, 1e-6, spec.zero_centered)
            return
        if spec.qk_norm:
            self.norm("rope", f"norm of {name}", self.batch, heads, self.queries, size)
        if spec.rope:
            self.run("rope", name, _core.rope, x, self.fixed(*angles), self.fixed(*angles))

    def keep(self, window: int) -> None:
        """New keys and values are copied into the cache."""
        if self.training or not self.convention.copies_into_cache:
            return
        places = min(self.length, window or self.length)
        new = (self.batch, self.spec.kv_heads, self.queries, self.spec.head_size)
        caches = (self.x(*new[:2], places, new[3]) for _ in range(2))
        position = self.x(1, dtype="int64")
        self.run("KV cache", "copy", _core.kv_append, *caches, self.x(*new), self.x(*new), position)

    def keys(self, window: int) -> int:
        """How many keys the queries are multiplied with; for a new token, those that the cache keeps."""
        return min(self.length, window or self.length) if self.decoding else self.length

    def attend_fused(self, window: int) -> None:
        """Attention that keeps its scores on the chip."""
        spec, convention = self.spec, self.convention
        keys = self.keys(window)
        q = self.x(self.batch, spec.heads, self.queries, spec.head_size)
        k, v = (self.x(self.batch, spec.kv_heads, keys, spec.head_size) for _ in range(2))
        shown: dict[str, Any] = {}
        if convention.causality_saves and not self.decoding:
            shown = {"is_causal": True, "window": window or None}
        scores = self.run("attention", "fused", _core.attention, q, k, v, **shown).macs // (2 * spec.head_size)
        masked = not self.decoding
        differs = convention.fused_score_flops(masked) - Convention.RUNTIME.fused_score_flops(masked)
        self.add("attention", "fused", Work(flops=differs * scores))

    def attend_composed(self, window: int) -> None:
        """Attention in separate ops, each of which reads and writes all scores."""
        spec, convention, runtime = self.spec, self.convention, Convention.RUNTIME
        size, keys = spec.head_size, self.keys(window)
        grouped = (self.batch, spec.kv_heads, spec.heads // spec.kv_heads * self.queries)
        every = (self.batch, spec.heads, self.queries, keys)
        scores = self.batch * spec.heads * self.queries * keys
        transposed = self.x(*grouped[:2], size, keys)
        self.run("attention", "scores", _core.matmul, self.x(*grouped, size), transposed)
        if convention.scale == "fused":
            self.add("attention", "scores", Work(flops=scores))
        elif convention.scale == "own":
            self.run("attention", "scale", _core.mul, self.x(*every), 0.5)
        if not self.decoding:
            mask = self.x(self.queries, keys, dtype="bool")
            self.run("attention", "mask", _core.where, mask, self.x(*every), float("-inf"))
            self.add("attention", "mask", Work(flops=(convention.mask_flops - runtime.mask_flops) * scores))
            if not convention.mask_matrix:
                self.add("attention", "mask", Work(bytes_read=-self.queries * keys))
        self.run("attention", "softmax", _core.softmax, self.x(*every))
        flops = (convention.softmax_flops - runtime.softmax_flops) * scores
        passes = (convention.softmax_passes - runtime.softmax_passes) * scores * itemsize(self.dtype)
        self.add("attention", "softmax", Work(flops=flops, bytes_read=passes, bytes_written=passes))
        values = self.x(*grouped[:2], keys, size)
        self.run("attention", "values", _core.matmul, self.x(*grouped, keys), values)

    def mlp(self, rows: int) -> None:
        """An MLP for some rows."""
        spec, convention = self.spec, self.convention
        self.products("MLP", "product in", rows, spec.d_model, (spec.d_ff,) * (1 + spec.gated), spec.mlp_bias)
        if convention.counts("activation"):
            op = getattr(_core, {"gelu": "geglu", "silu": "swiglu"}[spec.activation] if spec.gated else spec.activation)
            inputs = [self.x(rows, spec.d_ff) for _ in range(1 + spec.gated)]
            self.run("MLP", "activation", op, *inputs)
            if spec.activation == "gelu":
                differs = convention.gelu_flops - Convention.RUNTIME.gelu_flops
                self.add("MLP", "activation", Work(flops=differs * rows * spec.d_ff))
        self.products("MLP", "product out", rows, spec.d_ff, (spec.d_model,), spec.mlp_bias)

    def experts(self) -> None:
        """A router chooses experts for each token; tokens are spread as evenly as possible."""
        spec, size = self.spec, self.spec.d_model
        chosen = self.rows * spec.experts_per_token
        self.products("routing", "router", self.rows, size, (spec.experts,), bias=False)
        self.run("routing", "softmax", _core.softmax, self.x(self.rows, spec.experts))
        self.run("routing", "choice", _core.topk, self.x(self.rows, spec.experts), spec.experts_per_token)
        self.run("routing", "dispatch", _core.index_select, self.x(self.rows, size), 0, self.x(chosen, dtype="int64"))
        self.gradients_meet("routing", 1, self.rows, size)
        fewer, busier = divmod(chosen, spec.experts)
        for experts, rows in ((busier, fewer + 1), (spec.experts - busier, fewer)):
            if experts and rows:
                with self.times(experts):
                    self.mlp(rows)
        self.run("routing", "weights", _core.mul, self.x(chosen, size), self.x(chosen, 1))
        places = self.x(chosen, 1, dtype="int64").expand(chosen, size)
        self.run("routing", "sum", _core.scatter_add, self.x(self.rows, size), 0, places, self.x(chosen, size))

    def head(self) -> None:
        """The last norm, the scores of the vocabulary (in training of every token), and the loss."""
        spec, convention = self.spec, self.convention
        rows = self.rows if self.training else self.batch
        if convention.counts("norms"):
            self.norm("norms", "last", self.rows, spec.d_model)
        if not convention.counts("head"):
            return
        self.products("head", "product", rows, spec.d_model, (spec.vocabulary,), bias=False)
        if self.training:
            if spec.tied_head and convention.counts("embedding"):
                self.gradients_meet("head", 1, spec.vocabulary, spec.d_model)
            if convention.counts("loss"):
                tokens = self.x(rows, dtype="int64")
                self.run("loss", "cross entropy", _core.cross_entropy, self.x(rows, spec.vocabulary), tokens)


def _work(counted: _core._PrivateCount) -> Work:
    """What was counted, without copies that only change a layout or keep a gradient."""
    total, moved = counted.total, counted.by_op.get("copy")
    read, written = (moved.bytes_read, moved.bytes_written) if moved else (0, 0)
    return Work(total.macs, total.flops, total.bytes_read - read, total.bytes_written - written)
