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
# How long does a language model take to write one token? Which GPU does it need, and how much would a faster GPU help?
# You can answer these questions with a pencil, before you run anything. A transformer is a short list of operations.
# For each operation you can count the FLOPs that it does and the bytes that it reads and writes. The sums over the list
# are a budget for the whole model. Compare this budget with two numbers of a GPU's datasheet, peak FLOP/s and memory
# bandwidth, and you know what limits the model.
#
# In this lab you write the budget as a few small functions, and then you use them. You start with one matrix product
# and end with GPT-2 XL, a model with 1.5 billion parameters:
#
# | part | what you do |
# |---|---|
# | 1 | count the FLOPs and bytes of attention and the MLP, operation by operation |
# | 2 | add up GPT-2 XL, and place it on the roofline of a GPU |
# | 3 | add a KV cache, and find out what it saves and what it costs |
# | 4 | generate several tokens for one pass over the weights, with speculative decoding |
# | 5 | compare your formulas with a runtime that counts what really runs |
#
# Questions whose number begins with b are optional and earn bonus points.
#
# **How to work**
#
# 1. Fill in the cells marked *your code here*. Give numbers as Python expressions, and do not round them. Some cells
#    ask for a sentence or two about what you found. Your instructor reads them.
# 2. Run the test cell below each answer. It says whether your answer passed, and if not, why.
# 3. When your notebook is graded, more tests run at other sizes. They check the same properties as the tests that you
#    see.
#
# Each question is graded in a new process. This process runs the set-up cells, the answers that the question builds on,
# and your answer. It does not run the cells that only print or plot something, so an answer must not use names from
# these. Your grade depends on values and counts, never on the speed of your machine.

# %% tags=["setup"]
import numpy as np

import rooflab as rl
from rooflab.grading import measure
from rooflab.labs import lab4
from rooflab.labs.lab4 import A100, GPT2_XL, T4, assert_counts, assert_terms, sample_sizes, value_of
from rooflab.labs.table import Table
from rooflab.testing import assert_choice, assert_near, is_count, is_near, is_number

# %% [markdown]
# **Letters.** The functions of this lab take sizes and return whole numbers.
#
# | letter | meaning |
# |---|---|
# | B | batch size: the number of sequences that are processed together |
# | L | tokens in each sequence |
# | D | width of the model: the number of elements in the vector of one token |
# | H | attention heads. Each head has size D/H, and H divides D |
# | `layers` | layers of the model |
# | n | bytes per element: 2 in fp16 |
#
# For each operation you write two functions. `..._flops` returns its FLOPs, and `..._bytes` returns the bytes that it
# reads and writes. Both return an `int`. Use `//` where you have to divide: some results are larger than 2⁵³, where a
# float cannot represent every whole number. Compute them from the sizes. A function that runs or counts an operation
# fails its test, and so does one that calls `rl.cost`. (In Part 5 you may count.)
#
# **The convention.** Two people who count the same model rarely get the same total, because they count different
# things. Does the mask cost FLOPs? Does a softmax take three operations per element, or five? Both choices are fine,
# but a total only means something together with its rules. These are the rules of this lab:
#
# | operation | FLOPs | bytes |
# |---|---|---|
# | every operation | | reads each of its inputs once, and writes its output once |
# | matrix product | 2 per multiply-accumulate | |
# | scaling of the scores | 1 per score | none: it is fused into the product that makes the scores |
# | causal mask | 1 per score | reads and writes the scores. No mask is read: row and column decide |
# | softmax | 3 per score: exponential, sum, division | reads and writes the scores, in one pass |
# | bias | 1 per element of the output | the bias vector is one more input of the product that adds it |
#
# - A *score* belongs to one query and one key. Each head has L x L scores per sequence. The causal mask does not save
#   any work: all L x L scores are computed.
# - If three operations use the same input, it is read three times. Nothing stays on the chip between two operations.
# - The projections have no bias. Each of the two products of the MLP has one.
# - To keep the formulas short, we leave out the embeddings, the norms, the residual additions, the output head, and the
#   activation function of the MLP.
#
# Other authors use other rules. The runtime of rooflab, for example, counts 5 FLOPs per score for a softmax, because it
# also finds the maximum of each row and subtracts it. A `Convention` of `rl.cost` names such a set of rules. The rules
# of this lab are `Convention.ANALYSIS`, and those of the runtime are `Convention.RUNTIME`.
