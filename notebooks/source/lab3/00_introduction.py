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
# Attention compares every token with every token. Written down as the textbook has it, it fills a matrix of L x L
# scores, keeps it for the gradient, and at L = 32768 an 80 GB GPU is full. FlashAttention computes the *same numbers*
# and never has that matrix. It is not an approximation and it saves no arithmetic; it changes the order of the work.
#
# You will write it three times: the softmax that needs to see each score only once (Part 2), the whole of it in array
# code with its gradient (Parts 3 to 5), and as one CUDA kernel (Part 6). Around that you count: what is kept, what is
# computed, what is moved (Parts 1 and 7).
#
# All shapes are those of one head: `Q` is (B, L_q, d), `K` and `V` are (B, L_kv, d), and
#
# $$S = \frac{Q K^T}{\sqrt d}, \qquad P_{ij} = \frac{e^{S_{ij}}}{\sum_k e^{S_{ik}}}, \qquad O = P V.$$
#
# **How to work.** Fill the cells marked *your code here*, then run the test cell below each. A test that prints
# nothing has passed. When graded, more tests run that are not shown here. Each question runs on its own in a fresh
# process with the set-up cell and the questions that it builds on. Grades rest on values and on counts, never on how
# fast your machine is.

# %% tags=["setup"]
import numpy as np

import rooflab as rl
from rooflab import latency
from rooflab.grading import measure
from rooflab.labs.lab3 import (
    PUBLISHED_NAIVE,
    attention_float64,
    attention_gradients_float64,
    sweep,
)
from rooflab.testing import assert_close, is_count, is_near, is_time_of, to_float64

device = "cuda" if rl.cuda.is_available() else "cpu"


def make_qkv(B, L_q, L_kv, d, scale=1.0, dtype="float32", seed=0):
    """Q (B, L_q, d), K and V (B, L_kv, d): normal values, Q and K times `scale`."""
    rng = np.random.default_rng(seed)
    sizes = [(L_q, scale), (L_kv, scale), (L_kv, 1.0)]
    arrays = [rng.standard_normal((B, L, d)) * factor for L, factor in sizes]
    return [rl.tensor(array, dtype=dtype, device=device) for array in arrays]
