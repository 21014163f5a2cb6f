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
#     notebook: lab2_benchmark_profile_fit
# ---

# %% [markdown]
# # Lab 2: Benchmark, profile and fit a transformer
#
# A training run is slow, or it runs out of memory. You could guess the reason, but guesses about GPUs are often wrong.
# In this lab you measure and count instead. You take one family of models, from 129 million to 3.4 billion parameters,
# and answer three questions about it: how long does a training step take, where does the time go, and what fills the
# memory?
#
# The lab has a core and an optional part. The core takes about 4 hours, and only its points are required. The questions
# of the optional part begin with b. Their points are bonus points, and you may do as many of them as you like.
#
# | part | what you do | time |
# |---|---|---|
# | 1.1.2 | define five models, and compute their parameters, memory and FLOPs | 25 min |
# | 1.1.3 | time a step correctly, and learn the mistakes that give a wrong time without an error | 60 min |
# | 1.1.4 | profile a step: find out which kernel takes the time | 40 min |
# | 1.1.5 | add up in 16 bits, and find out which numbers autocast makes shorter | 30 min |
# | 1.1.6 | find out what fills the memory, and at which moment | 45 min |
# | 2 | put your tables and figures into a report | 10 min |
# | 3 | criticise two reports that seem to contradict each other | 30 min |
# | optional | look closer at each of these, and compile a model | 5 hours for all |
#
# The times are estimates for a student who has used PyTorch or NumPy before. The question numbers are those of the
# assignment that this lab follows. Its question 1.1.1 only imports the model, and its 1.2 is FlashAttention, our Lab 3.
#
# **You need no GPU.** Most questions are about counts: kernel launches, FLOPs, bytes. A *kernel* is a function that
# runs on the device, and a *launch* is one request to run it. Counts are the same on every machine. rooflab also counts
# on tensors *without memory* (`device="meta"`): an op on such a tensor computes nothing, but it is counted as if it
# ran. So your laptop can count every byte that a training step of the largest model needs. Timing is graded on a
# simulated device whose true times are known. If you have a GPU, the same cells also show its numbers.
#
# **Published numbers.** This lab follows assignment 2 of Stanford's CS336. Many tables show published numbers beside
# yours:
#
# - **W**: a published solution of that assignment, measured on an A100-SXM4-40GB;
# - **R**: another one, measured on an RTX 5090 with 32 GB and, where a row says so, on an A800;
# - **the original**: the assignment's own model and optimizer in PyTorch. We counted its memory exactly, without
#   running it on a GPU.
#
# Several conclusions that W and R draw do not follow from their numbers. You will find out which.
#
# **How to work**
#
# 1. Fill in the cells marked *your code here*. Give numbers as Python expressions, and do not round them. Some cells
#    ask for a sentence or two about what you found. Your instructor reads them.
# 2. Run the test cell below each answer. It says whether your answer passed, and if not, why.
# 3. When your notebook is graded, more tests run, at other sizes. They check the same properties as the tests that you
#    see.
#
# Each question is graded in a new process. This process runs the set-up cells, the answers that the question builds on,
# and your answer. It does not run the cells that only print or plot something, so an answer must not use names from
# these. Your grade depends on values and counts, never on the speed of your machine.

# %% tags=["setup"]
import contextlib
import tempfile
import time

import numpy as np

import rooflab as rl
from rooflab.grading import measure
from rooflab.labs import lab2, lab2_report, lab2_written
from rooflab.labs import lab2_looks as looks
from rooflab.labs import lab2_memory as memory
from rooflab.labs.lab2 import assert_keys, assert_near, assert_timed, assert_whole, draw_configs
from rooflab.labs.table import Table
from rooflab.testing import assert_choice, assert_close, is_count, is_near, is_number

device = "cuda" if rl.cuda.is_available() else "cpu"


def library_attention(q, k, v, mask):
    """Attention of q, k, v (..., L, d) with an additive mask (L, L), by the library's own op in fp64."""
    return rl.attention(*(one.cpu().to("float64") for one in (q, k, v, mask)))


# %% [markdown]
# **Settings**, unless a question says otherwise: fp32, a vocabulary of V = 10000, a batch of B = 4 sequences of L
# random tokens, 5 warm-up steps and 10 measured steps.
#
# | letter | meaning |
# |---|---|
# | B, L | sequences in a batch, tokens in each sequence |
# | D, I | width of the model (numbers per token), and width of the feed-forward part |
# | n | layers |
# | H, D_h | attention heads, and the size D/H of each head |
# | V | vocabulary |
# | N | parameters |
# | F | FLOPs of all matrix products in one forward pass |
#
# One multiply-accumulate is 2 FLOPs. GB = 10⁹ bytes, GiB = 2³⁰ bytes, MiB = 2²⁰ bytes. The name of a time
# contains its unit: `mean_ms` is in milliseconds.
