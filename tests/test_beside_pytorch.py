"""What PyTorch users write, by PyTorch and by rooflab on the CPU: python tests/test_beside_pytorch.py

Each line of beside_pytorch.txt, and of beside_pytorch_edges.txt, whose input is odd, gives the same in both.
`!!` means that rooflab refuses the line, with an error that says what follows; `??` that it differs on purpose, and
why. T is the library, F its nn.functional, S its optim.lr_scheduler; the other names are made by `names`.
"""

import contextlib
import copy
import math
import pickle
import warnings
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest

import rooflab as rl


def lines(name):
    """Each expression of a page, with "!!", "??" or nothing, and what follows that."""
    found = []
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            mark = next((mark for mark in ("!!", "??") if f" {mark} " in line), "")
            expression, _, told = line.partition(f" {mark} ") if mark else (line, "", "")
            found.append((expression.strip(), mark, told.strip()))
    return found


USUAL, EDGES = lines("beside_pytorch.txt"), lines("beside_pytorch_edges.txt")


def names(T):
    """What the expressions start from, made anew by the library T."""
    nn = T.nn
    x = T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    space = {"T": T, "nn": nn, "F": nn.functional, "S": T.optim.lr_scheduler, "np": np, "copy": copy, "pickle": pickle}
    space["math"] = math
    inf, nan = math.inf, math.nan

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(T.ones(3))

        def forward(self, x):
            return x * self.scale

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(T.ones(3))
            self.mask = T.ones(3, 3)
            self.register_buffer("table", T.zeros(2))
            self.register_buffer("index", T.arange(2))
            self.register_buffer("cache", T.zeros(2), persistent=False)
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x) * self.weight

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

    def filled(module):
        with T.no_grad():
            for parameter in module.parameters():
                parameter.copy_(T.arange(parameter.numel(), dtype=T.float32).reshape(parameter.shape) * 0.1)
        return module

    def grad(function):
        w = x.clone().requires_grad_()
        function(w).backward()
        return w.grad

    def hooked(hook):
        w = x.clone().requires_grad_()
        middle = w * 2
        handle = middle.register_hook(hook)
        w.register_hook(hook)
        (middle * middle).sum().backward()
        handle.remove()
        return w.grad

    def retained():
        w = x.clone().requires_grad_()
        middle = w * 2
        middle.retain_grad()
        (middle * middle).sum().backward()
        return middle.grad

    def nograd():
        with T.no_grad():
            return (x.clone().requires_grad_() * 2).requires_grad

    def trained(make):
        p = x.clone().requires_grad_()
        optimizer = make([p])
        for _ in range(3):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        return p.detach()

    def rates(make):
        optimizer = T.optim.AdamW([x.clone().requires_grad_()], lr=0.1)
        scheduler, found = make(optimizer), []
        for _ in range(7):
            found += [optimizer.param_groups[0]["lr"], scheduler.get_last_lr()[0]]
            scheduler.step()
        return found

    def applied():
        seen = []
        Net().apply(lambda module: seen.append(type(module).__name__))
        return seen

    def hooks():
        net, seen = filled(Net()), []
        first = net.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
        second = net.register_forward_hook(lambda module, args, y: seen.append(y.sum().item()) or y + 1)
        found = [net(x)]
        first.remove(), second.remove()
        return [*found, net(x), seen]

    def loose():
        net = Net()
        keys = net.load_state_dict({"weight": x[0], "other": x}, strict=False)
        return net.weight.detach(), keys.missing_keys, keys.unexpected_keys

    def ab():
        return nn.Sequential(OrderedDict(a=nn.Linear(1, 1), b=nn.Linear(1, 1)))

    def after(module, *changes):
        for change in changes:
            change(module)
        return list(module.state_dict()), [name for name, _ in module.named_children()]

    def cast_dtype():
        with T.autocast("cpu", dtype=T.bfloat16):
            return str((x @ x.T).dtype).removeprefix("torch.")

    def drawn():
        one, other = (T.Generator().manual_seed(5) for _ in range(2))
        p = T.ones(9)
        return T.multinomial(p, 4, generator=one).tolist() == T.multinomial(p, 4, generator=other).tolist()

    def gradof(w, function):
        w.requires_grad_()
        function(w).backward()
        return w.grad

    made = {
        one.__name__: one for one in (filled, grad, gradof, hooked, retained, nograd, trained, rates, applied, hooks)
    }
    made |= {one.__name__: one for one in (loose, ab, after, cast_dtype, drawn, Net, Tied)}
    return space | made | {
        "x": x, "y": x * 0.5 + 1, "z": T.arange(18, dtype=T.float32).reshape(2, 3, 3) * 0.1, "i": T.arange(3),
        "b": T.tensor([True, False, True]), "n": T.tensor([nan, inf, -inf, 1.5]),
    }  # fmt: skip


def plain(value):
    """A value in words that both libraries share."""
    if type(value).__module__.startswith(("torch", "rooflab")) and hasattr(value, "tolist"):
        return "tensor", tuple(value.shape), str(value.dtype).removeprefix("torch."), value.tolist()
    if isinstance(value, np.ndarray):
        return "array", value.shape, str(value.dtype), value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value if type(value) in (bool, int, float) else str(value)
    return str(value).removeprefix("torch.")


def alike(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=2e-5, abs_tol=2e-6) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


def given(expression, T):
    """What an expression gives, or its error."""
    T.manual_seed(0)
    try:
        with warnings.catch_warnings(), contextlib.suppress(SyntaxWarning):
            warnings.simplefilter("ignore")
            return plain(eval(expression, names(T)))
    except Exception as error:
        return error


def verdict(expression, torch):
    """How rooflab's result compares with PyTorch's, and both."""
    theirs, ours = given(expression, torch), given(expression, rl)
    if isinstance(ours, Exception):
        return "refused", (theirs, ours)
    if isinstance(theirs, Exception):
        return "only PyTorch refuses", (theirs, ours)
    return ("equal" if alike(theirs, ours) else "different"), (theirs, ours)


def is_as_marked(mark, told, found, ours):
    if mark == "!!":
        return found == "refused" and told in str(ours)
    return found in (("different", "only PyTorch refuses") if mark else ("equal",))


@pytest.mark.peer
@pytest.mark.parametrize(("expression", "mark", "told"), USUAL + EDGES)
def test_an_expression_is_equal_or_refused(expression, mark, told):
    torch = pytest.importorskip("torch", minversion="2.15", reason="PyTorch 2.15 is not installed")
    found, both = verdict(expression, torch)
    assert is_as_marked(mark, told, found, both[1]), (found, both)


@pytest.mark.parametrize("page", [USUAL, EDGES], ids=["usual", "edges"])
def test_an_expression_is_refused_where_that_is_said(page):
    wrong = {}
    for expression, mark, told in page:
        ours = given(expression, rl)
        if isinstance(ours, Exception) != (mark == "!!") or (mark == "!!" and told not in str(ours)):
            wrong[expression] = ours
    assert not wrong


def test_a_line_that_says_too_little_is_noticed():
    ours = given("x.norm()", rl)
    assert is_as_marked("!!", "write (x * x).sum().sqrt()", "refused", ours)
    for mark, told, found in (
        ("!!", "write x.sum()", "refused"),
        ("!!", "", "equal"),
        ("", "", "refused"),
        ("", "", "different"),
        ("??", "", "equal"),
        ("??", "", "refused"),
    ):
        assert not is_as_marked(mark, told, found, ours)
    assert all(told for _, mark, told in USUAL + EDGES if mark), "each mark says why"
    assert len({expression for expression, *_ in USUAL + EDGES}) == len(USUAL + EDGES), "no line is there twice"


def test_most_are_equal():
    assert len(USUAL) >= 489 and sum(not mark for _, mark, _ in USUAL) / len(USUAL) >= 400 / 489


if __name__ == "__main__":
    import torch

    counted = Counter()
    for each, mark, told in USUAL + EDGES:
        kind, both = verdict(each, torch)
        counted[kind] += 1
        if not is_as_marked(mark, told, kind, both[1]):
            print(f"{kind}: {each}\n    {both}")
    print(dict(counted))
