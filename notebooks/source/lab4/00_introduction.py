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
#     notebook: lab4_transformer_accounting
# ---

# %% [markdown]
# # Lab 4: Transformer accounting
#
# How long does a language model take to write a word? Which GPU does it need, and what would a faster one change? You
# can answer such questions before anything runs, with a pencil. A transformer is a short list of operations. For each
# of them you can say how much arithmetic it does and how many bytes it moves. Add up the list, and you have a budget
# for the whole model. Compare the budget with two figures of a datasheet, and you know what the model waits for.
#
# In this lab you write that budget as a few small functions, and then you question them. You start with one product of
# matrices and end with GPT-2 XL, a model of 1.5 billion weights:
#
# | part | what you do |
# |---|---|
# | 1 | count attention and the MLP, operation by operation |
# | 2 | add up GPT-2 XL, and place it on the roofline of a GPU |
# | 3 | keep the keys and values of earlier tokens, and see what that gains and what it costs |
# | 4 | make several tokens for the bytes of one, by speculative decoding |
# | 5 | hold paper against a runtime that counts what really runs |
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
import numpy as np

import rooflab as rl
from rooflab.labs import lab4
from rooflab.labs.lab4 import A100, GPT2_XL, T4, assert_counts, assert_terms, sample_sizes, value_of
from rooflab.labs.table import Table
from rooflab.testing import assert_choice, is_count, is_near, is_number

# %% [markdown]
# **Letters.** The functions of this lab take sizes and return whole numbers.
#
# | letter | meaning |
# |---|---|
# | B | sequences that are handled together, the batch |
# | L | tokens in each sequence |
# | D | numbers that describe a token, the width of the model |
# | H | heads of attention. Each has the size D/H, and H divides D |
# | `layers` | layers of the model |
# | n | bytes that a number takes: 2 in fp16 |
#
# For each operation you write two functions: `..._flops` counts its arithmetic, and `..._bytes` counts what it reads
# and writes. Return an `int`. Some answers are larger than 2⁵³, where a float can no longer tell two neighbours apart.
# So use `//` where you have to divide.
#
# **The convention.** Two people who count the same model rarely get the same number, because they count different
# things. Does the mask cost anything? Is a softmax three operations a number, or five? Neither is wrong, but a figure
# says something only together with its rules. These are the rules of this lab:
#
# | what | FLOPs | bytes |
# |---|---|---|
# | every operation | | reads each of its inputs once, and writes its output once |
# | product of matrices | 2 for each multiply-accumulate | |
# | scaling of the scores | 1 a score | none: the product that makes the scores does it |
# | causal mask | 1 a score | reads and writes the scores. A score's position says whether it is masked |
# | softmax | 3 a score: exponential, sum, division | reads and writes the scores, in one pass |
# | bias | 1 a number of the output | the bias is one more input of the product that adds it |
#
# - A *score* belongs to one query and one key. Each head has L x L of them for each sequence. The mask saves no work:
#   all of them are computed.
# - An input of three operations is read three times. Nothing stays on the chip from one operation to the next.
# - Projections have no bias. The two products of the MLP have one each.
# - To keep the formulas short, embeddings, norms, residual additions and the output head are left out, and so is the
#   activation function of the MLP.
#
# Rules differ from paper to paper. The runtime of rooflab counts 5 FLOPs a score for a softmax, for example, because it
# finds the largest score of a row and subtracts it. A `Convention` of `rl.cost` names such rules: those of this lab are
# `Convention.ANALYSIS`, and those of the runtime `Convention.RUNTIME`.
