"""A Gemma-3 decoder layer in PyTorch, which `rooflab bench layer --peer torch` times beside ours: the same weights."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import rooflab as rl


def contenders(
    layer: rl.nn.Gemma3DecoderLayer,
    x: rl.Tensor,
    cos: rl.Tensor,
    sin: rl.Tensor,
    cache: tuple[rl.Tensor, rl.Tensor, rl.Tensor] | None = None,
) -> dict[str, Callable[[], object]]:
    """The layer as calls by name: "torch" op by op, and "torch compiled" as fast as PyTorch makes it.

    That is ``torch.compile(mode="max-autotune-no-cudagraphs")``, on a GPU captured into a CUDA graph by hand. The mode
    with graphs of its own copies the operands and checks them on every call.

    Parameters
    ----------
    layer : Gemma3DecoderLayer
        The layer whose weights to use; it must see the whole text.
    x : Tensor
        (B, L, D).
    cos, sin : Tensor
        (L, D_h), of the tokens' positions.
    cache : tuple of Tensor, optional
        Keys and values (B, H_kv, L, D_h), full but for the place of the token, and that place (1,). Without it the call
        is a prefill, which keeps no keys or values.
    """
    torch = importlib.import_module("torch")
    theirs = [torch.from_dlpack(t) for t in (x, cos, sin)]
    module = _module(torch, layer, [torch.from_dlpack(t) for t in cache or ()])
    compiled = torch.compile(module, mode="max-autotune-no-cudagraphs", dynamic=False)

    def call(function: Callable) -> Callable[[], object]:
        def once() -> object:
            with torch.no_grad():
                return function(*theirs)

        return once

    fast = call(compiled)
    if theirs[0].is_cuda:
        fast = _replay(torch, fast, theirs[0].device)
    return {"torch": call(module), "torch compiled": fast}


def _replay(torch: Any, call: Callable[[], object], gpu: Any) -> Callable[[], object]:
    """Replays a CUDA graph of the call. The first replay compiles the call and captures the graph."""

    @functools.cache
    def captured() -> Any:
        with torch.cuda.device(gpu):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    call()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                call()
        return graph

    return lambda: captured().replay()


def _module(torch: Any, layer: rl.nn.Gemma3DecoderLayer, cache: list[Any]) -> Any:
    """A torch.nn.Module with the weights, and the cache, as buffers: a CUDA graph takes those as they are."""
    functional = torch.nn.functional
    weights = {name: torch.from_dlpack(p.detach()) for name, p in layer.named_parameters()}
    attention = layer.self_attn
    eps, head_size = attention.eps, attention.q_norm.weight.shape[0]

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, weight in weights.items():
                self.register_buffer(name.replace(".", "_"), weight)
            for name, tensor in zip(("cache_k", "cache_v", "position"), cache, strict=False):
                self.register_buffer(name, tensor)

        def norm(self, x: Any, name: str) -> Any:
            x32 = x.float()
            x32 = x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + eps)
            return (x32 * (1 + getattr(self, f"{name}_weight").float())).to(x.dtype)

        def project(self, x: Any, name: str) -> Any:
            return functional.linear(x, getattr(self, f"{name}_proj_weight"))

        def heads(self, x: Any, name: str) -> Any:
            return self.project(x, f"self_attn_{name}").unflatten(-1, (-1, head_size)).transpose(1, 2)

        def rotate(self, x: Any, cos: Any, sin: Any) -> Any:
            first, second = x.chunk(2, -1)
            return x * cos + torch.cat((-second, first), -1) * sin

        def attend(self, x: Any, cos: Any, sin: Any) -> Any:
            q = self.rotate(self.norm(self.heads(x, "q"), "self_attn_q_norm"), cos, sin)
            k = self.rotate(self.norm(self.heads(x, "k"), "self_attn_k_norm"), cos, sin)
            v = self.heads(x, "v")
            if cache:
                k = self.cache_k.index_copy_(2, self.position, k)
                v = self.cache_v.index_copy_(2, self.position, v)
            y = functional.scaled_dot_product_attention(
                q, k, v, is_causal=not cache, scale=attention.scale, enable_gqa=True
            )
            return self.project(y.transpose(1, 2).flatten(2), "self_attn_o")

        def forward(self, x: Any, cos: Any, sin: Any) -> Any:
            y = self.attend(self.norm(x, "input_layernorm"), cos, sin)
            x = x + self.norm(y, "post_attention_layernorm")
            y = self.norm(x, "pre_feedforward_layernorm")
            y = functional.gelu(self.project(y, "mlp_gate"), approximate="tanh") * self.project(y, "mlp_up")
            return x + self.norm(self.project(y, "mlp_down"), "post_feedforward_layernorm")

    return Layer().eval()
