# %% [markdown]
# # 3 Criticise two reports (10 points, by hand)
#
# W and R both measured the softmax of attention in a forward pass of the small model, in fp32 with B = 4. W says how
# much of the time of *all* kernels it takes. R compares it with the time of the *two products of attention*. Read
# alone, W says that softmax hardly matters. Read alone, R says that it takes half as long as the products, and longer
# than them at L = 1024. Do the two contradict each other? The next cell shows all that they published about it.

# %%
rows = []
for L, (w_share, w_ms, r_ms) in lab2.SOFTMAX_OF_SMALL.items():
    softmax_ms, products_ms = lab2.R_ATTENTION["small", L]
    rows.append((L, f"{w_share:.1%}", w_ms, softmax_ms, products_ms, f"{softmax_ms / products_ms:.2f}", r_ms))
head = ("L", "W: softmax of all kernels", "W: forward ms", "R: softmax ms", "R: products ms", "ratio", "R: forward ms")
note = "W: A100-SXM4-40GB, 1.56 TB/s. R: RTX 5090, 1.79 TB/s. W's forward is the time of the range in the profile."
Table(head, rows, title="small, B = 4, fp32: what W and R say about softmax", note=note)

# %% [markdown]
# Write at most 300 words. Your instructor reads them and gives up to 10 points, which count apart from the tests.
#
# | points | what the text does |
# |---|---|
# | 2 | It says what each number is a share of, and brings both to the same quantity at one L at least. |
# | 3 | It compares a number of each report with a bound: the time that the bytes of a softmax take at least. |
# | 2 | It names what neither report says, and what you would need to know to compare them. |
# | 2 | It describes one measurement that would decide, and says which result would mean what. |
# | 1 | Its conclusion follows from its numbers, and says what stays open. |
#
# The small model has 12 layers, 12 heads, and D_h = 64. A softmax reads and writes each of the B x H x L x L scores of
# a layer at least once.

# %% [markdown] nbgrader={"grade_id": "q3_text", "solution": true}
# *What I find about the two reports:*
#
# ### BEGIN SOLUTION
# W divides by the time of all kernels, R by that of two products. If W's kernels take no longer than its forward pass,
# its softmax takes at most 3.7 ms at L = 1024 and 0.26 ms at L = 128. R measured 11.95 ms and 0.70 ms. So they differ
# by a factor of three even in the same unit, on GPUs of about the same bandwidth.
#
# The bound at L = 1024: 12 layers x 2 x 4 bytes x 4 x 12 x 1024² scores = 4.8 GB, which take 3.1 ms on W's GPU and 2.7
# ms on R's. W is at 1.2 times its bound, as one fused kernel would be. R is at 4.4 times its bound, as several kernels
# would be that each read and write the scores (maximum, subtraction, exponential, sum, division). At L = 128 R's bound
# is 0.04 ms. R's 0.70 ms is 17 times that: there the launches of small kernels count.
#
# Neither report says which kernels it counts as softmax, nor over how many forward passes it adds up. W lists
# exponentials, maxima and sums as kernels of their own. If they belong to its softmax, W's share is too small, and the
# agreement with one fused kernel is an accident. R does not say whether scaling and mask are inside of its range. W's
# forward pass takes 37 ms at L = 128 and at L = 256, so that is the time of the host. The kernels take less.
#
# What decides: one softmax, written in single ops and fused, in a range that ends with a synchronisation, on one GPU
# at L = 1024, with its launches counted. If the first takes four to five times as long as the second, both reports can
# be right about different programs. If not, W's share leaves out a part. What stays open is which softmax W ran.
# ### END SOLUTION
