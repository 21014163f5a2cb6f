"""Functions that are composed of others launch what their docstrings say."""

import inspect

import pytest

import rooflab as rl
from rooflab import composed

X = rl.tensor([[2.0, 2.5, 1.0, 0.5], [1.0, 3.0, 3.0, 2.0]])
HALVES = X.half()
F = rl.nn.functional
ONE = rl.tensor([[0, 1, 0, 1]])
V, B, SHARES = X[0], X > 1, X / 5
W = X.clone().requires_grad_()
LAUNCHES = [  # what is called, and what the docstring of the function named first must say
    ("square", 1, lambda: rl.square(X), "one launch"),
    ("square", 2, lambda: rl.square(B), "one more for bool"),
    ("reciprocal", 1, lambda: rl.reciprocal(X), "one launch"),
    ("round", 1, lambda: rl.round(X), "one launch"),
    ("round", 6, lambda: rl.round(X, decimals=2), "six with decimals"),
    ("sign", 1, lambda: rl.sign(X), "one launch"),
    ("nan_to_num", 1, lambda: rl.nan_to_num(X), "one launch"),
    ("exp2", 1, lambda: rl.exp2(X), "one launch"),
    ("logical_not", 1, lambda: rl.logical_not(X), "one launch"),
    ("logical_and", 3, lambda: rl.logical_and(X, X), "one more for each"),
    ("logical_or", 2, lambda: rl.logical_or(B, X), "one more for each"),
    ("logical_xor", 1, lambda: rl.logical_xor(B, B), "one launch"),
    ("outer", 1, lambda: rl.outer(V, V), "one launch"),
    ("addmm", 2, lambda: rl.addmm(X[:, :2], X, X.T), "a product, a sum"),
    ("addmm", 4, lambda: rl.addmm(X[:, :2], X, X.T, beta=2, alpha=3), "a launch for each factor that is not 1"),
    ("clone", 1, lambda: rl.clone(X), "one launch"),
    ("flip", 1, lambda: rl.flip(X, 0, 1), "one launch"),
    ("roll", 2, lambda: rl.roll(X, (1, 1), (0, 1)), "one launch a dimension"),
    ("roll", 1, lambda: rl.roll(X, 4, 1), "one if nothing moves"),
    ("tile", 1, lambda: rl.tile(X, 2, 2), "one launch, a copy"),
    ("tile", 1, lambda: rl.tile(V[:1], 2, 2), "one launch, a copy"),
    ("tile", 2, lambda: rl.tile(W, 2, 2), "one for each dimension that grows"),
    ("hstack", 1, lambda: rl.hstack([X, X]), "one launch for up to 32 tensors"),
    ("vstack", 1, lambda: rl.vstack([X, X, V]), "one launch for up to 32 tensors"),
    ("diag", 1, lambda: rl.diag(X), "one launch for a matrix"),
    ("diag", 2, lambda: rl.diag(V), "a vector of two"),
    ("diag", 5, lambda: rl.diag(V, 2), "up to five beside the main diagonal"),
    ("trace", 2, lambda: rl.trace(X), "two launches"),
    ("prod", 1, lambda: rl.prod(X, 0), "one launch"),
    ("prod", 2, lambda: rl.prod(X, dtype="float64"), "a cast takes one more"),
    ("masked_select", 3, lambda: rl.masked_select(X, B), "three launches"),
    ("unique", 6, lambda: rl.unique(X), "six launches"),
    ("unique", 10, lambda: rl.unique(X, return_inverse=True), "inverses take four more"),
    ("unique", 9, lambda: rl.unique(X, return_counts=True), "counts three"),
    ("scatter", 2, lambda: rl.scatter(X, 0, ONE, X[:1]), "two launches"),
    ("scatter", 2, lambda: rl.scatter(X, 0, ONE, 5.0), "two launches"),
    ("index_add", 2, lambda: rl.index_add(X, 0, ONE[0, :2], X), "two launches"),
    ("index_add", 3, lambda: rl.index_add(X, 0, ONE[0, :2], X, alpha=2), "one more for an alpha"),
    ("median", 1, lambda: rl.median(X), "one launch"),
    ("median", 7, lambda: rl.median(W), "six launches more"),
    ("logsumexp", 1, lambda: rl.logsumexp(HALVES, 1), "one launch"),
    ("logsumexp", 2, lambda: rl.logsumexp(X.view(2, 2, 2), (0, 2)), "copied first, which is one more too"),
    ("logsumexp", 2, lambda: rl.logsumexp(ONE, 1), "integers one more"),
    ("count_nonzero", 2, lambda: rl.count_nonzero(X), "two launches"),
    ("count_nonzero", 1, lambda: rl.count_nonzero(B), "one for bool"),
    ("bincount", 6, lambda: rl.bincount(ONE[0]), "six launches"),
    ("equal", 2, lambda: rl.equal(X, X), "two launches"),
    ("randperm", 2, lambda: rl.randperm(4), "two launches"),
    ("bernoulli", 7, lambda: rl.bernoulli(SHARES), "seven launches"),
    ("multinomial", 13, lambda: rl.multinomial(X, 2), "13 launches"),
    ("multinomial", 11, lambda: rl.multinomial(X, 2, replacement=True), "with replacement of eleven"),
    ("gelu", 1, lambda: F.gelu(X, "tanh"), "one launch"),
    ("softplus", 1, lambda: F.softplus(HALVES), "one launch"),
    ("softplus", 3, lambda: F.softplus(X, 2.0), "another beta than 1 takes two more"),
    ("softplus", 5, lambda: F.softplus(HALVES, 2.0), "with it numbers of 16 bits another two"),
    ("softmax", 1, lambda: F.softmax(X), "one launch"),
    ("log_softmax", 1, lambda: F.log_softmax(X), "one launch"),
    ("logsigmoid", 1, lambda: F.logsigmoid(HALVES), "one launch"),
    ("leaky_relu", 1, lambda: F.leaky_relu(X), "one launch"),
    ("elu", 1, lambda: F.elu(HALVES), "one launch"),
    ("glu", 2, lambda: F.glu(X), "two launches"),
    ("normalize", 13, lambda: F.normalize(X), "13 launches"),
    ("cosine_similarity", 32, lambda: F.cosine_similarity(X, X), "32 launches"),
    ("mse_loss", 3, lambda: F.mse_loss(X, X), "three launches"),
    ("l1_loss", 3, lambda: F.l1_loss(X, X), "three launches"),
    ("nll_loss", 8, lambda: F.nll_loss(X, ONE[0, :2]), "eight launches"),
    ("pad", 2, lambda: F.pad(X, (1, 1, 1, 1)), "two launches"),
    ("one_hot", 2, lambda: F.one_hot(ONE, 3), "two launches"),
    ("one_hot", 3, lambda: F.one_hot(ONE), "one more finds the largest class"),
    ("dropout", 4, lambda: F.dropout(X), "four launches"),
]


def docs_of(name):
    found = F if name in F.__all__ and name not in composed.__all__ else rl
    return " ".join(inspect.getdoc(getattr(found, name)).lower().split())


@pytest.mark.parametrize(("name", "launches", "call", "says"), LAUNCHES)
def test_it_launches_what_its_docstring_says(name, launches, call, says):
    with rl.count() as c:
        call()
    assert c.launches == launches and says in docs_of(name)


def test_every_number_of_launches_that_is_said_is_counted():
    own = {name for name in F.__all__ if getattr(F, name).__module__.startswith("rooflab.nn.functional")}
    public = {*composed.__all__, *own} - {"repeat"}  # a method
    say = {name for name in public if "launch" in docs_of(name)}
    assert say == {name for name, *_ in LAUNCHES}
