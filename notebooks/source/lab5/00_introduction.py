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
#     notebook: lab5_gpu_principles
# ---

# %% [markdown]
# # Lab 5: GPU principles
#
# Why does a product of 1793 x 1793 matrices take twice as long as one of 1792 x 1792? Why is a function written out in
# single operations many times slower than the same function in one kernel? And why does a model that is five times as
# wide take no longer at all? Each question has one short answer, and none of the answers is in the mathematics. They
# are in the machine.
#
# A GPU follows a few simple rules. Memory arrives in bursts, threads run in groups of 32, blocks run in waves, and
# every kernel takes time to launch. (A *kernel* is a function that runs on the device. A *launch* is one request to run
# it.) In this lab you turn each rule into a small function that predicts a number. Then you compare the prediction with
# published measurements of one GPU, an A100, and with your own machine.
#
# The lab has a core and an optional part. The core takes about 4 hours, and only its points are required. The questions
# of the optional part begin with b. Their points are bonus points, and you may do as many of them as you like.
# All times are estimates.
#
# | part | what you do | time |
# |---|---|---|
# | 1 | plan a training run: how many days does it take? | 10 min |
# | 2 | read a GPU's data: its peaks, its latencies, its groups of 32 threads | 35 min |
# | 3 | use five tricks: shorter numbers, fusion, recomputation, coalescing, tiling | 85 min |
# | 4 | predict the sawtooth in the speed of matrix products | 25 min |
# | 5 | measure correctly, and find out what limits a small model | 40 min |
# | 6 | write one function in several ways, down to a kernel | 40 min |
# | optional | contractions, an optimizer, the memory of a training run, number formats, profiles | 4 hours for all |
#
# **How to work**
#
# 1. Fill in the cells marked *your code here*.
# 2. Run the test cell below each answer. It says whether your answer passed, and if not, why.
# 3. When your notebook is graded, more tests run at other sizes. They check the same properties as the tests that you
#    see.
#
# Each question is graded in a new process. This process runs the set-up cells, the answers that the question builds on,
# and your answer. It does not run the cells that only print or plot something, so an answer must not use names from
# these. Your grade depends on values and counts, never on the speed of your machine. You need no GPU.

# %% tags=["setup"]
import math
from itertools import pairwise

import numpy as np

import rooflab as rl
from rooflab.benchmark import latency
from rooflab.grading import measure
from rooflab.labs import lab4, lab5, lab7
from rooflab.labs.lab5 import assert_counts, assert_values, draws, global_array, load, rounded, store
from rooflab.labs.lab5_training import mlp_counts, mlp_runner, noisy_block, training_step
from rooflab.labs.table import Table
from rooflab.roofline import SPECS
from rooflab.testing import assert_choice, assert_close, assert_near, is_count, is_near, is_number, to_float64

device = "cuda" if rl.cuda.is_available() else "cpu"


def library_gelu(x):
    """GeLU in its tanh form, by the library's own op in fp64: a NumPy array."""
    return rl.gelu(rl.tensor(x, dtype="float64")).numpy()


# %% [markdown]
# **Units.** 1 multiply-accumulate (MAC) is 2 FLOPs. 1 GB is 10⁹ bytes and 1 GiB is 2³⁰ bytes. An **access** is one
# element that is read from or written to global memory, the large memory of the GPU. Return an `int` where a whole
# number is asked for. Use `//` where you have to divide: some results are larger than 2⁵³, where a float cannot
# represent every whole number. Do not round the numbers that you give.
#
# **Published numbers.** The lecture behind this lab showed measurements of one A100-SXM4-40GB, in fp32. They appear
# beside your own wherever both measure the same thing.
