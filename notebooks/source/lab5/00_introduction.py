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
# Why does a matrix of 1793 columns take twice as long as one of 1792? Why is a function of nine operations eleven times
# slower than the same function in one? And why does a model that is four times as wide take no longer at all? Each of
# these has one short reason, and none of them is in the mathematics. They are in the machine.
#
# A GPU is a simple machine with few rules: memory comes in bursts, threads go in groups of 32, blocks go in waves, and
# every kernel costs something to start. In this lab you turn each rule into a small function that predicts a number.
# Then you hold the prediction against what was published for one GPU, an A100, and against your own machine.
#
# | part | what you do |
# |---|---|
# | 0 | warm up: contractions, an optimizer, a learning rate, a tokenizer |
# | 1 | account for a training run: days, bytes, FLOPs, and what short numbers can hold |
# | 2 | read a GPU: its units, its latencies, its groups of 32 threads |
# | 3 | use the five tricks: short numbers, fusion, recomputation, coalescing, tiling |
# | 4 | predict the sawtooth of matrix products |
# | 5 | measure without being fooled, and find out what a small model waits for |
# | 6 | write one function five ways, down to a kernel |
#
# **How to work**
#
# 1. Fill in the cells marked *your code here*. Some cells ask for a sentence or two about what you found. Your
#    instructor reads them.
# 2. Run the test cell below each answer. A test that prints nothing has passed.
# 3. When your notebook is graded, more tests run, at other sizes. They check the same properties as the tests that you
#    see.
#
# Each question is graded in a new process. It runs the set-up cells and the answers of the questions that it builds on.
# Your grade depends on values and counts. It never depends on how fast your machine is, and you need no GPU.

# %% tags=["setup"]
import math
from itertools import pairwise

import numpy as np

import rooflab as rl
from rooflab.benchmark import latency
from rooflab.grading import measure
from rooflab.labs import lab5
from rooflab.labs.lab5 import assert_counts, assert_values, draws, global_array, load, rounded, store
from rooflab.labs.lab5_training import mlp_counts, mlp_run, noisy_block, training_step
from rooflab.labs.table import Table
from rooflab.roofline import SPECS
from rooflab.testing import assert_choice, assert_close, is_count, is_near, is_number, to_float64

device = "cuda" if rl.cuda.is_available() else "cpu"

# %% [markdown]
# **Units.** 1 multiply-accumulate (MAC) is 2 FLOPs. 1 GB is 10⁹ bytes and 1 GiB is 2³⁰ bytes. An **access** is one
# element that is read from or written to global memory, the large memory of the GPU. Return an `int` where a whole
# number is asked for, and use `//` where you have to divide: some answers are larger than 2⁵³, where a float can no
# longer tell two neighbours apart.
#
# **Published numbers.** The lecture that this lab belongs to showed measurements of one A100-SXM4-40GB, in fp32. They
# stand beside yours wherever the same thing is measured.
