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
# A training run is slow, or it runs out of memory. What now? You could guess, and guesses about GPUs are mostly wrong.
# This lab is about finding out. You take one family of models, from 129 million weights to 3.4 billion, and answer
# three questions about it with numbers of your own: how long does a step take, where does the time go, and what fills
# the memory?
#
# | part | what you do |
# |---|---|
# | 1.1.2 | write down the models: their weights, and their work |
# | 1.1.3 | measure time, and learn how a measurement goes wrong without anybody noticing |
# | 1.1.4 | look inside a step with a profile |
# | 1.1.5 | compute with 16 bits, and see where that is safe |
# | 1.1.6 | see what fills the memory, and when |
# | 1.3 | let a compiler work on it |
# | 2 | put your tables and figures into a report |
#
# **You need no GPU.** Most questions are about counts: launches, FLOPs, bytes. They are the same on every machine, and
# rooflab counts them on tensors *without memory* (`device="meta"`) as well. So your laptop can tell what a step of the
# largest model needs, to the byte. How to measure *time* is graded on a fake device, whose times are known. Where you
# have a GPU, the same cells show its numbers.
#
# Beside your numbers stand published ones, from two students' solutions of the assignment that this lab follows
# (CS336 at Stanford, assignment 2): **W** measured on an A100-SXM4-40GB, **R** on an RTX 5090 with 32 GB and, where a
# row says so, on an A800. You will find that several of their conclusions do not follow from their numbers.
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
# Your grade depends on values and counts. It never depends on how fast your machine is.

# %% tags=["setup"]
import argparse
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
from rooflab.labs.lab2_memory import assert_peak
from rooflab.labs.table import Table
from rooflab.testing import assert_choice, assert_close, is_count, is_near, is_number

device = "cuda" if rl.cuda.is_available() else "cpu"

# %% [markdown]
# **Settings**, unless a question says otherwise: fp32, a vocabulary of V = 10000, B = 4 texts of L tokens, random
# tokens, 5 steps to warm up and 10 that are measured.
#
# | letter | meaning |
# |---|---|
# | B, L | texts in a batch, tokens in each |
# | D, I | numbers that describe a token, and the width of the feed-forward part |
# | n | layers |
# | H, D_h | heads of attention, and the size D/H of each |
# | V | vocabulary |
# | N | parameters |
# | F | FLOPs of the products of one forward pass |
#
# One multiply-accumulate is 2 FLOPs. GB = 10⁹ bytes, GiB = 2³⁰ bytes, MiB = 2²⁰ bytes. Names say the unit of a time:
# `mean_ms`.
