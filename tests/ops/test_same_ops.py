"""rl.count sees the same ops and work on tensors without memory as on the CPU, also in calls that check arguments."""

import pytest

import rooflab as rl
import rooflab.nn.functional as F

FIELDS = ("ops", "launches", "macs", "flops", "bytes_read", "bytes_written")
CALLS = {
    "bernoulli": lambda x, i: rl.bernoulli(x),
    "dropout": lambda x, i: F.dropout(x),
    "multinomial": lambda x, i: rl.multinomial(x, 2, replacement=True),
    "index": lambda x, i: x[i],
    "index twice": lambda x, i: x[i, i],
    "index by lists": lambda x, i: x[[0, 1, 2], [2, 1, -1]],
    "index a list": lambda x, i: x[:, [0, 1]],
    "index apart": lambda x, i: x.reshape(3, 1, 3)[i, :, i],
    "write": lambda x, i: x.__setitem__(i, 1.0),
    "write twice": lambda x, i: x.__setitem__((i, i), 1.0),
    "write by lists": lambda x, i: x.__setitem__(([0, 1], [1, 2]), 2.0),
    "one_hot": lambda x, i: F.one_hot(i, 5),
    "embedding": lambda x, i: F.embedding(i, x),
    "cross_entropy": lambda x, i: F.cross_entropy(x, i),
    "nll_loss": lambda x, i: F.nll_loss(x, i),
    "gather": lambda x, i: x.gather(0, i.reshape(3, 1)),
    "index_select": lambda x, i: x.index_select(0, i),
    "scatter_add": lambda x, i: x.scatter_add(0, i.reshape(3, 1), x[:, :1]),
    "kv_append": lambda x, i: rl.kv_append(*[x.reshape(1, 1, 3, 3).clone() for _ in range(4)], i[:1]),
    "topk": lambda x, i: x.topk(2),
    "normalize": lambda x, i: F.normalize(x),
}


def counted(call, device):
    x, i = rl.full((3, 3), 0.5), rl.tensor([0, 2, 1])
    if device != "cpu":
        x, i = rl.empty(3, 3, device=device), rl.empty(3, dtype="int64", device=device)
    with rl.count() as c:
        call(x, i)
    return {name: getattr(c, name) for name in FIELDS} | {"by op": {op: n.ops for op, n in c.by_op.items() if n.ops}}


@pytest.mark.parametrize("name", CALLS)
def test_ops_are_the_same_without_memory(name):
    assert counted(CALLS[name], rl.meta("cpu")) == counted(CALLS[name], "cpu")


@pytest.mark.parametrize("name", ["index twice", "write twice"])
def test_an_index_of_several_arrays_is_the_same_on_every_device(name):
    assert counted(CALLS[name], rl.meta("H200")) == counted(CALLS[name], "cpu")
