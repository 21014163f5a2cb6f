"""max and min in the forms of PyTorch, order among equals and NaN, running sums, triangles, and bad arguments."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import to_float64


@pytest.mark.parametrize(("op", "whole"), [(rl.max, rl.amax), (rl.min, rl.amin)])
def test_max_gives_an_element_or_a_named_pair(op, whole, device):
    x = rl.randn(3, 4, device=device)
    with rl.count() as c:
        largest = op(x)
    assert (largest.shape, largest.item()) == ((), whole(x).item())
    assert list(c.by_op) == [whole.__name__]
    found = op(x, -1, keepdim=True)
    values, indices = found
    assert found._fields == ("values", "indices")
    assert found[0] is values is found.values and found[1] is indices is found.indices
    assert values.tolist() == whole(x, -1, keepdim=True).tolist()
    assert indices.shape == (3, 1) and indices.dtype == "int64"
    assert rl.gather(x, -1, indices).tolist() == values.tolist()
    method = getattr(x, op.__name__)
    assert method(1).indices.tolist() == indices.reshape(3).tolist() and method().item() == largest.item()


def test_the_pair_is_not_taken_for_a_tensor():
    """`s.max(-1, keepdim=True)[0]` gives all values, never those of batch 0 alone."""
    s = rl.randn(2, 3, 4)
    assert s.max(-1, keepdim=True)[0].shape == (2, 3, 1)
    with pytest.raises(TypeError):
        rl.maximum(rl.zeros(2, 3, 1), s.max(-1, keepdim=True))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
def test_the_first_of_equals_is_chosen(dtype, device):
    array = np.array([[0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]] * 900).T.repeat(3, axis=0)  # (12, 2700)
    x = rl.tensor(array.copy(), dtype=dtype, device=device)
    for op, place in ((rl.argmax, np.argmax), (rl.argmin, np.argmin)):
        for rung in rl.variants(op.__name__, device):
            for dim in (0, 1, None):
                if rung.name == "v1_block" and dim == 0:
                    continue
                if rung.name == "v2_simd" and (dim == 0 or not dtype.startswith(("float", "bfloat"))):
                    continue
                found = op(x, dim, variant=rung.name)
                np.testing.assert_array_equal(found.cpu().numpy(), place(array, dim), err_msg=f"{rung.name} {dim}")


def test_large_integers_are_compared_exactly(device):
    x = rl.tensor([2**62, 2**62 + 1, -(2**63), 2**63 - 1, 2**62 + 1], device=device)
    assert (x[:3].argmax().item(), x.argmax().item(), x.argmin().item()) == (1, 3, 2)
    assert x.max(0).values.item() == 2**63 - 1


def test_the_gradient_goes_to_the_chosen_element(device):
    x = rl.tensor([[3.0, 1.0, 3.0], [0.0, 5.0, 2.0]], device=device, requires_grad=True)
    x.max(dim=1).values.backward(rl.tensor([2.0, 3.0], device=device))
    assert x.grad.tolist() == [[2, 0, 0], [0, 3, 0]]
    assert not x.max(dim=1).indices.requires_grad
    assert not x.argmax(dim=1).requires_grad


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rl.ones(2, 0).max(1), r"\[max\] x: expected at least one element"),
        (lambda: rl.ones(0, 3, 0).max(0), r"\[max\] x: expected at least one element to choose from, got \(0, 3, 0\)"),
        (lambda: rl.ones(0, 3, 0).min(-1), r"\[min\] x: expected at least one element"),
        (lambda: rl.ones(0, 3, 0).argmax(0), r"\[argmax\] x: expected at least one element"),
        (lambda: rl.ones(0, 3, 0).argmin(2, keepdim=True), r"\[argmin\] x: expected at least one element"),
        (lambda: rl.zeros(0).argmin(), r"\[argmin\] x: expected at least one element"),
        (lambda: rl.zeros(0).max(), r"\[amax\] x: expected at least one element"),
        (lambda: rl.ones(2, 3).max(2), r"\[max\] dim: expected in \[-2, 1\], got 2"),
        (lambda: rl.ones(2, 3).argmax(-3), r"\[argmax\] dim: expected in \[-2, 1\], got -3"),
    ],
)
def test_bad_arguments_are_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_result_may_be_empty():
    x = rl.zeros(0, 3)
    assert x.max(1).values.shape == x.argmin(1).shape == x.amax(1).shape == (0,)
    assert x.amin(-1, keepdim=True).shape == (0, 1)


def test_sort_is_stable_and_puts_nan_last(device):
    x = rl.tensor([[2.0, np.nan, 1.0, 2.0, -np.inf, 1.0], [0.0, -0.0, 0.0, -0.0, 0.0, -0.0]], device=device)
    for variant in (
        "",
        *(rung.name for rung in rl.variants("sort", device) if rung.name not in ("v1_select", "v3_radix")),
    ):
        assert rl.sort(x, variant=variant).indices.tolist() == [[4, 2, 5, 0, 3, 1], [0, 1, 2, 3, 4, 5]]
        found = rl.sort(x, descending=True, variant=variant)
        assert found.indices.tolist() == [[1, 0, 3, 2, 5, 4], [0, 1, 2, 3, 4, 5]]
        assert np.isnan(found.values[0, 0].item())
    assert rl.argsort(x, descending=True).tolist() == [[1, 0, 3, 2, 5, 4], [0, 1, 2, 3, 4, 5]]
    assert rl.topk(x, 2, largest=False).indices.tolist() == [[4, 2], [0, 1]]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
@pytest.mark.parametrize("n", [900, 9000])
def test_topk_is_the_start_of_sort(n, dtype, device):
    x = rl.tensor(np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 50, (3, n)), dtype=dtype)
    x = x.to(device=device)
    for largest in (True, False):
        whole = rl.sort(x, descending=largest)
        for k in (1, 7, 112, 113, 256, n):
            for rung in (None, *rl.variants("topk", device)):
                try:
                    found = rl.topk(x, k, largest=largest, variant=rung.name if rung else "")
                except ValueError:
                    continue
                assert found.values.tolist() == whole.values[:, :k].tolist(), (rung, k)
                assert found.indices.tolist() == whole.indices[:, :k].tolist(), (rung, k)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int64", "int32"])
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "alike"])
@pytest.mark.parametrize("n", [17, 41, 100])
@pytest.mark.parametrize("dim", [1, 2])  # lines whose elements are apart, or adjacent
def test_few_of_a_short_line(dim, n, order, dtype, device):
    """Up to 16 elements are chosen otherwise than more are: of any order, and of equal ones the first."""
    made = np.random.default_rng(n).integers(-60, 60, (5, n, 3)).astype(np.float64)
    if order == "alike":
        made = made % 3
    elif order != "random":
        made = np.sort(made, 1)[:, :: 1 if order == "ascending" else -1]
    if dtype not in ("int64", "int32"):
        made[1, n // 2], made[2, 0] = np.nan, -np.inf
    x = rl.tensor(np.ascontiguousarray(made), dtype=dtype, device=device)
    x = x if dim == 1 else x.transpose(1, 2).contiguous()
    for largest in (True, False):
        keys = -made if largest else made
        key = np.where(np.isnan(made), -np.inf if largest else np.inf, keys)
        expected = np.argsort(key, axis=1, kind="stable").swapaxes(1, dim)
        for k in (1, 2, 7, 8, 9, 15, 16, 17):
            found = rl.topk(x, k, dim=dim, largest=largest)
            chosen = expected.swapaxes(dim, -1)[..., :k].swapaxes(dim, -1)
            np.testing.assert_array_equal(found.indices.cpu().numpy(), chosen)
            values = np.take_along_axis(made.swapaxes(1, dim), chosen, axis=dim)
            np.testing.assert_array_equal(to_float64(found.values), values)


@pytest.mark.parametrize(("keep", "rung"), [(8, "v2_packed"), (16, "v2_packed"), (17, "v3_radix"), (64, "v3_radix")])
def test_digits_are_counted_where_much_is_kept(keep, rung):
    x = rl.randn(3, 64).to("bfloat16")
    with rl.profile() as profile:
        x.topk(keep)
    assert [kernel.name for kernel in profile.kernels] == [f"sort_cpu_{rung}"]


def test_running_sums_of_nan_and_integers(device):
    x = rl.tensor([[1.0, np.nan, 2.0], [np.inf, 1.0, -np.inf]], device=device)
    np.testing.assert_array_equal(x.cumsum(1).cpu().numpy(), [[1, np.nan, np.nan], [np.inf, np.inf, np.nan]])
    big = rl.tensor([2**63 - 1, 1, 5], device=device)
    assert big.cumsum(0).tolist() == [2**63 - 1, -(2**63), -(2**63) + 5]
    flags = rl.tensor([True, False, True], device=device).cumsum(0)
    assert (flags.tolist(), flags.dtype) == ([1, 1, 2], "int64")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("n", [1, 2, 7, 16, 17, 300, 700])  # around a short line, and a part of one that stays in L1
@pytest.mark.parametrize(("outer", "inner"), [(300, 1), (1, 2), (40, 3), (5, 7), (3, 8), (2, 50)])
def test_running_sums_of_lines_of_any_length(outer, n, inner, dtype, device, instruction_sets):
    x = rl.tensor(np.random.default_rng(n).integers(-3, 4, (outer, n, inner)), dtype=dtype, device=device)
    array = x.float().cpu().numpy()
    from_the_end = np.cumsum(array[:, ::-1], axis=1)[:, ::-1]
    for _ in instruction_sets():
        leaf = x.clone().requires_grad_()
        sums = leaf.cumsum(1)
        sums.backward(x)  # the gradient of running sums is running sums from the end
        np.testing.assert_array_equal(sums.detach().float().cpu().numpy(), np.cumsum(array, axis=1))
        np.testing.assert_array_equal(leaf.grad.float().cpu().numpy(), from_the_end)


@pytest.mark.parametrize("op", [rl.tril, rl.triu])
def test_triangles_of_views_and_of_bools(op, device):
    array = np.arange(60).reshape(3, 4, 5) % 7
    cut = getattr(np, op.__name__)
    x = rl.tensor(array, device=device)
    for k in (-4, -1, 0, 2, 6):
        np.testing.assert_array_equal(op(x.mT, k).cpu().numpy(), cut(array.transpose(0, 2, 1), k))
        np.testing.assert_array_equal(op(x[:, ::2, ::3], k).cpu().numpy(), cut(array[:, ::2, ::3], k))
    assert op(rl.ones(2, 2, dtype="bool", device=device)).tolist() == cut(np.ones((2, 2), bool)).tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rl.topk(rl.ones(3), 4), r"\[topk\] k: expected in \[0, 3\], got 4"),
        (lambda: rl.topk(rl.ones(3), -1), r"\[topk\] k: expected in \[0, 3\], got -1"),
        (lambda: rl.sort(rl.ones(3), 1), r"\[sort\] dim: expected in \[-1, 0\], got 1"),
        (lambda: rl.cumsum(rl.ones(3), 1), r"\[cumsum\] dim: expected in \[-1, 0\], got 1"),
        (lambda: rl.tril(rl.ones(3)), r"\[tril\] x: expected 2 dimensions or more, got \(3,\)"),
    ],
)
def test_bad_arguments_to_ops_along_a_dimension(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_neighbouring_int32_are_told_apart(device):
    """Float32 has one number for many of them."""
    rng = np.random.default_rng(0)
    edges = np.array([2**31 - 1, 2**31 - 2, -(2**31) + 1, -(2**31), 2**24 + 1, 2**24], "i4")
    for array in (edges, rng.integers(-(2**31), 2**31, 70000).astype("i4")):
        x, exact = rl.tensor(array, device=device), np.argsort(array, kind="stable")
        for rung in rl.variants("sort", device):
            try:
                found = rl.sort(x, variant=rung.name)
            except ValueError as error:
                assert "does not accept these operands" in str(error)
            else:
                assert found.indices.tolist() == exact.tolist(), rung.name
        assert rl.topk(x, 3).values.tolist() == np.sort(array)[::-1][:3].tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
@pytest.mark.parametrize("n", [7, 600, 3000, 5000])
def test_sorted_elements_are_those_of_the_input_bit_by_bit(n, dtype, device):
    """Zeros of both signs are equal, and so are all NaN."""
    rng = np.random.default_rng(0)
    numbers = rng.choice([-0.0, 0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, -np.nan], (2, n))
    if not dtype.startswith(("float", "bfloat")):
        numbers = rng.integers(-3, 3, (2, n))
    x = rl.tensor(numbers, dtype=dtype, device=device)
    kept = x.cpu().numpy()
    for rung in rl.variants("sort", device):
        for descending in (False, True):
            try:
                values, indices = rl.sort(x, -1, descending, variant=rung.name)
            except ValueError:
                continue
            chosen = np.take_along_axis(kept, indices.cpu().numpy(), -1)
            assert values.cpu().numpy().tobytes() == chosen.tobytes(), (rung.name, descending)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
@pytest.mark.parametrize("n", [7, 600, 3000, 5000, 70000])
def test_values_alone_are_sorted_as_with_positions(n, dtype, device):
    """No zero loses its sign, and a NaN stays one. They move half the bytes or less, and write no positions."""
    rng = np.random.default_rng(0)
    numbers = rng.choice([-0.0, 0.0, 1.5, -1.5, 1e-40, np.inf, -np.inf, np.nan, -np.nan], (2, n))
    if not dtype.startswith(("float", "bfloat")):
        numbers = rng.integers(-(2**31), 2**31, (2, n))
    whole = rl.tensor(numbers, dtype=dtype, device=device)
    is_floating = whole.dtype.is_floating_point
    as_array = lambda y: (y.double() if is_floating else y).cpu().numpy()  # noqa: E731
    for x in (whole, whole.T.clone().T):
        right = as_array(rl.sort(x).values)
        for rung in (None, *rl.variants("sort", device)):
            try:
                with rl.count() as c:
                    found = rl._core._sort_values(x, variant=rung.name if rung else "")
            except ValueError:
                continue
            values = as_array(found)
            assert (c.bytes_read, c.bytes_written) == (x.nbytes, x.nbytes) and list(c.by_op) == ["sort"]
            np.testing.assert_array_equal(values, right, err_msg=str(rung))
            if is_floating:
                signs = [np.signbit(a[a == 0]).sum() for a in (values, right)]
                assert signs[0] == signs[1], rung


def test_keys_alone_take_less_memory_than_keys_and_places():
    x = rl.randn(100000)
    with rl.count() as both:
        rl.sort(x)
    with rl.count() as alone:
        rl._core._sort_values(x)
    assert 2 * (alone.bytes_allocated - x.nbytes) == both.bytes_allocated - 3 * x.nbytes


def test_a_radix_sort_packs_before_only_where_elements_are_not_adjacent():
    x = rl.empty(3, 5000, device=rl.meta("H200"))
    for call, launches in ((lambda: x.sort(), 12), (lambda: x.mT.sort(0), 12), (lambda: x.view(5000, 3).sort(0), 13)):
        with rl.count() as c:
            call()
        assert c.launches == launches


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32"])
@pytest.mark.parametrize("n", [2, 255, 300, 9001])
def test_the_median_is_an_element_and_the_first_of_its_equals(n, dtype, device):
    """Zeros of both signs are equal, and so are all NaN; the largest integer is no NaN."""
    rng = np.random.default_rng(n)
    numbers = rng.choice([-0.0, 0.0, 1.5, -1.5], (4, n))
    numbers[1, [n // 2, -1]] = np.nan
    numbers[2] = np.inf
    if not dtype.startswith(("float", "bfloat")):
        numbers = rng.integers(-3, 3, (4, n))
        numbers[:3, n // 2 :] = np.iinfo(dtype).max
    x = rl.tensor(numbers, dtype=dtype, device=device)
    kept = x.cpu().numpy()
    ordered = np.sort(kept.astype(np.float64 if x.dtype.is_floating_point else np.int64), axis=1)
    middle = ordered[:, [(n - 1) // 2]]
    is_nan = kept != kept
    first = np.argmax(np.where(is_nan.any(1, keepdims=True), is_nan, kept == middle), axis=1).tolist()
    for rung in (None, *rl.variants("median", device)):
        for lines, dim in ((x, 1), (x.T.contiguous(), 0)):
            try:
                values, indices = rl.median(lines, dim, variant=rung.name if rung else "")
            except ValueError:
                continue
            assert indices.tolist() == first, (rung, dim)
            assert values.cpu().numpy().tobytes() == kept[np.arange(4), first].tobytes(), (rung, dim)


def test_a_gpu_takes_one_launch_for_medians_and_sorts_few_long_lines():
    for shape, dim, launches in (
        ((148, 185), 1, 1),
        ((40, 8192), 1, 1),
        ((40, 200000), 1, 1),
        ((4, 200000), 1, 13),
        ((8192, 40), 0, 1),
        ((200000, 40), 0, 14),  # not adjacent
    ):
        x = rl.empty(*shape, device=rl.meta("H200"))
        with rl.count() as c:
            rl.median(x, dim)
        assert c.launches == launches, shape


@pytest.mark.parametrize(("shape", "launches"), [((251, 24, 231), 1), ((4, 3000, 7), 2)])
def test_a_gpu_takes_one_launch_for_extremes_of_short_columns(shape, launches):
    x = rl.empty(*shape, device=rl.meta("H200"))
    with rl.count() as c:
        rl.argmax(x, 1)
    assert c.launches == launches
