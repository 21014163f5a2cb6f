# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   rooflab:
#     notebook: lab3_flash_attention
# ---

# %% [markdown]
# # Lab 3: FlashAttention from scratch
#
# Attention compares every token with every token. The textbook's version computes a matrix of L x L scores, and keeps
# matrices of that size for the gradient. For a batch of 8 in fp32, one of them takes 34 GB at L = 32768. Training needs
# several at once, and that is more than a GPU with 80 GiB has. FlashAttention computes the *same numbers* and never
# stores such a matrix. It is not an approximation, and it does no less arithmetic. It changes the order of the work.
#
# You will build it in steps: a softmax that reads each score only once (Part 2), the forward pass in array code (Part
# 3), causal masks (Part 4), the gradient (Part 5), and the forward pass as one CUDA kernel (Part 6). In Parts 1 and 7
# you measure what it gains: how much memory is kept, how much is computed, and how many bytes are moved. In Part 1 you
# also let a compiler optimise the textbook's version, and find out what it cannot do.
#
# The papers behind this lab:
#
# - [Milakov and Gimelshein, 2018](https://arxiv.org/abs/1805.02867): the online softmax;
# - [Rabe and Staats, 2021](https://arxiv.org/abs/2112.05682): attention without O(L²) memory;
# - [Dao et al., 2022](https://arxiv.org/abs/2205.14135) and [Dao, 2023](https://arxiv.org/abs/2307.08691):
#   FlashAttention and FlashAttention-2.
#
# All shapes are those of one head: `Q` is (B, L_q, d), `K` and `V` are (B, L_kv, d), and
#
# $$S = \frac{Q K^T}{\sqrt d}, \qquad P_{ij} = \frac{e^{S_{ij}}}{\sum_k e^{S_{ik}}}, \qquad O = P V.$$
#
# **How to work**
#
# 1. Fill in the cells marked *your code here*. Give numbers as Python expressions, and do not round them. Some cells
#    ask for a sentence or two about what you found. Your instructor reads them.
# 2. Run the test cell below each answer. It says whether your answer passed, and if not, why.
# 3. When your notebook is graded, more tests run, at other sizes and with other values. They check the same properties
#    as the tests that you see.
#
# Each question is graded in a new process. This process runs the set-up cells, the answers that the question builds on,
# and your answer. It does not run the cells that only print or plot something, so an answer must not use names from
# these. Your grade depends on values and counts, never on the speed of your machine.

# %% tags=["setup"]
import numpy as np

import rooflab as rl
from rooflab import latency
from rooflab.grading import measure
from rooflab.labs.lab3 import PUBLISHED_NAIVE, far_apart, run_both_passes, sweep, without_kernel
from rooflab.labs.table import Table
from rooflab.testing import assert_choice, assert_close, is_count, is_near, is_number, to_float64

device = "cuda" if rl.cuda.is_available() else "cpu"


def make_qkv(B, L_q, L_kv, d, scale=1.0, dtype="float32"):
    """Q (B, L_q, d), K and V (B, L_kv, d): normal values, others in each call, Q and K times `scale`."""
    sizes = [(L_q, scale), (L_kv, scale), (L_kv, 1.0)]
    arrays = [measure.rng().standard_normal((B, L, d)) * factor for L, factor in sizes]
    return [rl.tensor(array, dtype=dtype, device=device) for array in arrays]


def library_attention(q, k, v, is_causal=False):
    """O (B, L_q, d) and the log-sum-exp of each query (B, L_q), by the library's own op in fp64."""
    return rl.attention(*(x.cpu().to("float64") for x in (q, k, v)), is_causal=is_causal, return_lse=True)


def library_gradients(q, k, v, dO, is_causal=False):
    """dQ, dK and dV, by the library's own op in fp64."""
    q, k, v = (x.detach().cpu().to("float64").requires_grad_() for x in (q, k, v))
    return rl.autograd.grad(rl.attention(q, k, v, is_causal=is_causal), (q, k, v), dO.cpu().to("float64"))


def check_far_apart(function, L_q, L_kv, hidden=True):
    """`function(q, k, v, hidden)` and its gradients where scores are millions apart."""
    given, exact = far_apart(L_q, L_kv)
    q, k, v, dO = (rl.tensor(array, device=device) for array in given)
    seen = measure.gradients(function, q, k, v, hidden, upstream=dO)
    what = f"{function.__name__} where scores are millions apart (are hidden scores -inf? -10,000 is too high)"
    for name, ours, right in zip(("O", "dQ", "dK", "dV"), (seen.value, *seen.gradients), exact, strict=True):
        assert_close(ours, right, rtol=1e-9, atol=1e-9, name=f"{name} of {what}")


def check_unchanged(function, L_q, L_kv, *flags):
    """Neither pass of `function` may write into the tensors that it gets, and the backward pass not into the result."""
    (q, k, v), dO = make_qkv(2, L_q, L_kv, 6), make_qkv(2, L_q, 1, 6)[0]
    seen = measure.call(function, dO, q, k, v, *flags, through=run_both_passes)
    names = ", ".join(("dO", "Q", "K", "V")[place] for place in seen.changed)
    assert not names, f"the forward or the backward pass of {function.__name__} changed {names}: make new tensors"
    before, after = seen.value
    assert_close(after, before, rtol=0, atol=0, name=f"O of {function.__name__}, after its backward pass")


def ready_made(counted):
    """The ops among those counted that compute a softmax, its gradient, or attention, as text."""
    kinds = ("softmax", "log_softmax", "attention", "cross_entropy")
    return ", ".join(sorted(op for op in counted.by_op if op.startswith(kinds) and op != "attention_mask"))


def assert_own_work(counted, what):
    """The library's attention did not compute the result, nor did a ready-made softmax."""
    ran = ready_made(counted)
    assert not ran, f"{what}: {ran} ran: use other rl operations, without a ready-made softmax"
