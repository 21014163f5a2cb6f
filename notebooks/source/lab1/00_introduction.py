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
#     notebook: lab1_efficient_ai_fundamentals
# ---

# %% [markdown]
# # Lab 1: Efficient AI fundamentals
#
# Two programs can compute the same numbers, and one of them can be a thousand times slower. After this lab you can say
# *why*. You can also say *how fast the program could be*, before you optimise anything. Three quantities are needed:
#
# - **work**: the arithmetic that an operation has to do, in MACs or FLOPs;
# - **traffic**: the bytes that it has to move to and from memory;
# - **time**: how long it really takes, and how much that varies.
#
# Work divided by traffic is the *arithmetic intensity*. It tells you which limit you reach first: the speed at which
# the machine computes, or the speed at which it reads memory. The picture of these two limits is called the *roofline*,
# and you will use it for the rest of the course.
#
# Everything here runs on a laptop's CPU. On a machine with a CUDA GPU the same cells run on the GPU and show its
# numbers. Your grade depends on values and counts. It never depends on how fast your machine is.
#
# | part | what you do |
# |---|---|
# | 1 | count, time and compare one operation: a matrix product |
# | 2 | put it on the roofline, and measure where it stands |
# | 3 | do the same for attention and the MLP of a language model, in prefill and in decode |
# | 4 | look inside with a profiler, and see what fused kernels, a compiler and a graph gain |
# | 5 | see what the scores of attention cost, and how flash attention avoids it |
#
# Questions whose number begins with b are optional and earn bonus points.
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
# these.

# %% tags=["setup"]
import os
import tempfile
import time

import numpy as np

import rooflab as rl
from rooflab.grading import measure
from rooflab.labs.lab1 import (
    GEMMA3_270M_CONFIG,
    GEMMA3_PSEUDO_CONFIG,
    GPU_SPECS,
    benchmark_memory,
    count_cuda_kernels,
    create_decode_inputs_with_cache,
    create_decode_inputs_without_cache,
    create_prefill_inputs,
    decode_forward,
    default_schedule,
    get_position_embeddings,
    get_ridge_point,
    initialize_kv_cache,
    latency,
    latency_one_time,
    multi_layer_decode_forward,
    multi_layer_prefill_forward,
    plot_flash_attn_improvement,
    plot_gemm_gemv_latency,
    plot_gemm_torch_matmul_latency,
    plot_roofline,
    prefill_forward,
)
from rooflab.labs.table import Table
from rooflab.testing import assert_choice, assert_close, is_count, is_near, is_number, to_float64

device = "cuda" if rl.cuda.is_available() else "cpu"

# %% [markdown]
# **Units in this course**
#
# | quantity | unit | note |
# |---|---|---|
# | work | MAC, FLOP | one multiply-accumulate is two FLOPs: a multiplication and an addition |
# | traffic | byte; GB = 10⁹ bytes | an fp32 number takes 4 bytes, a bf16 or fp16 number takes 2 |
# | time | ms | names say the unit: `median_ms` |
# | speed | TFLOP/s = 10¹² FLOP/s | peaks are *dense*. Some datasheets double them by counting skipped zeros |
# | bandwidth | TB/s = 10¹² byte/s | TB/s times FLOP/byte gives TFLOP/s |
#
# **Shapes.** `A` is (N, K), `B` is (K, M), and their product `C` is (N, M). *GEMM* multiplies a matrix by a matrix.
# *GEMV* multiplies a matrix by a vector, so M = 1.
