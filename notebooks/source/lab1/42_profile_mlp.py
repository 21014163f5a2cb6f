# %% [markdown]
# ## 4.2 Profile the MLP (not graded)
#
# Profile the MLP of the 270M model with B = 4 sequences of L = 1024 tokens in bf16. Each step calls it once. On a slow
# machine the cell takes fewer tokens, so that ten steps stay short. `mlp` names its parts with `rl.range`, and every
# kernel of the profile knows the range in which it was launched.

# %%
weights = make_mlp_weights(GEMMA3_270M_CONFIG)
D, B, L = GEMMA3_270M_CONFIG["hidden_size"], 4, 64
x = rl.randn(B, L, D, dtype="bfloat16", device=device)
ms = latency(mlp, x, weights, warmup=2, repeat=5).median_ms
while L < 1024 and 2 * ms < 200:  # twice the tokens take about twice the time
    L, ms = 2 * L, 2 * ms
x = rl.randn(B, L, D, dtype="bfloat16", device=device)

with rl.profile(schedule=default_schedule) as prof:
    for _ in range(10):
        mlp(x, weights)
        prof.step()
print(f"B = {B}, L = {L}")
print(prof.key_averages().table(sort_by="duration", row_limit=10))
prof.plot_timeline(title=f"MLP of Gemma 3 270M, B = {B}, L = {L}: one call")

# %% [markdown]
# Each bar is a kernel. The rows are the ranges, from the first to the last. `prof.export_chrome_trace` writes all
# recorded steps to a file, here in a new temporary folder. Open it at [ui.perfetto.dev](https://ui.perfetto.dev) or in
# Chrome under `chrome://tracing`. There you can zoom in, and a click on a kernel shows its launch shape and its work.

# %%
trace = os.path.join(tempfile.mkdtemp(prefix="rooflab-"), "mlp_trace.json")
prof.export_chrome_trace(trace)
print(trace)

# %% [markdown]
# Where does the time go? The table adds up the kernels of each range, for one call. Compare the share of the time with
# the share of the FLOPs.

# %%
calls = len(prof.steps)
time_us = {name: sum(k.duration_us for k in prof.kernels if k.range == name) / calls for name in MLP_PARTS}
flops = {name: sum(k.cost.flops for k in prof.kernels if k.range == name) / calls for name in MLP_PARTS}
rows = []
for name in MLP_PARTS:
    launches = sum(kernel.range == name for kernel in prof.kernels) / calls
    shares = (time_us[name] / sum(time_us.values()), flops[name] / sum(flops.values()))
    rows.append((name, f"{launches:g}", f"{time_us[name]:.1f}", *(f"{share:.2%}" for share in shares)))
Table(("range", "launches", "µs", "share of the time", "share of the FLOPs"), rows, title="One call of the MLP")

# %% [markdown]
# `act_fn` and `mul` do almost no arithmetic, and they take more of the time than of the FLOPs. They read and write
# matrices of B x L x I numbers and are memory-bound. The faster a machine computes, the more of the time they take.
# The next section looks at such operations.
