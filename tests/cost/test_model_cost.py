"""rl.cost.model: times by machine, memory, what it prints and writes, and what it refuses."""

import csv
import html.parser
import io
import json
import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from machine.made_up import ceilings

import rooflab as rl
from rooflab.cost import MODELS, Convention, Work
from rooflab.roofline import SPECS

LLAMA = MODELS["llama3-8b"]


def cost(model="llama3-8b", **asked):
    return rl.cost.model(model, **{"batch": 2, "length": 100, **asked})


@pytest.mark.parametrize("mode", ["prefill", "decode", "training"])
def test_times_follow_from_work_and_roofs(mode):
    machine = SPECS["H100"]
    found = cost(mode=mode, hardware="H100")
    assert found.machine is machine
    for part in (*found.parts, found.total):
        assert part.compute_s == pytest.approx(part.work.flops / 989.4e12)
        assert part.memory_s == pytest.approx(part.work.bytes / 3.35e12)
        assert part.seconds == max(part.compute_s, part.memory_s)
        assert part.bound == rl.roofline.bound(machine, max(part.work.arithmetic_intensity, 1e-9), "float16")
    assert found.total.work == sum((part.work for part in found.parts), rl.cost.Work())
    assert found.total.seconds <= sum(part.seconds for part in found.parts)


def test_measured_ceilings_are_a_machine():
    measured = ceilings()
    found = cost("gpt2", dtype="float32", hardware=measured)
    assert found.total.memory_s == pytest.approx(found.total.work.bytes / measured.bandwidth_tb_s / 1e12)
    assert found.memory_bytes is None and found.largest_batch is None


def test_without_a_machine_there_are_no_times():
    found = cost()
    assert (found.total.seconds, found.total.bound, found.largest_batch) == (None, None, None)
    assert "compute" not in str(found)
    with pytest.raises(ValueError, match="no machine"):
        found.plot()


def test_the_largest_batch_fits_and_one_more_does_not():
    found = cost(length=4096, mode="decode", hardware="H100")
    weights, one = 2 * LLAMA.parameters, 4096 * 131072
    assert found.weight_bytes == weights and found.cache_bytes == 2 * one
    assert weights + found.largest_batch * one <= 80e9 < weights + (found.largest_batch + 1) * one
    assert cost("llama3-70b", hardware="H100").largest_batch == 0
    assert cost(mode="training", hardware="H100").largest_batch is None


def test_sliding_layers_see_their_window_only():
    full = replace(LLAMA, window=0, sliding_layers=0)
    sliding = replace(LLAMA, window=128, sliding_layers=32)
    short, long = ({"length": length, "mode": "decode"} for length in (128, 4096))
    assert cost(sliding, **short).total.work == cost(full, **short).total.work
    assert cost(sliding, **long).total.work == cost(sliding, **short).total.work
    assert cost(sliding, **long)["attention"].work.macs * 32 == cost(full, **long)["attention"].work.macs
    prefill = cost(sliding, length=1000)["attention"].work.macs
    pairs = 128 * 129 // 2 + (1000 - 128) * 128
    assert prefill == 32 * 2 * 32 * pairs * 2 * 128  # layers, texts, heads, pairs, two products of D_h
    composed = cost(sliding, length=1000, attention="composed")["attention"].work.macs
    assert composed == 32 * 2 * 32 * 1000**2 * 2 * 128


def test_grouped_queries_share_their_keys():
    """8 times fewer bytes of keys and values, the same arithmetic."""
    grouped, alone = cost(length=4096, mode="decode"), cost(replace(LLAMA, kv_heads=32), length=4096, mode="decode")
    assert grouped["attention"].work.flops == alone["attention"].work.flops
    q_and_out = 32 * 2 * 2 * 4096 * 2
    assert (alone["attention"].work.bytes - q_and_out) == 4 * (grouped["attention"].work.bytes - q_and_out)


def test_experts_that_a_token_meets():
    mixtral = MODELS["mixtral-8x7b"]
    dense = replace(mixtral, experts=0, experts_per_token=0)
    for batch, experts in ((1, 2), (3, 6), (4, 8), (100, 8)):
        found = cost(mixtral, batch=batch, mode="decode")["MLP"].work
        assert found.macs == 2 * cost(dense, batch=batch, mode="decode")["MLP"].work.macs
        weights = 32 * experts * 3 * 4096 * 14336 * 2
        assert 0 <= found.bytes_read - weights < 32 * 2 * batch * (4096 + 3 * 14336) * 2 + 1


def test_totals_beyond_64_bits_are_exact():
    many = replace(LLAMA, layers=10**15)
    one = cost(replace(LLAMA, layers=1))["MLP"].work
    found = cost(many)["MLP"].work
    assert found == one * 10**15 == 10**15 * one and found.flops > 2**63
    assert Work(flops=10**400, bytes_read=1).arithmetic_intensity == math.inf


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"model": "llama9"}, "model: expected a ModelSpec or one of gpt2, .*; got 'llama9'"),
        ({"model": 3}, "model: expected a ModelSpec .*; got 3"),
        ({"batch": 0}, "batch: expected a whole number from 1 to 2\\^63 - 1, got 0"),
        ({"batch": 2.0}, "batch: expected a whole number, got 2.0"),
        ({"batch": True}, "batch: expected a whole number, got True"),
        ({"length": 2**63}, "length: expected a whole number from 1 to .*, got 9223372036854775808"),
        ({"length": None}, "length: expected a whole number, got None"),
        ({"length": 2**40}, "llama3-8b, batch=2, length=1099511627776: an op would count more than 2\\^63"),
        ({"batch": 2**60}, "llama3-8b, batch=.*: an op would count more than 2\\^63"),
        ({"batch": 2**50, "mode": "decode"}, "llama3-8b, batch=.*: an op would count more than 2\\^63"),
        ({"mode": "encode"}, "mode: expected one of prefill, decode, training; got 'encode'"),
        ({"dtype": "int8"}, "dtype: expected one of float16, bfloat16, float32, float64; got 'int8'"),
        ({"attention": "flash"}, "attention: expected one of fused, composed; got 'flash'"),
        ({"hardware": "H101"}, "hardware: expected a datasheet, measured ceilings or one of A6000, .*; got 'H101'"),
        ({"hardware": 5}, "hardware: expected a datasheet, .*; got 5"),
        ({"hardware": "T4", "dtype": "bfloat16"}, "hardware: T4 has no bfloat16 peak; it has float32, .*"),
        ({"convention": "analysis"}, "convention: expected a Convention, got 'analysis'"),
        ({"model": "gpt2", "length": 1025}, "length: gpt2 has positions for 1024 tokens, got 1025"),
    ],
)
def test_what_does_not_fit_is_one_sentence(asked, sentence):
    with pytest.raises(ValueError, match=rf"^\[cost\] {sentence}$"):  # . is no line break
        cost(**asked)


@pytest.mark.parametrize("mode", ["prefill", "training"])
@pytest.mark.parametrize("attention", ["fused", "composed"])
def test_no_count_is_silently_too_large(mode, attention):
    """For the longest text that is not refused, each number equals the one in Python's integers."""
    spec = replace(LLAMA, layers=1, d_ff=64, vocabulary=64)
    length = 2**20
    while True:
        try:
            longest = cost(spec, batch=1, length=length, mode=mode, attention=attention)
        except ValueError:
            break
        length *= 2
    assert length > 2**21
    assert all(min(vars(step.work).values()) >= 0 for step in longest.total.steps)
    scores = 32 * (length // 2) ** 2
    pairs = (scores + 32 * (length // 2)) // 2 if attention == "fused" else scores
    forward = sum(step.work.macs for step in longest["attention"].steps if "backward" not in step.name)
    assert forward == pairs * 2 * 128


def test_numpy_sizes_are_as_good_as_pythons():
    assert cost(batch=np.int64(2), length=np.uint16(100)).to_dict() == cost().to_dict()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"softmax_flops": -1}, "softmax_flops: expected a whole number from 0"),
        ({"gelu_flops": 1.5}, "gelu_flops: expected a whole number, got 1.5"),
        ({"scale": "none"}, "scale: expected one of own, fused, free; got 'none'"),
        ({"bias": "free"}, "bias: expected one of own, fused; got 'free'"),
        ({"causality_saves": 1}, "causality_saves: expected True or False, got 1"),
        ({"left_out": ("mlp",)}, "left_out: expected one of embedding, norms, .*; got 'mlp'"),
        ({"left_out": "norms"}, "left_out: expected a tuple of names, got 'norms'"),
    ],
)
def test_a_convention_refuses_what_it_does_not_know(change, sentence):
    with pytest.raises(ValueError, match=rf"^\[cost\] convention: {sentence}"):
        Convention(**change)


def test_each_choice_of_a_convention_changes_what_it_says():
    def work(part="attention", model="gpt2", attention="composed", **choice):
        return cost(model, attention=attention, convention=Convention(**choice))[part].work

    scores, n, layers = 2 * 12 * 100**2, 2, 12
    usual = work()
    assert usual.flops - work(softmax_flops=3).flops == layers * 2 * scores
    assert work(softmax_passes=3).bytes - usual.bytes == layers * 2 * 2 * n * scores
    assert usual.bytes - work(scale="fused").bytes == layers * 2 * n * scores
    assert usual.flops == work(scale="fused").flops == work(scale="free").flops + layers * scores
    assert work(mask_flops=1).flops - usual.flops == layers * scores
    assert usual.bytes - work(mask_matrix=False).bytes == layers * 100**2
    hidden = 2 * 100 * 3072
    assert work("MLP").flops - work("MLP", gelu_flops=1).flops == layers * 7 * hidden
    silu = work("MLP", "llama3-8b"), work("MLP", "llama3-8b", gelu_flops=1)
    assert silu[0] == silu[1]
    tokens, size = 2 * 100, 768
    assert work("MLP").bytes - work("MLP", bias="fused").bytes == layers * 2 * n * tokens * 5 * size
    assert work("MLP").flops == work("MLP", bias="fused").flops
    assert work("projections", reread_inputs=True).bytes - work("projections").bytes == layers * 2 * n * tokens * size
    fused = {"attention": "fused"}
    full, causal = (work(**fused, causality_saves=saves).macs for saves in (False, True))
    assert full == layers * scores * 2 * 64 and causal * 2 == full + layers * 2 * 12 * 100 * 2 * 64
    assert work(**fused, scale="fused").flops - work(**fused).flops == causal // (2 * 64)
    names = {part.name for part in cost("gpt2", convention=Convention(copies_into_cache=False)).parts}
    assert {part.name for part in cost("gpt2").parts} - names == {"KV cache"}
    for left_out, part in (("embedding", "embedding"), ("norms", "norms"), ("rope", "rope"), ("head", "head")):
        names = {part.name for part in cost(convention=Convention(left_out=(left_out,))).parts}
        assert {part.name for part in cost().parts} - names == {part}
    training = {part.name for part in cost(mode="training", convention=Convention(left_out=("loss",))).parts}
    assert {part.name for part in cost(mode="training").parts} - training == {"loss"}
    steps = {step.name for step in cost(convention=Convention(left_out=("activation",)))["MLP"].steps}
    assert steps == {"product in", "product out"}


# --- what it shows ---


class Cells(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.texts, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_the_table_and_the_page_say_the_same():
    found = cost(hardware="H100", mode="decode")
    lines = str(found).splitlines()
    assert lines[0] == (
        "llama3-8b, decode, batch 2, length 100, float16, fused attention, runtime convention, on H100 SXM"
    )
    assert lines[2].split() == ["part", "MACs", "FLOPs", "bytes", "FLOP/byte", "compute", "memory", "bound"]
    shown = [line.split("  ")[0] for line in lines[3 : 3 + len(found.parts) + 1]]
    assert shown == [*(part.name for part in found.parts), "total"]
    assert "8,030,261,248 parameters, 16.1 GB; KV cache: 131,072 B a token, 26.2 MB for the batch" in lines
    room = int((80e9 - 2 * 8030261248) / (100 * 131072))
    assert "memory binds: at least" in str(found) and f"the largest batch of this length: {room}" in str(found)
    texts = Cells(found._repr_html_()).texts
    assert found.title in texts and {"MLP", "total", "memory"} <= set(texts)
    assert len(set(map(len, lines[2:3]))) == 1 and max(map(len, lines[:13])) < 110
    name = Cells(cost(replace(LLAMA, name="<b>"))._repr_html_()).texts[0]
    assert name.startswith("<b>,")


def test_json_and_csv_hold_the_exact_numbers():
    found = cost(hardware="H100")
    data = json.loads(json.dumps(found.to_dict()))
    assert data["model"]["layers"] == 32 and data["machine"] == "H100 SXM" and data["kv_bytes_per_token"] == 131072
    assert [part["part"] for part in data["parts"]] == [part.name for part in found.parts]
    assert sum(part["flops"] for part in data["parts"]) == data["total"]["flops"] == found.total.work.flops
    assert all(sum(s["flops"] for s in part["steps"]) == part["flops"] for part in data["parts"])
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["part"] for row in rows] == [*(part.name for part in found.parts), "total"]
    assert int(rows[-1]["bytes_read"]) == found.total.work.bytes_read
    assert float(rows[-1]["compute_s"]) == found.total.compute_s
    alone = list(csv.DictReader(io.StringIO(cost().to_csv())))
    assert alone[-1]["compute_s"] == "" and "bound" in alone[-1]


def test_a_part_that_is_not_there_is_named():
    with pytest.raises(KeyError, match="'mlp' is none of embedding, norms"):
        cost()["mlp"]
    with pytest.raises(FrozenInstanceError):
        cost().batch = 3


def test_the_readers_counters_are_not_touched(no_garbage):
    """A cost leaves no memory behind, and leaves gradients as they were."""
    before = rl.memory.allocated("meta")
    with rl.no_grad():
        cost(mode="training")
        assert not rl.is_grad_enabled()
    cost()
    assert rl.is_grad_enabled() and rl.memory.allocated("meta") == before
