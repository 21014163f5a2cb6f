"""What a user writes: every subject of rooflab once. It runs, and editors find no error in it.

`assert_type` fails in a type checker when a type is another one, or is not known.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import numpy as np

import rooflab as rl
import rooflab.nn.functional as F
from rooflab import Tensor, nn, optim
from rooflab.cost import Cost, ModelCost
from rooflab.optim import lr_scheduler


class MLP(nn.Module):
    """Two layers with a norm before them."""

    def __init__(self, dim: int, hidden: int) -> None:
        self.norm = nn.RMSNorm(dim)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim)
        self.blocks = nn.ModuleList([nn.Linear(dim, dim) for _ in range(2)])
        self.scale = rl.ones(dim, requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        y = rl.gelu(self.up(self.norm(x)))
        x = x + self.down(y) * self.scale
        for block in self.blocks:
            x = x + block(x)
        return x


def batches(count: int) -> Iterator[tuple[Tensor, Tensor]]:
    for _ in range(count):
        x = rl.randn(4, 8)
        yield x, x.abs().sum(dim=-1, keepdim=True)


@rl.no_grad()
def evaluate(model: MLP) -> float:
    total = 0.0
    for x, target in batches(2):
        total += ((model(x) - target) ** 2).mean().item()
    return total / 2


@rl.compile
def fused(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + rl.tanh(x))


def train(model: MLP, steps: int) -> list[float]:
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    losses = []
    for step, (x, target) in enumerate(batches(steps)):
        for group in optimizer.param_groups:
            group["lr"] = optim.warmup_cosine(step, high=1e-3, low=0.0, warmup=2, end=steps)
        with rl.range("forward"), rl.autocast("bfloat16", enabled=False):
            loss = ((model(x) - target) ** 2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def tensors() -> None:
    x = rl.tensor([[1.0, 2.0], [3.0, 4.0]])
    mask = x > 1.5
    assert_type(mask, Tensor)
    assert_type(x + 1, Tensor)
    assert_type(2 / x, Tensor)
    assert_type(-x, Tensor)
    assert_type(x @ x, Tensor)
    assert_type(x[0, :1], Tensor)
    assert_type(x.T, Tensor)
    assert_type(x == x, Tensor)
    assert_type(rl.sum(x), Tensor)
    assert_type(rl.max(x), Tensor)
    assert_type(rl.where(mask, x, 0.0), Tensor)
    assert_type(x.requires_grad_(), Tensor)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, rl.DType)
    assert_type(x.grad, Tensor | None)
    assert_type(rl.float, rl.DType)
    x = x.detach()
    x += 1
    x[0] = 5.0
    x[mask] = 0
    for row in x:
        assert_type(row, Tensor)
    values, indices = rl.topk(x.flatten(), 2)
    assert_type(values, Tensor)
    print(f"{x.mean():.3f}", len(x), float(x.sum()), indices.tolist(), x.numpy().sum(), np.asarray(x).dtype)
    if (x > 0).any():
        print(rl.cat([x, rl.zeros_like(x)], dim=1).to(rl.bfloat16).half().shape)
    left, right = x.split(1, dim=0)
    print(rl.einsum("ij,kj->ik", left, right), rl.softmax(x, dim=-1), x.view(4), rl.arange(3, dtype="int64"))


def measured() -> None:
    a = rl.randn(32, 32)
    with rl.count() as c:
        y = rl.matmul(a, a)
    assert_type(c.flops, int)
    print(c.macs, c.launches, c.by_op)
    timing = rl.latency(rl.matmul, a, a, warmup=1, repeat=3)
    assert_type(timing.median_ms, float)
    use = rl.benchmark_memory(lambda: rl.exp(y))
    print(timing, use.peak_bytes)
    with rl.profile(schedule=rl.profiler.schedule(wait=0, warmup=1, active=2)) as prof:
        for _ in range(3):
            fused(a)
            prof.step()
    print(prof.key_averages().table(sort_by="duration", row_limit=3), prof.count_kernels())
    with rl.memory.record() as timeline:
        rl.exp(a)
    print(timeline.peak_bytes, rl.memory.peak(), [rung.name for rung in rl.variants("matmul", "cpu")])
    print(rl.cuda.is_available(), rl.cuda.device_count(), rl.num_threads())


def costs() -> None:
    cost = rl.cost.of("matmul", (3, 4), (4, 5))
    assert_type(cost, Cost)
    model = rl.cost.model("llama3-8b", batch=1, length=128, mode="decode", hardware="H100")
    assert_type(model, ModelCost)
    print(cost.macs, model, rl.roofline.ridge("H100", "bfloat16"))
    with rl.count() as c:
        rl.matmul(rl.empty(64, 64, device="meta"), rl.empty(64, 64, device="meta"))
    print(c.flops)


def gradients() -> None:
    x = rl.tensor([1.0, 2.0], requires_grad=True)
    with rl.enable_grad():
        y = rl.autograd.checkpoint(lambda x: rl.exp(rl.sin(x)), x)
    (gradient,) = rl.autograd.grad(y.sum(), x)
    assert_type(gradient, Tensor)
    with rl.no_grad(), rl.set_grad_enabled(True):
        (x * x).sum().backward()
    if x.grad is not None:
        print(x.grad.tolist(), gradient)


def saved(folder: Path, model: MLP) -> None:
    rl.save(model.state_dict(), folder / "model.safetensors")
    model.load_state_dict(rl.load(folder / "model.safetensors"))


class Normed(nn.Module):
    """What PyTorch users write."""

    def __init__(self) -> None:
        self.scale = nn.Parameter(rl.ones(3))
        self.register_buffer("mask", rl.ones(3, 3).tril())
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(self.body(x), (3,)) * self.scale


def as_in_pytorch() -> None:
    model = Normed().to("cpu").train()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    x = rl.randn(4, 3, requires_grad=True)
    with x.register_hook(lambda gradient: gradient * 2), rl.autocast("cuda", dtype="bfloat16"):
        loss = F.cross_entropy(model(x), rl.tensor([0, 1, 2, 0]))
    loss.backward()
    optimizer.step()
    schedule.step()
    y = x.detach().round().add(1).clip(0, 2)
    assert_type(y, Tensor)
    assert_type(x.device.type, str)
    assert_type(y.roll(1, 0).flip(0).tile(2, 1).nonzero(), Tensor)
    assert_type(rl.prod(y, 0) + rl.sum(y, dtype="float64").float(), Tensor)
    assert_type([name for name, _ in model.named_parameters()], list[str])
    picked = rl.multinomial(rl.ones(4), 2, generator=rl.Generator().manual_seed(1))
    print(np.exp(y), y.new_zeros(3), rl.finfo(y.dtype).max, rl.inf, picked, schedule.get_last_lr())


def main(folder: Path) -> None:
    rl.manual_seed(0)
    model = MLP(8, 16)
    assert_type(model.up(rl.randn(2, 8)), Tensor)
    assert_type(evaluate(model), float)
    assert_type(fused(rl.ones(2)), Tensor)
    print(train(model, 4), model.num_parameters())
    tensors()
    measured()
    costs()
    gradients()
    as_in_pytorch()
    saved(folder, model)
