"""Bad input to ops: one sentence with the op's name, and the next call works."""

import numpy as np
import pytest

import rooflab as rl

X = rl.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rl.matmul(X, X), r"\[matmul\]"),
        (lambda: rl.matmul(X, rl.ones(3, 2, dtype="float16")), "float32 and float16"),
        (lambda: rl.matmul(rl.tensor(1.0), X), r"\[matmul\]"),
        (lambda: rl.matmul(rl.ones(2, 2, 3), rl.ones(3, 3, 2)), r"\[matmul\]"),
        (lambda: rl.add(X, rl.ones(4)), r"\[add\].*broadcast"),
        (lambda: rl.geglu(X, rl.ones(2, 3, dtype="float64")), "float32 and float64"),
        (lambda: rl.geglu(rl.arange(3), rl.arange(3)), r"\[geglu\] expected a floating-point dtype, got int64"),
        (lambda: rl.gelu(rl.arange(3)), r"\[gelu\]"),
        (lambda: rl.softmax(X, dim=2), r"\[softmax\]"),
        (lambda: rl.softmax(rl.arange(3)), r"\[softmax\]"),
        (lambda: rl.rms_norm(X, rl.ones(4)), r"\[rms_norm\] weight: expected \(D=3\), got \(4,?\)"),
        (lambda: rl.rms_norm(X, rl.ones(3, dtype="float64")), r"\[rms_norm\]"),
        (lambda: rl.layer_norm(X, rl.ones(3), rl.ones(2)), r"\[layer_norm\] bias"),
        (lambda: rl.where(X, X, X), r"\[where\].*bool"),
        (lambda: X.sum(dim=5), r"\[sum\]"),
        (lambda: X.amax(dim=(0, 0)), r"\[amax\]"),
        (lambda: rl.zeros(0, 3).amin(), r"\[amin\]"),
        (lambda: rl.randint(3, 3, (2,)), r"\[randint\]"),
        (lambda: rl.variants("nonsense"), r"\[variants\] op: expected one of rl.ops\(\), got \"nonsense\""),
    ],
)
def test_mistakes_are_sentences(call, says):
    with pytest.raises(ValueError, match=says):
        call()
    assert rl.exp(rl.zeros(2)).tolist() == [1, 1]


@pytest.mark.parametrize(
    "call", [lambda: rl.matmul(1, 2), lambda: rl.add("a", X), lambda: X + "a", lambda: rl.exp([1])]
)
def test_wrong_types_are_type_errors(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.gpu
def test_mixed_devices_are_refused():
    with pytest.raises(ValueError, match="cpu and cuda:0"):
        rl.add(X, X.cuda())
    with pytest.raises(ValueError, match="cuda:0 and cpu"):
        rl.matmul(X.cuda(), X.T)


@pytest.mark.parametrize("op", [rl.exp, rl.gelu, rl.softmax, rl.rms_norm, rl.layer_norm, lambda x: x + x])
@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0, 2)])
def test_empty_tensors_stay_empty(op, shape, device):
    with rl.count() as c:
        assert op(rl.zeros(*shape, device=device)).shape == shape
    assert c.launches == 0


def test_nan_stays_in_its_row(device):
    x = np.ones((3, 700), dtype=np.float32)
    x[1, 650] = np.nan
    for op in (rl.softmax, rl.rms_norm, rl.layer_norm):
        result = op(rl.tensor(x, device=device)).cpu().numpy()
        assert np.isnan(result[1]).all()
        assert np.isfinite(result[[0, 2]]).all()


def test_wrong_sizes_after_an_error_do_not_linger(device):
    for _ in range(3):
        with pytest.raises(ValueError):
            rl.matmul(rl.ones(2, 3, device=device), rl.ones(2, 3, device=device))
        assert rl.matmul(rl.ones(2, 3, device=device), rl.ones(3, 2, device=device)).tolist() == [
            [3, 3],
            [3, 3],
        ]
