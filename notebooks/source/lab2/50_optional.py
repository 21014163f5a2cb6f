# %% [markdown]
# # The optional part
#
# These questions have bonus points. Choose what you want to know. The questions of a row belong together. Question
# b1.1.5c takes a number from b1.1.3c. Otherwise no row needs another.
#
# | question | what you do | time |
# |---|---|---|
# | b1.1.3c | measure what a missing warm-up does to a mean | 35 min |
# | b1.1.4c, b1.1.4d | sort kernels into classes, and count a whole training step | 50 min |
# | b1.1.4e | predict the time of a softmax by its FLOPs and by its bytes | 30 min |
# | b1.1.5b, b1.1.5c | see where a LayerNorm fails in 16 bits, and what 16 bits gain | 45 min |
# | b1.1.6c, b1.1.6d, b1.1.6e | count what mixed precision saves, and which allocations are the largest | 45 min |
# | b1.3a, b1.3b | compile attention and a whole model, and see what changes | 40 min |
# | b1 | explain why a loop of forward passes runs out of memory | 20 min |
# | b2, b3 | write AdamW as one kernel, and recompute instead of saving | 40 min |
