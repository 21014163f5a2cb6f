"""The transformer LM beside a plain PyTorch one of the same weights: logits, gradients, the loss curve of 200 steps."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.nn import TransformerConfig, TransformerLM, half_pairs
from rooflab.nn.utils import clip_grad_norm_
from rooflab.optim import AdamW

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
functional = torch.nn.functional

pytestmark = pytest.mark.peer

CONFIG = TransformerConfig(128, 384, num_layers=4, num_heads=4, vocab_size=300, context_length=64)
B, L = 4, 64
# Of the largest element. float32: sums of up to 384 products in different orders, over four layers and back. bfloat16:
# both models round some ten results a layer by 2^-9 each, which add up like a random walk: 2^-9 sqrt(40) = 0.012 for
# each, and the way back doubles the number of roundings.
TOLERANCE = {"float32": 2e-5, "bfloat16": 0.05}


class Block(torch.nn.Module):
    """A block with the course's rotary embedding, which rotates neighbours, and attention in separate ops."""

    def __init__(self, config):
        super().__init__()
        D, I = config.d_model, config.d_ff  # noqa: E741
        self.heads, self.theta = config.num_heads, config.rope_theta
        self.ln1, self.ln2 = (torch.nn.Parameter(torch.ones(D)) for _ in range(2))
        self.q, self.k, self.v, self.o = (torch.nn.Linear(D, D, bias=False) for _ in range(4))
        self.w1, self.w3, self.w2 = (torch.nn.Linear(*sizes, bias=False) for sizes in ((D, I), (D, I), (I, D)))

    def turned(self, x):
        length, size = x.shape[-2:]
        places = torch.arange(length, device=x.device, dtype=torch.float32)
        steps = torch.arange(0, size, 2, device=x.device, dtype=torch.float32) / size
        angles = places[:, None] * self.theta**-steps
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        first, second = x[..., ::2], x[..., 1::2]
        return torch.stack([first * cos - second * sin, first * sin + second * cos], -1).flatten(-2)

    def forward(self, x):
        length, D = x.shape[1:]
        h = norm(x, self.ln1)
        q, k, v = (p(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        scores = self.turned(q) @ self.turned(k).transpose(-2, -1) / q.shape[-1] ** 0.5
        hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        x = x + self.o((weights @ v).transpose(1, 2).reshape(-1, length, D))
        h = norm(x, self.ln2)
        return x + self.w2(functional.silu(self.w1(h)) * self.w3(h))


def norm(x, weight, eps=1e-5):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = torch.nn.Embedding(config.vocab_size, config.d_model)
        self.blocks = torch.nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.ln = torch.nn.Parameter(torch.ones(config.d_model))
        self.head = torch.nn.Linear(config.d_model, config.vocab_size, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(norm(x, self.ln))


def name_of_theirs(ours):
    """The name of their parameter that corresponds to our parameter `ours`."""
    ends = {"token_embeddings.weight": "embedding.weight", "ln_final.weight": "ln", "lm_head.weight": "head.weight"}
    if ours in ends:
        return ends[ours]
    _, index, *rest = ours.removesuffix(".weight").split(".")
    last = rest[-1]
    part = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "output_proj": "o"}.get(last, last)
    return f"blocks.{index}.{part}" + ("" if last in ("ln1", "ln2") else ".weight")


def as_ours(name, tensor):
    """Their weight, or its gradient, in the layout of ours."""
    found = rl.from_dlpack(tensor.detach().contiguous())
    return half_pairs(found, CONFIG.num_heads) if "q_proj" in name or "k_proj" in name else found


def pair(dtype, device, attention, config=CONFIG):
    """(theirs, ours) with the same weights, gains away from 1."""
    rl.manual_seed(0)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    theirs = Model(config)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if name.endswith(("ln1", "ln2", "ln")):
                parameter.normal_(1, 0.3)
    theirs = theirs.to(device=device, dtype=getattr(torch, dtype))
    ours = TransformerLM(TransformerConfig(**{**vars(config), "attention": attention}), dtype=dtype, device=device)
    weights = dict(theirs.named_parameters())
    ours.load_state_dict({name: as_ours(name, weights[name_of_theirs(name)]) for name in ours.state_dict()})
    return theirs, ours


def assert_near(actual, expected, tolerance, name):
    actual, expected = (x.detach().to("cpu").to("float32").numpy() for x in (actual, expected))
    error = np.abs(actual - expected).max() / np.abs(expected).max()
    print(f"{name}: {error:.1e} of the largest element")
    assert error <= tolerance, f"{name}: off by {error:.2e} of the largest element"


@pytest.mark.parametrize("attention", ["composed", "flash"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_logits_and_gradients_are_theirs(dtype, attention, device):
    theirs, ours = pair(dtype, device, attention)
    tokens = np.random.default_rng(0).integers(0, CONFIG.vocab_size, (2, B, L))
    logits = theirs(torch.tensor(tokens[0], device=device))
    loss = functional.cross_entropy(logits.flatten(0, 1), torch.tensor(tokens[1], device=device).flatten())
    loss.backward()
    own = ours(rl.tensor(tokens[0], device=device))
    rl.cross_entropy(own.flatten(0, 1), rl.tensor(tokens[1], device=device).flatten()).backward()
    assert_near(own, rl.from_dlpack(logits.detach()), TOLERANCE[dtype], f"logits, {dtype}, {attention}")
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        expected = as_ours(name, gradients[name_of_theirs(name)])
        assert_near(parameter.grad, expected, TOLERANCE[dtype], f"gradient of {name}, {dtype}, {attention}")


STEPS, SHORT = 200, 32  # steps, and tokens of a row
# Of the loss, at every step. float32: a rounding by 2^-24 for each of B x SHORT rows and each step, as a random walk:
# 2^-24 sqrt(128 x 200) = 1e-5. bfloat16: roundings by 2^-9 in single rows average out over the rows of a batch, so a
# loss that is off by one of them is too far.
CURVE_TOLERANCE = {"float32": 1e-5, "bfloat16": 2**-9}


def rows_of_text(step):
    """Tokens and those after them, of a made-up language: four of five follow from the one before."""
    rng = np.random.default_rng((1, step))
    tokens = np.empty((B, SHORT + 1), np.int64)
    tokens[:, 0] = rng.integers(0, 30, B)
    for place in range(SHORT):
        follows = (tokens[:, place] * 7 + 3) % 30
        tokens[:, place + 1] = np.where(rng.random(B) < 0.8, follows, rng.integers(0, 30, B))
    return tokens[:, :-1] * 10, tokens[:, 1:] * 10


def their_step(model, optimizer, rows, device, precision):
    x, y = (torch.tensor(part, device=device) for part in rows)
    optimizer.zero_grad()
    with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
        loss = functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def own_step(model, optimizer, rows, device, precision):
    x, y = (rl.tensor(part, device=device) for part in rows)
    optimizer.zero_grad()
    with rl.autocast("bfloat16", enabled=precision == "bfloat16"):
        loss = rl.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_loss_curve_of_200_steps_is_theirs(precision, device):
    config = TransformerConfig(64, 160, num_layers=2, num_heads=4, vocab_size=300, context_length=SHORT)
    theirs, ours = pair("float32", device, "flash", config)
    options = {"lr": 1e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
    their_optimizer = torch.optim.AdamW(theirs.parameters(), **options)
    own_optimizer = AdamW(ours.parameters(), **options)
    curves = np.empty((2, STEPS))
    for step in range(STEPS):
        rows = rows_of_text(step)
        curves[0, step] = their_step(theirs, their_optimizer, rows, device, precision)
        curves[1, step] = own_step(ours, own_optimizer, rows, device, precision)
    their, own = curves
    assert their[-20:].mean() < their[0] / 3  # they learn
    error = np.abs(own - their) / their
    print(f"{precision}: at most {error.max():.1e} of the loss, at step {error.argmax()}")
    assert error.max() <= CURVE_TOLERANCE[precision]
