"""`rooflab train lm`: what it learns, writes and refuses, and that a run in pieces equals an uninterrupted one, to the
bit.
"""

import json
import os
import resource
from pathlib import Path

import numpy as np
import pytest

import rooflab as rl
from rooflab.cli import main
from rooflab.optim import AdamW
from rooflab.serialization import load_metadata
from rooflab.training import ByteText, LanguageModelTraining

SIZES = ["--d-model", "32", "--d-ff", "64", "--num-layers", "2", "--num-heads", "2", "--context-length", "16"]
TINY = [*SIZES, "--batch-size", "4", "--device", "cpu"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"the quick brown fox jumps over the lazy dog. " * 20)
    return path


def train(text, *options):
    return main(["train", "lm", str(text), *TINY, *map(str, options)])


def stop_at(monkeypatch, step, error=KeyboardInterrupt):
    """Do the step, and then stop the training."""
    advance = LanguageModelTraining.advance

    def stops(self):
        loss = advance(self)
        if self.step == step:
            raise error
        return loss

    monkeypatch.setattr(LanguageModelTraining, "advance", stops)


def test_it_learns_and_writes_what_it_did(text, tmp_path, capsys):
    report, plot, weights = (tmp_path / name for name in ("run.json", "curve.png", "w.safetensors"))
    files = ["--json", report, "--plot", plot, "--checkpoint", weights]
    assert train(text, "--steps", 60, "--every", 20, "--seed", 3, *files) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("900 bytes of text, on cpu; guessing has a loss of 5.545 nats a byte")
    assert [line.split()[1] for line in lines[1:]] == ["20", "40", "60"]
    run = json.loads(report.read_text(encoding="utf-8"))
    assert (run["d_model"], run["steps"], run["warmup"], run["seed"], run["device"]) == (32, 60, 6, 3, "cpu")
    losses = run["losses"]
    # Guessing one of 256 bytes costs log(256) = 5.5, and one of the 28 of the text 3.3.
    assert len(losses) == 60 and losses[0] > 5 and np.mean(losses[-5:]) < 3.3
    assert plot.read_bytes().startswith(b"\x89PNG")
    tensors = rl.load(weights)
    names = {name for name in tensors if name.startswith("model.")}
    assert len(names) == 9 * 2 + 3 and len(tensors) == 3 * len(names)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["curve.png", "run.json", "text.txt", "w.safetensors"]


def test_a_run_in_pieces_is_the_run_in_one_to_the_bit(text, tmp_path, monkeypatch, capsys):
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    assert train(text, "--steps", 7, "--every", 2, "--checkpoint", whole) == 0
    with monkeypatch.context() as patch:
        stop_at(patch, 5)
        assert train(text, "--steps", 7, "--every", 2, "--checkpoint", pieces) == 130
    streams = capsys.readouterr()
    assert streams.err == "Stopped.\n"
    assert streams.out.splitlines()[-1] == f"{pieces} holds step 4 of 7; --resume goes on from there"
    rl.rand(5)  # the state of the process does not matter
    assert train(text, "--steps", 7, "--every", 2, "--checkpoint", pieces, "--resume") == 0
    assert f"going on after step 4 of {pieces}" in capsys.readouterr().out
    assert whole.read_bytes() == pieces.read_bytes()
    assert json.loads(load_metadata(whole)["rooflab_training"])["step"] == 7


def test_a_finished_run_that_is_resumed_writes_its_results(text, tmp_path):
    report, plot, path = (tmp_path / name for name in ("run.json", "curve.png", "w"))
    options = ["--steps", 3, "--checkpoint", path]
    assert train(text, *options, "--json", report) == 0
    before = report.read_bytes()
    report.unlink()
    assert train(text, *options, "--json", report, "--plot", plot, "--resume") == 0
    assert report.read_bytes() == before and plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words", [["lm", "text.txt"], ["recall", "--num-layers", "1"]])
def test_a_seed_that_no_generator_takes_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        main(["train", *words, "--seed", str(2**64)])
    assert f"--seed: expected at most {2**64 - 1}, got" in capsys.readouterr().err


def test_seeds_and_attention_count(text, tmp_path):
    def losses(*options):
        path = tmp_path / "run.json"
        assert train(text, "--steps", 3, "--json", path, *options) == 0
        return json.loads(path.read_text(encoding="utf-8"))["losses"]

    first = losses()
    assert losses() == first == losses("--recompute")
    assert losses("--seed", 1) != first
    assert losses("--attention", "composed") == pytest.approx(first, rel=1e-4)  # float32, in another order
    mixed = losses("--mixed-precision")
    assert mixed != first and mixed == pytest.approx(first, rel=0.02)  # a few roundings by 2^-9


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_named_with_its_step(value, text, tmp_path, monkeypatch, capsys):
    loss, calls = rl.cross_entropy, []

    def broken(logits, targets):
        calls.append(1)
        return loss(logits, targets) * (value if len(calls) == 4 else 1)

    monkeypatch.setattr("rooflab.training.language_model._core.cross_entropy", broken)
    path = tmp_path / "w"
    assert train(text, "--steps", 9, "--every", 3, "--checkpoint", path, "--json", tmp_path / "j") == 1
    streams = capsys.readouterr()
    assert streams.err == f"rooflab train lm: the loss is {value} at step 4; try a lower learning rate\n"
    assert streams.out.splitlines()[-1] == f"{path} holds step 3 of 9; --resume goes on from there"
    kept = rl.load(path)
    assert all(rl.isfinite(tensor).all().item() for tensor in kept.values())
    assert json.loads(load_metadata(path)["rooflab_training"])["step"] == 3 and not (tmp_path / "j").exists()


def test_gradients_that_are_no_numbers_are_named_before_they_reach_the_weights(text, tmp_path, monkeypatch, capsys):
    clip, calls = rl.nn.utils.clip_grad_norm_, []

    def broken(parameters, max_norm):
        calls.append(1)
        parameters = list(parameters)
        if len(calls) == 4:
            parameters[0].grad[0, 0] = float("nan")
        return clip(parameters, max_norm)

    monkeypatch.setattr("rooflab.training.language_model.clip_grad_norm_", broken)
    path = tmp_path / "w"
    assert train(text, "--steps", 4, "--every", 3, "--checkpoint", path) == 1
    assert capsys.readouterr().err.endswith("the norm of the gradients is nan at step 4; try a lower learning rate\n")
    assert all(rl.isfinite(tensor).all().item() for tensor in rl.load(path).values())
    assert train(text, "--steps", 4, "--every", 3, "--checkpoint", path, "--resume") == 0


def test_weights_that_are_no_numbers_replace_no_checkpoint(text, tmp_path, capsys):
    path, options = tmp_path / "w", ["--steps", 1, "--warmup", 0]
    assert train(text, *options, "--checkpoint", path) == 0
    before = path.read_bytes()
    assert train(text, *options, "--checkpoint", path, "--lr", 1e300) == 1
    assert "has numbers that are not finite after step 1; try a lower" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_full_disk_leaves_the_last_checkpoint_whole(text, tmp_path, capsys):
    path = tmp_path / "w"
    assert train(text, "--steps", 4, "--every", 2, "--checkpoint", path) == 0
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))  # the write fails in the middle
    try:
        assert train(text, "--steps", 4, "--every", 2, "--checkpoint", path, "--seed", 1) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    streams = capsys.readouterr()
    assert streams.err == f"rooflab train lm: File too large: '{path}'\n"
    assert "holds step" not in streams.out.splitlines()[-1]  # it holds nothing of this run
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["text.txt", "w"]


def test_ctrl_c_while_writing_leaves_the_last_checkpoint_whole(text, tmp_path, monkeypatch, capsys):
    path, replace = tmp_path / "w", os.replace

    def stops(*names):
        if path.exists():
            raise KeyboardInterrupt
        replace(*names)

    monkeypatch.setattr("rooflab.files.os.replace", stops)
    options = ["--steps", 9, "--every", 2, "--checkpoint", path]
    assert train(text, *options) == 130
    says = f"{path} holds step 2 of 9; --resume goes on from there"  # not step 4, whose writing was stopped
    assert capsys.readouterr().out.splitlines()[-1] == says
    before = path.read_bytes()
    assert train(text, *options, "--resume") == 130  # in the middle of step 4's again
    assert capsys.readouterr().out.splitlines()[-1] == says
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 2
    assert train(text, *options, "--seed", 1) == 130
    assert "holds step" not in capsys.readouterr().out  # what it holds is no step of this training


def saved_again(change_tensors=dict, **change_about):
    """What damages a checkpoint in a file that is whole."""

    def damaged(raw):
        path = Path("damaged")
        path.write_bytes(raw)
        tensors, about = rl.load(path), json.loads(load_metadata(path)["rooflab_training"])
        rl.save(change_tensors(tensors), path, {"rooflab_training": json.dumps(about | change_about)})
        return path.read_bytes()

    return damaged


def with_moment(change):
    name = "optimizer.exp_avg_sq.lm_head.weight"
    return saved_again(lambda tensors: tensors | {name: change(tensors[name])})


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda raw: raw[: len(raw) // 2], "expected data within the file"),
        (lambda raw: raw[:100], "expected a safetensors file"),
        (lambda raw: b"", "expected a safetensors file, got 0 bytes"),
        (lambda raw: b"\x00" * 500, "expected a safetensors file"),
        (lambda raw: raw.replace(b"rooflab_training", b"rooflab_txaining"), "expected a checkpoint of a training"),
        (lambda raw: raw.replace(b'\\"step\\": 2', b'\\"step\\": 1'), "2 losses for 1 steps"),
        (lambda raw: raw.replace(b'"optimizer.exp_avg.lm_head', b'"optimizer.exp_avg.xm_head'), "got nothing"),
        (lambda raw: raw.replace(b'\\"step\\": 2', b'\\"step\\": 0'), "2 losses for 0 steps"),
        (saved_again(losses=["a", "b"]), "expected a checkpoint of a training"),
        (saved_again(losses=[1.0, float("nan")]), "expected a checkpoint of a training"),
        (with_moment(lambda moment: 3.0), "exp_avg_sq.lm_head.weight: expected (256, 32), got 3.0"),
        (with_moment(lambda moment: moment.to("int32")), "exp_avg_sq.lm_head.weight: expected (256, 32), got int32"),
        (with_moment(lambda moment: moment - 1), "expected squares, got numbers below 0"),
    ],
)
def test_a_damaged_checkpoint_is_refused(damage, says, text, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "w"
    assert train(text, "--steps", 2, "--checkpoint", path) == 0
    damaged = damage(path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    assert train(text, "--steps", 2, "--checkpoint", path, "--resume") == 2
    error = capsys.readouterr().err
    assert error.startswith("rooflab train lm: ") and says in error and error.count("\n") == 1
    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--d-model", 64], "d_model=32 there and 64 here"),
        (["--steps", 3], "steps=2 there and 3 here"),
        (["--seed", 7], "seed=0 there and 7 here"),
    ],
)
def test_the_checkpoint_of_another_training_is_refused(options, says, text, tmp_path, capsys):
    path = tmp_path / "w"
    assert train(text, "--steps", 2, "--checkpoint", path) == 0
    assert train(text, "--steps", 2, "--checkpoint", path, "--resume", *options) == 2
    assert "it belongs to another training" in (error := capsys.readouterr().err) and says in error
    text.write_bytes(b"another text, longer than a row of it")
    assert train(text, "--steps", 2, "--checkpoint", path, "--resume") == 2
    assert "text=" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--resume"], "--resume: expected --checkpoint too"),
        (["--resume", "--checkpoint", "absent.safetensors"], "absent.safetensors"),
        (["--checkpoint", "/"], "no file can be written: '/'"),
        (["--json", "absent/run.json"], "no file can be written: 'absent"),
        (["--plot", "absent/run.png"], "no file can be written: 'absent"),
        (["--d-model", "33"], "2 heads of one even size, got 33"),
        (["--warmup", "300"], "warmup: expected 0 to steps=200, got 300"),
        (["--model-size", "small"], "--model-size: expected no --d-model beside it"),
        (["--device", "tpu"], "tpu"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(options, says, text, capsys, monkeypatch):
    monkeypatch.setattr(LanguageModelTraining, "advance", None)  # nothing may be trained before the refusal
    assert train(text, *options) == 2
    error = capsys.readouterr().err
    assert error.startswith("rooflab train lm: ") and says in error and error.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"sixteen bytes .."])
def test_a_text_that_is_too_short_is_refused(content, text, capsys):
    text.write_bytes(content)
    assert train(text) == 2
    assert f"expected at least --context-length + 1 = 17 bytes, got {len(content)}" in capsys.readouterr().err
    text.unlink()
    assert train(text) == 2
    assert "text.txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--steps", "0", "expected a whole number of 1 or more"),
        ("--lr", "0", "expected a number above 0"),
        ("--lr", "nan", "expected a number above 0"),
        ("--clip", "inf", "expected a number above 0"),
        ("--weight-decay", "-1", "expected a number of 0 or more"),
        ("--weight-decay", "two", "expected a number of 0 or more"),
    ],
)
def test_numbers_that_are_none_are_refused(option, value, says, text, capsys):
    with pytest.raises(SystemExit) as stopped:
        train(text, f"{option}={value}")
    assert stopped.value.code == 2
    assert f"argument {option}: {says}, got {value!r}" in capsys.readouterr().err


def test_batches_are_rows_of_the_text():
    data = bytes(range(200))
    text = ByteText(data, context_length=30)
    tokens, targets = text.batch(seed=1, step=2, batch_size=500)
    for row, after in zip(tokens.tolist(), targets.tolist(), strict=True):
        assert bytes([*row, after[-1]]) in data and row[1:] == after[:-1]
    starts = {row[0] for row in tokens.tolist()}
    assert min(starts) == 0 and max(starts) == 169  # the last row ends with the text
    assert text.batch(1, 2, 500)[0].tolist() == tokens.tolist() != text.batch(1, 3, 500)[0].tolist()
    assert text.batch(2, 2, 500)[0].tolist() != tokens.tolist()


def test_learning_rates_rise_and_fall(text, monkeypatch):
    seen, step = [], AdamW.step

    def noted(self):
        seen.append(self.param_groups[0]["lr"])
        step(self)

    monkeypatch.setattr(AdamW, "step", noted)
    assert train(text, "--steps", 6, "--warmup", 2, "--lr", 0.01) == 0
    bend = 0.0045 * (1 - 2**-0.5)
    assert seen == pytest.approx([0.005, 0.01, 0.01 - bend, 0.0055, 0.001 + bend, 0.001])
