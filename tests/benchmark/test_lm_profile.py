"""Profiles of a language model's step: passes, classes, the kernel that leads; Lab 2's counts of products."""

import pytest

import rooflab as rl
from rooflab.benchmark import lm, lm_profile
from rooflab.cli import main

H200 = rl.meta("H200")
SEED = 1  # the gradient of the loss is filled before the range "backward" opens


def test_a_pass_adds_up_by_hand():
    x, w = (rl.empty(1024, 1024, device=H200) for _ in range(2))
    with rl.profile() as prof:
        x @ w  # part of a step that does not count
        prof.step()
        with rl.range("measurement"), rl.range("forward"):
            for _ in range(3):
                x @ w
            x + 1
            rl.softmax(x)
        with rl.range("optimizer"):
            x + 1
        x + 1  # in no pass
    forward, optimizer = lm_profile.passes(prof)
    product, stream = 2 * 1024**3 / 67e12 * 1e3, 2 * 4 * 1024**2 / 4.8e12 * 1e3  # ms
    assert (forward.name, optimizer.name) == ("forward", "optimizer")
    assert (forward.launches, forward.instances) == (5, 3)
    assert list(forward.classes) == ["gemm", "elementwise", "softmax"]
    assert forward.classes["gemm"] == forward.kernel_ms == pytest.approx(3 * product)
    assert forward.busy_ms == pytest.approx(3 * product + 2 * stream)
    assert forward.range_ms == pytest.approx(forward.busy_ms + 4 * 2e-3)
    assert forward.share("gemm") == pytest.approx(3 * product / forward.busy_ms)
    assert forward.share("optimizer") == 0
    assert forward.kernel.endswith("(matmul)")
    assert optimizer.share("elementwise") == 1 and optimizer.range_ms == pytest.approx(stream)
    assert "most in matmul_" in str(forward) and "gemm 9" in str(forward)


@pytest.mark.parametrize(("size", "layers"), [("small", 12), ("2.7B", 32)])
def test_products_of_a_step(size, layers):
    """9n + 1 in a forward and 18n + 2 in a backward."""
    result = lm.benchmark(lm.Case(size, mode="train", device=H200), profile=True)
    forward, backward, optimizer = result.profile
    assert [one.name for one in result.profile] == ["forward", "backward", "optimizer"]
    assert (forward.instances, backward.instances) == (9 * layers + 1, 18 * layers + 2)
    assert forward.share("gemm") > 0.8 and optimizer.share("gemm") == 0
    assert sum(one.launches for one in result.profile) == result.launches - SEED
    assert result.profiled_ms == result.median_ms


def test_a_backward_alone_has_no_forward():
    result = lm.benchmark(lm.Case("small", mode="backward", device=H200), profile=True)
    assert [one.name for one in result.profile] == ["backward"]


def test_a_measured_step_is_profiled_apart():
    tiny = rl.nn.TransformerConfig(32, 64, num_layers=2, num_heads=2, vocab_size=50)
    case = lm.Case("tiny", context_length=16, mode="both", warmup_steps=1, measure_steps=2)
    result = lm.benchmark(case, config=tiny, profile=True)
    assert len(result.samples_ms) == 2 and result.profiled_ms > 0
    assert sum(one.launches for one in result.profile) == result.launches - SEED
    plain = lm.benchmark(case, config=tiny)
    assert plain.profile == () and plain.profiled_ms == 0 and plain.launches == result.launches


def test_the_command_prints_both_and_measures_again_what_a_file_lacks(capsys, tmp_path):
    command = ["bench", "lm", "--device", "meta:H200", "--mode", "both", "--json", str(tmp_path / "rows.json")]
    assert main(command) == 0
    assert "busy" not in capsys.readouterr().out
    for _ in range(2):  # the second time, the rows come from the file
        assert main([*command, "--profile"]) == 0
        out = capsys.readouterr().out
        assert "  forward    " in out and "most in matmul_" in out and "the profiled step took" not in out
    assert main([*command, "--memory"]) == 0
    out = capsys.readouterr().out
    assert "peak" in out and "saved activations" in out and out.count("the same") == 6
    assert "busy" not in out
