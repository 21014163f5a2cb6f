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
#     notebook: lab7_cuda_kernels
# ---

# %% [markdown]
# # Lab 7: CUDA kernels, written and counted
#
# In this lab you write kernels in CUDA C++ and count what they ask of a GPU. You do not need a GPU. `rl.cuda.compile`
# compiles the same source for the CPU, runs it thread by thread, and checks and counts each access. The kernels are
# ordinary CUDA C++, and they run unchanged on a GPU.
#
# A kernel that gives the right values can still be bad. It can move eight times as many bytes as it uses. It can let 32
# threads wait for one bank of shared memory. It can have a race that shows only on another machine. None of this is
# visible in the values. All of it is visible in the counts and findings, and they are the same at each run.
#
# | part | what you write | what you count |
# |---|---|---|
# | 1 | add, gather, float4 | sectors per request |
# | 2 | transpose | bank conflicts |
# | 3 | sum, histogram | barriers, atomic operations |
# | 4 | softmax of rows | bytes read |
# | 5 | matrix product | loads per FLOP |
# | 6 | one kernel for four | accesses per element |
# | 7 | flash attention | bytes of K and V |
# | 8 | a bonus: a kernel of your choice | a counter of your choice |
#
# Lab 5, part 3, explains coalescing and tiling with small functions. Here you apply both.
#
# **How to work**
#
# 1. In each part you first *predict* a number. Then you write or repair a kernel, run it, and compare.
# 2. Fill in the cells marked *your code here*. A kernel is a text, `r"""..."""`. You can also make its cell a cell of
#    CUDA C++: after `%load_ext rooflab.cuda`, begin it with `%%cuda_kernel ADD_CUDA`, or whatever its name is.
# 3. Run the test cell below each answer. It says whether your answer passed, and if not, why.
# 4. When your notebook is graded, more tests run, at other sizes. They check the same properties as the tests that you
#    see.
#
# Each question is graded in a new process. This process runs the set-up cells, the answers that the question builds on,
# and your answer. It does not run the cells that only print or plot something, so an answer must not use names from
# these. Your grade depends on values, findings and counts, never on time.

# %% tags=["setup"]
import math

import numpy as np

import rooflab as rl
from rooflab.grading import measure
from rooflab.labs.lab7 import (
    assert_clean,
    assert_place,
    assert_values,
    assert_warps,
    compare,
    counted,
    draws,
    floats,
    whole,
)
from rooflab.labs.table import Table
from rooflab.testing import assert_choice, assert_close, is_count, is_near, is_number, to_float64

BOUND = "A lower bound of the intensity, from counted sectors; no time was measured"

# %% [markdown]
# ## Words
#
# A **block** is a group of threads that share one **shared memory**. A **barrier**, `__syncthreads()`, makes each
# thread of a block wait until all have reached it. Two threads that access one word with no barrier between, one of
# them writing, are a **race**. An **atomic** operation reads, changes and writes a word as one step, so no other thread
# comes between.
#
# A **warp** is 32 neighbouring threads of a block, its **lanes** 0 to 31. When a warp executes a load or a store, all
# of its lanes make one **request** together.
#
# Global memory answers a request in **sectors**. A sector has 32 bytes and begins at a multiple of 32. A sector always
# comes whole, however few of its bytes are wanted. The **efficiency** is the part of all these bytes that some lane
# wanted.
#
# Shared memory has 32 **banks**. Word number w (4 bytes) lies in bank w % 32. In one pass, a *wavefront*, each bank
# gives one word. If lanes want different words of one bank, the request needs more wavefronts. These extra wavefronts
# are **bank conflicts**. Lanes that want the same word cause no conflict.
#
# ## An example
#
# `counted(source, name, grid, block, ...)` compiles a source, runs its kernel `name`, and returns the counts. Its
# arguments are NumPy arrays and numbers. Open *by line* below the table: it shows which line of the kernel made which
# request. *Threads that go together* are the lanes of a warp that execute the same step at the same time, on average:
# 32, unless an `if` or a loop sends lanes different ways or a block has fewer threads.

# %%
COPY_CUDA = r"""
__global__ void copy(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
"""
x, y = floats(1000), np.zeros(1000, np.float32)
launch = counted(COPY_CUDA, "copy", 4, 256, x, y, 1000)
launch

# %% [markdown]
# Is the number of requests what you expect? There are 4 blocks of 8 warps. In the last block, the guard `i < n` leaves
# the last 24 threads without work, and these are lanes 8 to 31 of the last warp. The other lanes of this warp still
# make a request.
#
# The next figure shows the same load and store as pictures, for one warp. Each row is a sector of 32 bytes. The number
# in a word is the lane that accesses it.

# %%
rl.plots.plot_warp_requests(launch.requests, "copy: who accesses what")
