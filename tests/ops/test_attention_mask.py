"""attention_mask: which keys a query sees."""

import pytest

import rooflab as rl
from rooflab.specs import attention as spec
from rooflab.testing import assert_close


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("q_length", "kv_length", "window"), [(5, 5, None), (3, 9, None), (9, 3, None), (7, 11, 3)])
def test_mask_shows_the_visible_keys(q_length, kv_length, window, is_causal, device):
    mask = rl.attention_mask(q_length, kv_length, is_causal=is_causal, window=window, device=device)
    assert_close(mask, spec.visible(q_length, kv_length, is_causal, window), rtol=0, atol=0)


def test_last_query_stands_beside_the_last_key():
    assert rl.attention_mask(2, 4).tolist() == [[True, True, True, False], [True] * 4]
