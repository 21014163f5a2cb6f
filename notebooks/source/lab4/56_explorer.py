# %% [markdown]
# # The explorer
#
# You have written a budget by hand. `rl.cost.model` writes such a budget for other models and machines. It calls the
# runtime's own operations on tensors without memory and adds up what they count. By default it uses the rules of the
# runtime. With the rules of this lab it must give your numbers:

# %%
from rooflab.cost import Convention

rows = []
for mode, yours in (
    ("prefill", (model_flops(1, 1024, 1600, 25, 48), model_bytes(1, 1024, 1600, 25, 48, 2))),
    ("decode", (decode_model_flops(1, 1024, 1600, 25, 48), decode_model_bytes(1, 1024, 1600, 25, 48, 2))),
):
    rules = {"attention": "composed", "convention": Convention.ANALYSIS}
    whole = rl.cost.model("gpt2-xl", batch=1, length=1024, mode=mode, **rules).total.work
    for what, mine, counted in zip(("FLOPs", "bytes"), yours, (whole.flops, whole.bytes), strict=True):
        rows.append((f"{mode}, {what}", f"{mine:,}", f"{counted:,}"))
Table(("GPT-2 XL, B = 1, L = 1024", "your formulas", "rl.cost.model"), rows)

# %% [markdown]
# The next cell uses the default rules. Norms, embeddings and the output head count, and the attention is fused. Llama 3
# 8B has grouped queries and a gated MLP. This is one token for each of 16 users on an H100:

# %%
rl.cost.model("llama3-8b", batch=16, length=4096, mode="decode", hardware="H100")

# %%
rl.cost.model("llama3-8b", batch=16, length=4096, mode="decode", hardware="H100").plot()

# %% [markdown]
# Change the batch, the length, the machine or the mode. Which part grows with the batch, and which with the length? At
# which batch does reading the caches take longer than reading the weights? One of the models, `"mixtral-8x7b"`, is a
# mixture of experts: each token goes through two of eight MLPs. What does this save with one user, and what with many?
# `rl.cost.from_config("config.json")` reads the configuration of your own model, `list(rl.cost.MODELS)` lists the
# models that it knows by name, and `rooflab cost --help` shows how to do all of this in a terminal.
