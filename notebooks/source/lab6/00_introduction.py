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
#     notebook: lab6_associative_recall
# ---

# %% [markdown]
# # Lab 6: Associative recall
#
# A language model that has read *"Hakuna Matata means no worries"* can finish *"Hakuna Matata, it means ..."* a page
# later, even if it never saw these words in training. It looks them up in its own context. The smallest task of this
# kind is *associative recall*: a row of tokens lists keys with their values, and then asks for the value of each key.
#
# ```
# C 7   A 2   F 9   ...   A ?   C ?   F ?   ...
# ```
#
# **How many layers of attention does this take?** You write the attention and the task, train models with 1 to 4
# layers, and find a sudden jump in accuracy. Then you look into the trained models to see where it comes from. Such a
# model trains in seconds on a laptop's CPU. The mechanism that you will find in it has also been found in large
# language models.
#
# | part | what you do |
# |---|---|
# | 1 | write causal attention from single operations |
# | 2 | write the task, compute what guessing would score, train, and find the number of layers |
# | 3 | find out what each layer does, and what the mask and the positions are for |
#
# The papers behind this lab:
#
# - [Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html): attention layers as circuits
# - [Olsson et al., 2022](https://arxiv.org/abs/2209.11895): the same circuit in large models
# - [Arora et al., 2023](https://arxiv.org/abs/2312.04927): associative recall, and which models are good at it
# - [Sanford et al., 2024](https://arxiv.org/abs/2408.14332): a proof of how many layers this takes
#
# **How to work**
#
# 1. Fill in the cells marked *your code here*. Give numbers as Python expressions, and do not round them. Some cells
#    ask for a sentence or two about what you found. Your instructor reads them.
# 2. Run the test cell below each answer. It says whether your answer passed, and if not, why.
# 3. When your notebook is graded, more tests run at other sizes and with other values. They check the same properties
#    as the tests that you see.
#
# Each question is graded in a new process. This process runs the set-up cells, the answers that the question builds on,
# and your answer. It does not run the cells that only print or plot something, so an answer must not use names from
# these. Your grade depends on values and counts, never on the speed of your machine.

# %% tags=["setup"]
import math
from functools import partial

import numpy as np

import rooflab as rl
from rooflab.grading import measure
from rooflab.labs.lab6 import (
    RecallModel,
    attention_maps,
    fused_attention,
    once,
    recall_accuracy,
    recall_rows,
    training,
    two_batches,
)
from rooflab.labs.table import Table
from rooflab.testing import assert_choice, assert_close, is_count, is_near, is_number, to_float64

device = "cuda" if rl.cuda.is_available() else "cpu"


def make_inputs(B, L, D, heads, D_h, dtype="float32"):
    """x (B, L, D), Wq, Wk, Wv (D, heads D_h) and Wo (heads D_h, D), as `causal_attention` takes them."""
    inner = heads * D_h
    shapes = [(B, L, D), (D, inner), (D, inner), (D, inner), (inner, D)]
    arrays = [measure.rng().standard_normal(shape) / (1 if len(shape) == 3 else shape[0] ** 0.5) for shape in shapes]
    arrays[1] *= 2  # larger scores, so that the attention weights of a row differ clearly
    return [rl.tensor(array, dtype=dtype, device=device) for array in arrays]
