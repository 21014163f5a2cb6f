"""The places of true elements: every rung, masks of any density and length, and what is counted."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs._tiles import NONZERO, tile

LENGTHS = sorted(
    {1, 31, 32, 33, 4097}
    | {n + d for n in (tile(NONZERO, "kNonzeroPortion"), tile(NONZERO, "kNonzeroTile")) for d in (-1, 0, 1)}
)
SHAPES = [(7, 33), (3, 1, 5, 700), (100_000, 2), (1, 300, 3), (40, 3001)]


def found_by_each_rung(mask):
    return {rung.name: rl.nonzero(mask, variant=rung.name) for rung in rl.variants("nonzero", mask.device)}


def check(values, device):
    for name, found in found_by_each_rung(rl.tensor(values, device=device)).items():
        np.testing.assert_array_equal(found.cpu().numpy(), np.argwhere(values), err_msg=name)


@pytest.mark.parametrize("density", [0.0, 0.001, 0.5, 0.999, 1.0])
def test_masks_of_every_length_and_density(density, device):
    rng = np.random.default_rng(0)
    for n in LENGTHS:
        check(rng.random(n) < density, device)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_places_have_a_number_for_each_dimension(shape, device):
    rng = np.random.default_rng(0)
    for density in (0.01, 0.5):
        check(rng.random(shape) < density, device)


def test_long_masks_have_portions_of_several_tiles(device):
    rng = np.random.default_rng(0)
    check(rng.random(5_000_003) < 0.3, device)
    one = np.zeros(6_000_000, bool)
    one[-1] = True
    check(one, device)


def test_masks_that_are_parts_or_turned(device):
    rng = np.random.default_rng(0)
    values = rng.random((301, 67)) < 0.4
    mask = rl.tensor(values, device=device)
    for part in (np.s_[1:], np.s_[:, 3:], np.s_[::2, 5]):
        np.testing.assert_array_equal(rl.nonzero(mask[part]).cpu().numpy(), np.argwhere(values[part]))
    np.testing.assert_array_equal(rl.nonzero(mask.T).cpu().numpy(), np.argwhere(values.T))
    flat = mask.reshape(-1)
    for start in range(17):  # not every one begins at a whole vector
        found = rl.nonzero(flat[start:]).cpu().numpy()[:, 0]
        np.testing.assert_array_equal(found, np.flatnonzero(values.reshape(-1)[start:]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_what_is_counted(dtype, device):
    x = rl.tensor(np.arange(12.0).reshape(3, 4) % 3, dtype=dtype, device=device)
    with rl.count() as counts:
        found = rl.nonzero(x)
    compares = dtype != "bool"
    assert counts.launches == compares + 2 and counts.by_op["nonzero"].launches == 2
    assert found.shape == (8, 2)
    read_back = 0 if device == "cpu" else 8
    assert counts.bytes_written == compares * 12 + 8 + read_back + 8 * 2 * 8
    assert counts.by_op["nonzero"].bytes_read == 12 + 12 + 8


def test_a_choice_by_a_mask_counts_the_mask(device):
    x = rl.tensor(np.arange(2_000.0).reshape(20, 100), dtype="float32", device=device)
    mask = x % 3 == 0
    with rl.count() as counts:
        chosen = x[mask]
    assert counts.launches == 3  # the numbers of portions, the places, the elements
    np.testing.assert_array_equal(chosen.cpu().numpy(), np.arange(0, 2_000, 3, dtype=np.float32))
