"""Every spec's tolerances refuse what no kernel may return: zeros, a tenth too much, rows in wrong places."""

import numpy as np
import pytest
from ops.samples import SPECS, allowed_of, as_tuple, dtypes_of_ops, samples_of

from rooflab.testing import assert_close

# v0_composed rounds scores to 16 bits. Those of huge-scores and far-mask are thousands, so its weights can be anything.
UNTOLD = {("attention", dtype, label) for dtype in ("float16", "bfloat16") for label in ("huge-scores", "far-mask")}
UNTOLD |= {("attention_backward", dtype, "far-mask") for dtype in ("float16", "bfloat16")}


def wrong_results(y):
    """Wrong results that look like `y`, by name."""
    finite = np.isfinite(y)
    largest = np.argmax(np.where(finite, np.abs(y), -1))
    halved = y.copy()
    halved.flat[largest] /= 2
    wrong = {"zeros": np.where(finite, 0, y), "a tenth too much": 1.1 * y, "one element halved": halved}
    wrong["NaN for one element"] = y.copy()
    wrong["NaN for one element"].flat[largest] = np.nan
    for axis in range(y.ndim):
        shuffled = np.roll(y, 1, axis)
        if y.shape[axis] > 1 and not np.allclose(
            shuffled, y, rtol=0.2, atol=0.2 * abs(y.flat[largest]), equal_nan=True
        ):
            wrong[f"shuffled along {axis}"] = shuffled
    return wrong


def refuses(wrong, right, rtol, atol):
    try:
        assert_close(wrong, right, rtol=rtol, atol=atol)
    except AssertionError:
        return True
    return False


def cases():
    """Every op and dtype; of the longest one dtype, and the others with --all-tests."""
    for one in dtypes_of_ops():
        name, dtype = one.values
        is_slow = name in ("attention", "attention_backward") and dtype != "bfloat16"
        yield pytest.param(name, dtype, id=one.id, marks=[*one.marks, *([pytest.mark.slow] * is_slow)])


@pytest.mark.parametrize(("name", "dtype"), list(cases()))
@pytest.mark.slow(id=["attention_backward-bfloat16"])
def test_wrong_results_are_refused(name, dtype):
    for sample in samples_of(name):
        check_that_wrong_results_are_refused(SPECS[name], dtype, sample)


def check_that_wrong_results_are_refused(spec, dtype, sample):
    with np.errstate(all="ignore"):
        results = [np.asarray(y, np.float64) for y in as_tuple(spec.reference(*sample.args, **sample.kwargs))]
    for variant in ["", *(["v0_composed"] if spec.composed_tolerance else [])]:
        if variant and (spec.name, dtype, sample.label) in UNTOLD:
            continue
        for y, (rtol, atol) in zip(results, allowed_of(spec, dtype, sample, variant, results), strict=True):
            assert_close(y, y, rtol=rtol, atol=atol)
            if not (np.isfinite(y) & (np.abs(y) > 1e-7)).any():
                continue  # zeros are right, or float16 cannot tell the result from zeros
            for what, wrong in wrong_results(y).items():
                assert refuses(wrong, y, rtol, atol), f"{sample.label} {variant or 'default'}: {what}"


@pytest.mark.parametrize("name", SPECS)
def test_every_spec_has_samples_that_tell(name):
    """Only a result without any 0 shows that zeros are wrong."""
    spec = SPECS[name]
    told = 0
    for sample in spec.samples(np.random.default_rng(0)):
        with np.errstate(all="ignore"):
            results = as_tuple(spec.reference(*sample.args, **sample.kwargs))
        told += any((np.isfinite(y) & (np.asarray(y) != 0)).any() for y in results)
    assert told >= 2
