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
# Two programs compute the same numbers; one is a thousand times slower. By the end of this lab you can say *why*, and
# *how fast it could be*, before you optimise anything. You need three quantities:
#
# - **work**: the arithmetic an operation must do (MACs, FLOPs);
# - **traffic**: the bytes it must move to and from memory;
# - **time**: how long it really takes, with its spread.
#
# Work over traffic is the *arithmetic intensity*. It decides which of two limits you will hit first: how fast the
# machine computes, or how fast it reads. That picture is the *roofline*, and everything else in this course hangs on
# it.
#
# Everything here runs on a laptop's CPU. On a machine with a CUDA GPU the same cells run there and show GPU numbers.
# Your grade rests on formulas, counts and ratios, never on how fast your machine is.
#
# **How to work.** Fill the cells marked *your code here*, then run the test cell below each. A test that prints
# nothing has passed. When graded, more tests run that are not shown here. Each question runs on its own in a fresh
# process, so a solution may use the set-up cell and the functions of the questions that it names, and no other cell.

# %% tags=["setup"]
import time

import numpy as np

import rooflab as rl
from rooflab.grading import measure
from rooflab.labs.lab1 import (
    GPU_SPECS,
    benchmark_memory,
    count_cuda_kernels,
    default_schedule,
    get_ridge_point,
    latency,
    latency_one_time,
    plot_flash_attn_improvement,
    plot_gemm_gemv_latency,
    plot_gemm_torch_matmul_latency,
    plot_roofline,
)
from rooflab.testing import assert_close, is_count, is_near, is_number, is_time_of, to_float64

device = "cuda" if rl.cuda.is_available() else "cpu"

# %% [markdown]
# **Units, used everywhere in this course**
#
# | quantity | unit | note |
# |---|---|---|
# | work | MAC, FLOP | one multiply-accumulate is two FLOPs: a multiply and an add |
# | traffic | byte; GB = 10⁹ bytes | fp32 takes 4 bytes, bf16 and fp16 take 2 |
# | time | ms | the names say so: `median_ms` |
# | speed | TFLOP/s = 10¹² FLOP/s | peaks are *dense*: the doubled ones that count skipped zeros are not used |
# | bandwidth | TB/s = 10¹² byte/s | TB/s times FLOP/byte gives TFLOP/s |
#
# Shapes: `A` is (N, K), `B` is (K, M), their product `C` is (N, M). *GEMM* is matrix times matrix, *GEMV* is matrix
# times vector, that is M = 1.
