"""Copies, conversions and pickles of parts of Gemma 3 that are not as the library makes them now."""

import copy
import pickle

import pytest
from nn.gemma3_reference import SMALL

from rooflab.nn import Gemma3MLP, KVCache, RotaryEmbedding


@pytest.mark.parametrize("drop", [lambda mlp: delattr(mlp, "gate_proj"), lambda mlp: setattr(mlp, "gate_proj", None)])
def test_a_layer_that_lacks_a_projection_is_converted_and_copied(drop):
    mlp = Gemma3MLP(SMALL, dtype="float32")
    drop(mlp)
    for made in (copy.deepcopy(mlp), pickle.loads(pickle.dumps(mlp)), mlp.to("bfloat16")):
        assert made.up_proj.weight.shape == mlp.up_proj.weight.shape


def test_pickles_of_earlier_versions_are_read():
    """They lack what later versions keep."""
    cache, rotary = KVCache(SMALL, 1, 8, dtype="float32"), RotaryEmbedding(1e4, 16, dtype="float32")
    vars(cache).pop("_lacks", None), vars(rotary).pop("_rounded_to")
    cache = pickle.loads(pickle.dumps(cache))
    cache.check_room(8)
    assert pickle.loads(pickle.dumps(rotary)).to("bfloat16")(0, 2)[0].dtype == "bfloat16"
