"""`rl.device`: a text with parts."""

import pytest

import rooflab as rl


def test_a_device_is_a_text_with_parts():
    x = rl.ones(2)
    assert x.device == "cpu" and x.device.type == "cpu" and x.device.index is None and isinstance(x.device, str)
    assert x.device is rl.zeros(1).device and x.to(rl.device("cpu")).device == "cpu"
    assert rl.device("cuda", 1) == "cuda:1" and rl.device("cuda:1").index == 1 and rl.device("cuda").index is None
    meta = rl.empty(1, device=rl.meta("H200")).device
    assert (
        meta == "meta:H200" and meta.type == "meta" and meta.index is None and rl.empty(1, device=meta).device == meta
    )
    assert not x.is_cuda and f"{x.device}" == "cpu"
    with pytest.raises(TypeError, match="expected a text"):
        rl.device(3)
