"""Which token `rooflab.nn.sample` draws, and which scores and parameters it refuses."""

import numpy as np
import pytest

from rooflab.nn import sample

INF = float("inf")


def test_sample_draws_what_its_parameters_allow():
    rng = np.random.default_rng(0)
    logits = np.log(np.array([[0.5, 0.3, 0.15, 0.05]]))
    draws = np.concatenate([sample(logits, rng) for _ in range(4000)])
    assert np.bincount(draws, minlength=4) / 4000 == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)
    assert {int(sample(logits, rng, top_k=2)[0]) for _ in range(200)} == {0, 1}
    assert {int(sample(logits, rng, top_p=0.79)[0]) for _ in range(200)} == {0, 1}
    assert {int(sample(logits, rng, top_p=0.81)[0]) for _ in range(400)} == {0, 1, 2}
    sharp = np.concatenate([sample(logits, rng, temperature=0.5) for _ in range(4000)])
    assert (sharp == 0).mean() == pytest.approx(0.25 / 0.365, abs=0.03)
    for wrong in ({"temperature": 0.0}, {"top_k": 0}, {"top_k": 2.5}, {"top_p": 0.0}, {"top_p": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            sample(logits, rng, **wrong)
    with pytest.raises(ValueError, match="NaN"):
        sample(np.array([[0.0, np.nan]]), rng)
    for shape in ((1, 3, 4), (4,), (2, 0), ()):  # what a model returns for a prompt, among them
        with pytest.raises(ValueError, match=r"\[sample\] logits: expected \(B, V\) with V >= 1, got"):
            sample(np.zeros(shape), rng)


class Highest:
    """A generator whose every number is the largest below 1."""

    def random(self, shape):
        return np.full(shape, np.nextafter(1.0, 0.0))


def test_the_largest_random_number_draws_a_token_that_may_be_drawn():
    """Ten shares of 0.1 add up to less than 1, and the shares of tokens that are left out to nothing."""
    assert np.cumsum([0.1] * 10)[-1] < 1.0
    assert sample(np.zeros((1, 10)), Highest()).tolist() == [9]
    assert sample(np.zeros((1, 10)), Highest(), top_k=3).tolist() == [2]
    assert sample(np.zeros((1, 10)), Highest(), top_p=0.35).tolist() == [3]


def test_tokens_that_are_left_out_leave_their_share_to_the_others_in_proportion():
    rng, logits = np.random.default_rng(0), np.log(np.array([[0.3, 0.3, 0.2, 0.2]]))
    for options in ({"top_k": 2}, {"top_p": 0.5}):
        first = np.mean([sample(logits, rng, **options)[0] == 0 for _ in range(2000)])
        assert first == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("scores", "allowed"),
    [
        ([0.0, INF, 1.0], {1}),
        ([INF, 0.0, INF, -INF], {0, 2}),
        ([-INF, 2.0, -INF], {1}),
        ([1e308, -1e308, 1e308], {0, 2}),
        ([INF, INF], {0, 1}),
    ],
)
@pytest.mark.parametrize("options", [{}, {"top_k": 2}, {"top_p": 1.0}, {"temperature": 1e-300}, {"temperature": 1e300}])
def test_sample_draws_the_infinitely_likely(scores, allowed, options):
    rng = np.random.default_rng(0)
    draws = {int(sample(np.array([scores, scores]), rng, **options)[1]) for _ in range(60)}
    assert draws == allowed


def test_sample_takes_the_best_of_ties_first():
    rng, ties = np.random.default_rng(0), np.array([[INF, INF, 0.0]])
    assert {int(sample(ties, rng, top_k=1)[0]) for _ in range(20)} == {0}
    assert {int(sample(ties, rng, top_p=0.4)[0]) for _ in range(20)} == {0}


def test_sample_refuses_what_leaves_no_token():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="every score of a row is -inf"):
        sample(np.array([[0.0, 1.0], [-INF, -INF]]), rng)
    with pytest.raises(ValueError, match="temperature: expected a finite number > 0"):
        sample(np.array([[0.0, -INF]]), rng, temperature=INF)
