"""The memory of a language model's step: formulas to the byte, phases that add up, and the sheet's figures of Lab 2."""

import dataclasses

import pytest

import rooflab as rl
from rooflab.benchmark import lm, lm_memory, sweep

H200 = rl.meta("H200")
TINY = rl.nn.TransformerConfig(32, 64, num_layers=2, num_heads=2, vocab_size=50)
LENGTHS = (128, 256, 512, 1024)


def case(size="small", length=128, mode="train", **options):
    return lm.Case(size, length, mode=mode, **({"device": H200} | options))


@pytest.mark.slow(size=["medium", "large", "xl"])
@pytest.mark.parametrize("attention", ["composed", "flash"])
@pytest.mark.parametrize("size", rl.nn.TRANSFORMER_SIZES)
def test_the_formula_is_right_to_the_byte(size, attention):
    for length in LENGTHS if attention == "composed" else (128, 1024):
        memory = lm_memory.measure(case(size, length, attention=attention))
        assert memory.counted == memory.predicted, length


@pytest.mark.parametrize("attention", ["composed", "flash"])
def test_blocks_that_are_recomputed_keep_their_input(attention):
    mixed = lm_memory.measure(case("small", 256, attention=attention, recompute=True, mixed_precision="bfloat16"))
    assert mixed.counted == mixed.predicted
    memory = lm_memory.measure(case("small", 256, attention=attention, recompute=True))
    assert memory.counted == memory.predicted
    assert memory.counted["saved activations"] == (12 + 2) * 4 * 4 * 256 * 768
    assert memory.peak_bytes < lm_memory.measure(case("small", 256, attention=attention)).peak_bytes


@pytest.mark.parametrize("device", ["cpu", H200])
@pytest.mark.parametrize("mode", lm.MODES)
def test_and_so_it_is_in_every_mode_and_on_every_device(mode, device):
    memory = lm_memory.measure(case("tiny", 16, mode, batch_size=2, device=device), config=TINY)
    assert memory.counted == memory.predicted
    names = {"inference": 1, "forward": 1, "backward": 2, "both": 2, "train": 3}
    assert [phase.name for phase in memory.phases] == ["forward", "backward", "optimizer"][: names[mode]]
    assert bool(memory.counted["saved activations"]) == (mode != "inference")
    assert bool(memory.counted["gradients"]) == (mode in ("backward", "both", "train"))


def test_bytes_of_a_layer_are_those_of_the_sheet():
    """2.7B, composed: 108, 232, 528 and 1312 MiB a layer; the residual tensor is 5, 10, 20 and 40 MiB."""
    for length, mib, residual in zip(LENGTHS, (108, 232, 528, 1312), (5, 10, 20, 40), strict=True):
        saved = lm_memory.predicted(case("2.7B", length))["saved activations"]
        assert saved == (32 * mib + 2 * residual) * 2**20
    weights = lm_memory.predicted(case("2.7B"))
    assert weights["parameters"] == weights["gradients"] == weights["optimizer state"] // 2 == 4 * 3_406_809_600


@pytest.mark.parametrize("mode", ["inference", "both", "train"])
def test_peaks_are_those_that_the_allocator_saw(mode):
    wanted = case("small", 256, mode)
    memory = lm_memory.measure(wanted)
    work = lm.Step(wanted)
    if mode == "train":
        work.timed(work.prepare())
    work.prepare()
    rl.memory.reset_peak(H200)
    work.timed(None)
    assert memory.peak_bytes == rl.memory.peak(H200)
    assert memory.peak_bytes == max(phase.peak_bytes for phase in memory.phases)
    for phase in memory.phases:
        assert sum(phase.classes.values()) == phase.peak_bytes >= phase.end_bytes
        assert set(phase.classes) <= set(lm_memory.CLASSES)


def test_the_peak_moves_from_the_gradients_to_the_activations():
    """A step's peak holds the gradients as long as the activations A take less than 4N bytes, then the activations."""
    for length in (128, 1024):
        memory = lm_memory.measure(case("2.7B", length))
        counted, peak = memory.counted, max(memory.phases, key=lambda phase: phase.peak_bytes)
        kinds = ("gradients", "saved activations")
        assert (counted[kinds[1]] < counted[kinds[0]]) == (length == 128)
        assert max(kinds, key=lambda kind: peak.classes.get(kind, 0)) == kinds[length == 1024]
        bound = counted["parameters"] + counted["optimizer state"] + max(counted[kind] for kind in kinds)
        assert bound <= peak.peak_bytes < 1.05 * bound  # max(12N + A, 16N), and what a pass works with


@pytest.mark.parametrize("attention", ["composed", "flash"])
@pytest.mark.parametrize("mode", lm.MODES)
def test_autocast_keeps_copies_of_the_weights_and_halves_operands_of_products(mode, attention):
    for length in (128, 512):
        memory = lm_memory.measure(case("small", length, mode, attention=attention, mixed_precision="bfloat16"))
        assert memory.counted == memory.predicted
    weights = 128_625_408 - 10_000 * 768 - 25 * 768
    assert memory.counted["weight copies"] == 2 * weights


def test_what_a_phase_holds():
    memory = lm_memory.measure(case("small", 256))
    forward, backward, optimizer = memory.phases
    counted = memory.counted
    for phase in memory.phases:
        assert phase.classes["parameters"] == counted["parameters"]
        assert phase.classes["optimizer state"] == counted["optimizer state"]
    assert "gradients" not in forward.classes
    assert optimizer.classes["gradients"] == counted["gradients"]
    assert "saved activations" not in optimizer.classes and "logits" not in optimizer.classes
    assert backward.end_bytes == optimizer.peak_bytes == optimizer.end_bytes, "AdamW works in place"
    tables = 4 * (256 * 256 + 2 * 256 * 64) + 2 * 8 * 4 * 256  # mask, cos and sin; tokens and targets
    assert {phase.classes["constants"] for phase in memory.phases} == {tables}


def test_what_was_held_before_stays_apart():
    kept = rl.zeros(1000, device=H200)
    memory = lm_memory.measure(case("small", mode="inference"))
    assert memory.phases[0].classes["held before"] == rl.memory.allocated(H200) == kept.nbytes
    assert sum(memory.phases[0].classes.values()) == memory.phases[0].peak_bytes


@pytest.mark.parametrize(("length", "ffn", "scores"), [(128, 20, 8), (256, 40, 32), (512, 80, 128)])
def test_the_largest_blocks_of_a_forward(length, ffn, scores):
    """2.7B: FFN tensors lead up to L = 320 = I / H, then the scores do; the logits are 19.5, 39.1 and 78.1 MiB."""
    memory = lm_memory.measure(case("2.7B", length, "forward"))
    blocks = [(block.bytes / 2**20, block.count, block.op, block.range) for block in memory.largest]
    assert blocks[0][0] == max(ffn, scores)
    assert (ffn, 64, "matmul", "forward/block_*/ffn") in blocks
    assert (scores, 32, "softmax", "forward/block_*/self_attention/attention_softmax") in blocks or length == 128
    assert (4 * 4 * length * 10000 / 2**20, 1, "matmul", "forward/head") in blocks
    assert len(blocks) == 10 and [size for size, *_ in blocks] == sorted((size for size, *_ in blocks), reverse=True)
    kinds = {block.range: block.kind for block in memory.largest}
    assert kinds["forward/block_*/ffn"] == "saved activations" and kinds["forward/head"] == "logits"


def test_blocks_that_kernels_work_in_are_workspace():
    memory = lm_memory.measure(case("small", 1024, "both", attention="flash"))
    found = {(block.op, block.count) for block in memory.largest if block.kind == "workspace"}
    assert ("attention_backward", 12) in found


def test_the_text_says_where_a_formula_fails():
    memory = lm_memory.measure(case("tiny", 16), config=TINY)
    assert "predicted" not in str(memory) and str(memory).count("the same") == 6
    wrong = dataclasses.replace(memory, predicted=memory.predicted | {"logits": 7})
    assert "B  predicted 7" in str(wrong)


def test_nothing_is_held_afterwards():
    before = rl.memory.allocated("cpu")
    memory = lm_memory.measure(case("tiny", 16, device="cpu"), config=TINY)
    assert rl.memory.allocated("cpu") == before
    assert [phase.name for phase in memory.timeline.phases].count("forward") == 2


def test_a_row_holds_its_memory():
    (result,), memory = sweep.measure(case(), memory=True)
    assert result.memory == {phase.name: phase.classes for phase in memory.phases}
    assert sweep.measure(case(), memory=False)[1] is None
    assert result.largest == tuple(memory.largest)


def test_what_a_case_needs_that_does_not_fit_is_counted(monkeypatch):
    (full,), memory = sweep.measure(case("xl", 1024, device=rl.meta("A100 SXM 40GB")), memory=True)
    assert full.status == lm.OUT_OF_MEMORY and memory.peak_bytes > 40e9
    assert full.memory == {phase.name: phase.classes for phase in memory.phases}
    monkeypatch.setattr(lm, "benchmark", lambda case, **options: lm.Result(case, status=lm.OUT_OF_MEMORY))
    before = rl.memory.allocated("cpu")
    (full,), memory = sweep.measure(case("small", 128, device="cpu"), memory=True)
    assert memory.case.device.startswith("meta") and full.case.device == "cpu" and full.memory
    assert rl.memory.allocated("cpu") == before


def test_sizes_are_named_by_their_formula():
    step = case("2.7B", 512, mixed_precision="bfloat16")
    names = lm_memory.size_formulas(step, lm.config_of(step))
    assert (names[80 * 2**20], names[40 * 2**20], names[10 * 2**20]) == ("4 B L I", "2 B L I", "2 B L D")
    assert names[4 * 4 * 32 * 512 * 512] == "4 B H L^2" and names[2 * 10000 * 2560] == "2 V D"
    memory = lm_memory.measure(case("2.7B", 512, "forward"))
    assert [block.formula for block in memory.largest[:2]] == ["4 B H L^2"] * 2
    assert "128.0 MiB = 4 B H L^2" in str(memory)
