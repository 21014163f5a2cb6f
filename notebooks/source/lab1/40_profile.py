# %% [markdown]
# # Part 4. Looking inside: kernels, launches, fusion
#
# ## 4.1 Profile a matrix multiplication (not graded)
#
# A latency says how long a call took. A *profile* says what ran: every kernel with its name, its start and its
# duration. A **kernel** is a function that runs on the device. A **launch** is one request to run it.
#
# Profiles need a warm-up too. `default_schedule` takes ten steps: it ignores 1, warms up for 3, and records 6. You say
# where a step ends:
#
# ```python
# with rl.profile(schedule=default_schedule) as prof:
#     for _ in range(10):
#         rl.exp(x)
#         prof.step()
# ```
#
# Afterwards:
#
# - `prof.key_averages().table(sort_by="duration", row_limit=10)` is a table to print;
# - `prof.kernels` lists the recorded kernels (`.name`, `.op`, `.step`, `.start_us`, `.duration_us` ...);
# - `count_cuda_kernels(prof)` counts the launches **in one step** by category, on whatever device they ran. The six
#   recorded steps together hold six times as many, so do not report those as one call.
#
# Write `profile_matmul()`. It profiles `rl.matmul` on two 128x128 matrices in bf16
# (`rl.randn(128, 128, dtype="bfloat16", device=device)`) and prints the table. It returns a dict: `"kernel"` is the
# name of the kernel that computed the product, and `"launches_per_call"` the number of launches of one call.


# %% nbgrader={"grade_id": "q4_1", "solution": true}
def profile_matmul():
    """{"kernel": name, "launches_per_call": int} of rl.matmul on two 128x128 bf16 matrices."""
    ### BEGIN SOLUTION
    a, b = (rl.randn(128, 128, dtype="bfloat16", device=device) for _ in range(2))
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            rl.matmul(a, b)
            prof.step()
    print(prof.key_averages().table(sort_by="duration", row_limit=10))
    product = max(prof.kernels, key=lambda kernel: kernel.duration_us)
    return {"kernel": product.name, "launches_per_call": count_cuda_kernels(prof)["total"]}
    ### END SOLUTION


# %%
matmul_profile = profile_matmul()
print(matmul_profile)
said = f"expected 1 or 2 launches of one call, got {matmul_profile['launches_per_call']}"
assert 1 <= matmul_profile["launches_per_call"] <= 2, said
assert matmul_profile["kernel"] != "matmul", "return the name of the kernel (kernel.name), not of the op"

# %% [markdown]
# The kernel's name says which operation it computes, on which device, and by which idea, or which library it is from.
# `rl.variants("matmul")` lists all kernels that rooflab has for this operation, from the fastest to the simplest. Try
# `rl.matmul(a, b, variant=...)` with another one and compare the times.

# %%
for variant in rl.variants("matmul"):
    print(variant)
