"""attention that is told on the device how many keys there are: the same as with k and v sliced to that many."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import unit_roundoff

OPTIONS = ({}, {"is_causal": True}, {"is_causal": True, "window": 3}, {"window": 70})
LENGTHS = (0, 1, 5, 64, 130, 200, 999)  # there are 200 keys; a larger number means all of them


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_every_rung_ends_where_it_is_told(dtype, queries, device):
    q = rl.randn(2, 4, queries, 64, dtype=dtype, device=device)
    k, v = (rl.randn(2, 2, 200, 64, dtype=dtype, device=device) for _ in "kv")
    ran = set()
    for length in LENGTHS:
        held = rl.tensor([length], device=device)
        for options in OPTIONS:
            sliced = rl.attention(q, k[:, :, :length], v[:, :, :length], variant="v0_composed", **options)
            expected = sliced.float().cpu().numpy() if length else np.zeros(q.shape, np.float32)
            for variant in [*(rung.name for rung in rl.variants("attention", device)), ""]:
                try:
                    found = rl.attention(q, k, v, kv_length=held, variant=variant, **options)
                except ValueError as error:
                    if variant and "does not accept these operands" in str(error):
                        continue
                    raise
                ran.add(variant)
                label = f"{variant or 'default'}, {length} keys, {options}"
                atol = 16 * max(unit_roundoff(dtype), 2.0**-24)
                np.testing.assert_allclose(found.float().cpu().numpy(), expected, rtol=0, atol=atol, err_msg=label)
    assert {"", "v0_composed"} <= ran
    assert len(ran) > 2 or dtype == "float64"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_replay_sees_what_has_come_since(dtype, device):
    q = rl.randn(1, 4, 1, 64, dtype=dtype, device=device)
    k, v = (rl.randn(1, 1, 300, 64, dtype=dtype, device=device) for _ in "kv")
    held = rl.tensor([0], device=device)
    graph = rl.Graph(device=device)
    with graph.capture():
        held += 97
        out = rl.attention(q, k, v, kv_length=held)
    for length in (97, 194, 291, 300):
        graph.replay()
        expected = rl.attention(q, k[:, :, :length], v[:, :, :length]).float().cpu().numpy()
        np.testing.assert_allclose(out.float().cpu().numpy(), expected, rtol=0, atol=16 * unit_roundoff(dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_what_lies_past_the_last_key_is_not_seen(dtype, device):
    q, held = rl.randn(1, 2, 3, 64, dtype=dtype, device=device), rl.tensor([70], device=device)
    k, v = (rl.randn(1, 1, 200, 64, dtype=dtype, device=device) for _ in "kv")
    for rung in ("", *(rung.name for rung in rl.variants("attention", device))):
        try:
            expected = rl.attention(q, k, v, kv_length=held, variant=rung)
            wrong = [x.clone() for x in (k, v)]
            for x in wrong:
                x[:, :, 70:] = float("nan")
            found = rl.attention(q, *wrong, kv_length=held, variant=rung)
        except ValueError as error:
            assert rung and "does not accept these operands" in str(error)
            continue
        assert found.tolist() == expected.tolist(), rung


def test_what_does_not_fit_is_refused():
    q, k = rl.zeros(1, 1, 1, 4), rl.zeros(1, 1, 5, 4)
    for wrong in (rl.tensor([2.0]), rl.tensor([1, 2]), rl.tensor([1], dtype="int32")):
        with pytest.raises(ValueError, match=r"\[attention\] kv_length: expected one int64 number"):
            rl.attention(q, k, k, kv_length=wrong)
    for variant in ("", "v0_composed"):
        with pytest.raises(ValueError, match="no gradient goes through it"):
            rl.attention(q.requires_grad_(), k, k, kv_length=rl.tensor([1]), variant=variant)
