"""PyTorch's model beside rooflab's: the same loss, gradients and step from the same weights, so that times compare."""

import dataclasses
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import rooflab as rl
from rooflab.benchmark import lm, lm_peer, sweep
from rooflab.cli import main

TINY = rl.nn.TransformerConfig(64, 160, num_layers=2, num_heads=4, vocab_size=97)


def tiny(mode="both", **options):
    options = {"context_length": 24, "batch_size": 2, "warmup_steps": 1, "measure_steps": 2} | options
    return lm.Case("tiny", mode=mode, **options)


def test_a_meta_device_has_no_peer():
    with pytest.raises(ValueError, match="not on a meta device"):
        lm_peer.benchmark(tiny(device=rl.meta("H200")), config=TINY)


def test_a_peer_is_not_profiled(capsys):
    assert main(["bench", "lm", "--peer", "torch", "--profile", "--device", "cpu"]) == 2
    assert "--profile shows rooflab alone" in capsys.readouterr().err


def test_the_command_shows_a_peer_beside_its_row(monkeypatch, capsys):
    ours = lm.Result(lm.Case(device="cpu"), samples_ms=(2.0, 2.0), macs=10**9)
    rows = [ours, dataclasses.replace(ours, contender="torch", samples_ms=(3.0,), reason="why")]
    asked = []
    monkeypatch.setattr(sweep, "measure", lambda case, **options: asked.append(options["peer"]) or (rows, None))
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.11")
    assert main(["bench", "lm", "--peer", "torch", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert asked == ["torch"] and "torch 2.11" in out.splitlines()[0]
    assert "  torch: small B4 L128 forward" in out and "rooflab is 1.5 x as fast (why)" in out


class Full(Exception):
    """What PyTorch raises when it has no more memory."""


@pytest.fixture
def stand_in(monkeypatch):
    """Stand-ins for PyTorch: contenders that do nothing, and write down what they were made with."""
    made = []

    class Contender:
        parameters = TINY.num_parameters

        def __init__(self, case, config, ours=None, compiled=False):
            made.append((ours is not None, compiled))

        def prepare(self):
            return None

        def timed(self, prepared):
            return None

    cuda = SimpleNamespace(empty_cache=lambda: made.append("emptied"))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(OutOfMemoryError=Full, cuda=cuda))
    monkeypatch.setattr(lm_peer, "TorchStep", Contender)
    return made


def test_all_run_side_by_side_on_the_same_weights(stand_in):
    rows = lm_peer.benchmark(tiny(), config=TINY)
    assert stand_in == ["emptied", (True, False), (True, True)]
    assert [row.contender for row in rows] == ["rooflab", "torch", "torch.compile"]
    assert all(row.status == "ok" and len(row.samples_ms) == 2 and row.reason == "" for row in rows)
    assert len({row.macs for row in rows}) == 1 and [row.launches > 0 for row in rows] == [True, False, False]
    assert rows[0].samples_ms != rows[1].samples_ms


def test_without_room_for_all_each_runs_alone(stand_in, monkeypatch):
    contender = lm_peer.TorchStep
    monkeypatch.setattr(
        lm_peer,
        "TorchStep",
        lambda *args, **kwargs: full() if len(args) == 3 and args[2] else contender(*args, **kwargs),
    )

    def full(*args, **kwargs):
        raise Full("no room\nfor what")

    rows = lm_peer.benchmark(tiny(), config=TINY)
    assert [entry for entry in stand_in if entry != "emptied"] == [(False, False), (False, True)]
    assert [(row.contender, row.status) for row in rows] == [
        (name, "ok") for name in ("rooflab", "torch", "torch.compile")
    ]
    assert [row.reason[:14] for row in rows] == ["", "each contender", "each contender"]
    assert rows[1].macs == rows[0].macs and rows[1].launches == 0 and len(rows[1].samples_ms) == 2
    monkeypatch.setattr(lm_peer, "TorchStep", full)
    rows = lm_peer.benchmark(tiny(), config=TINY)
    assert [(row.contender, row.status, row.reason) for row in rows[1:]] == [
        (name, "out of memory", "no room") for name in ("torch", "torch.compile")
    ]
    assert rows[0].status == "ok" and rows[1].samples_ms == ()


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


def difference(ours, theirs):
    """Relative to the largest element: float32 roundings add up over some hundred additions per element."""
    ours, theirs = ours.detach().to("cpu").numpy(), theirs.detach().cpu().numpy()
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


@pytest.mark.peer
@pytest.mark.parametrize("options", [{}, {"attention": "flash"}, {"recompute": True}, {"mixed_precision": "bfloat16"}])
def test_both_compute_the_same(torch, device, options):
    case = tiny(device=device, **options)
    ours = lm.Step(case, TINY)
    theirs = lm_peer.TorchStep(case, ours.config, ours)
    assert theirs.parameters == ours.parameters == TINY.num_parameters
    # bfloat16: both round some ten results a layer by 2^-9 each, which add up like a random walk, twice since both do.
    tolerance = 2**-9 * 40**0.5 * 2 if case.mixed_precision else 1e-4
    with torch.no_grad():
        assert difference(ours.forward().to("float32"), theirs.logits().float()) < tolerance
    ours.timed(ours.prepare())
    theirs.timed(theirs.prepare())
    gradients = {name: parameter.grad for name, parameter in theirs.model.named_parameters()}
    for name, parameter in ours.model.named_parameters():
        assert difference(parameter.grad, gradients[name]) < 10 * tolerance, name


@pytest.mark.peer
def test_weights_are_shared_and_gradients_are_not(torch, device):
    case = tiny("train", device=device)
    ours = lm.Step(case, TINY)
    theirs = lm_peer.TorchStep(case, ours.config, ours)
    weight = ours.model.lm_head.weight
    before = weight.detach().to("cpu").numpy().copy()
    theirs.timed(theirs.prepare())
    rl.synchronize()
    assert weight.grad is None
    assert not np.array_equal(before, weight.detach().to("cpu").numpy())


@pytest.mark.peer
@pytest.mark.parametrize("mode", lm.MODES)
def test_each_mode_has_a_row_a_contender(torch, device, mode, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)  # what it compiles is tested by its own project
    rows = lm_peer.benchmark(tiny(mode, device=device), config=TINY)
    assert [row.contender for row in rows] == ["rooflab", "torch", "torch.compile"]
    assert all(row.status == "ok" and len(row.samples_ms) == 2 for row in rows)
    assert len({row.macs for row in rows}) == 1 and [row.launches > 0 for row in rows] == [True, False, False]
    if device != "cpu":
        assert all(row.peak_bytes > 4 * TINY.num_parameters for row in rows)
