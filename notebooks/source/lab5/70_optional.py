# %% [markdown]
# # The optional part
#
# These questions have bonus points. Choose what you want to know: no row needs another.
#
# | question | what you do | time |
# |---|---|---|
# | b0.1, b0.2 | write contractions as products, and one step of AdamW | 35 min |
# | b0.3, b0.4 | write the schedule of a learning rate, and train a tokenizer | 45 min |
# | b1.2, b1.3 | find the largest model that fits, and what one training step holds in memory | 35 min |
# | b1.4, b1.5 | find the limits of short number formats, and the size of one large layer | 45 min |
# | b1.6 | count the FLOPs of a forward and a backward pass | 25 min |
# | b3.3 | recompute whole blocks, and count what that saves | 25 min |
# | b5.4 | read a profile without counting anything twice | 20 min |
