# %% [markdown]
# ## b1.1.4c What else takes time? ({points b1_1_4c})
#
# A profile contains hundreds of kernels. To compare models, group them into a few **classes**. Write two functions.
#
# `classify(kernel)` returns the class of a kernel, a dict with `"op"` and `"name"`. Kernels of rooflab know their op.
# Kernels of other libraries have the op `""`, and only their name tells what they do. Use the op if there is one,
# otherwise the name:
#
# | class | if the op is | if the name contains, in any case |
# |---|---|---|
# | `"gemm"` | `matmul`, `linear` | `gemm`, `cutlass`, `nvjet` |
# | `"softmax"` | `softmax` | `softmax` |
# | `"norm"` | `rms_norm`, `layer_norm` | `norm` |
# | `"embedding"` | `embedding` | `embedding` |
# | `"copy"` | `copy`, `cat`, `fill` | `memcpy`, `memset`, `copy`, `fill` |
# | `"optimizer"` | `adamw` | `adam` |
# | `"elementwise"` | any other | none of these |
#
# An op whose name ends in `_backward` is in the class of the op without that ending. If several rows fit a name, take
# the first.
#
# `by_class(kernels)` returns `{class: {"us": ..., "launches": ..., "bytes": ..., "share": ...}}`, the class with the
# most time first. `"us"` is the time of all kernels of the class, and `"share"` (0 to 1) divides it by the time of all
# kernels in the list. Leave out classes that did not run. Each kernel also has `"duration_us"` and `"bytes"`.


# %% nbgrader={"grade_id": "b1_1_4c", "solution": true}
def classify(kernel):
    """The class of a kernel: "gemm", "softmax", "norm", "embedding", "copy", "optimizer" or "elementwise"."""
    ### BEGIN SOLUTION
    ops = {"matmul": "gemm", "linear": "gemm", "softmax": "softmax", "rms_norm": "norm", "layer_norm": "norm"}
    ops |= {"embedding": "embedding", "copy": "copy", "cat": "copy", "fill": "copy", "adamw": "optimizer"}
    if kernel["op"]:
        return ops.get(kernel["op"].removesuffix("_backward"), "elementwise")
    parts = {"gemm": "gemm cutlass nvjet", "softmax": "softmax", "norm": "norm", "embedding": "embedding"}
    parts |= {"copy": "memcpy memset copy fill", "optimizer": "adam"}
    name = kernel["name"].lower()
    return next((one for one, words in parts.items() if any(w in name for w in words.split())), "elementwise")
    ### END SOLUTION


def by_class(kernels):
    """{class: {"us", "launches", "bytes", "share"}}, the class with the most time first."""
    ### BEGIN SOLUTION
    found = {}
    for kernel in kernels:
        row = found.setdefault(classify(kernel), {"us": 0.0, "launches": 0, "bytes": 0})
        row["us"] += kernel["duration_us"]
        row["launches"] += 1
        row["bytes"] += kernel["bytes"]
    busy_us = sum(row["us"] for row in found.values())
    for row in found.values():
        row["share"] = row["us"] / busy_us
    return dict(sorted(found.items(), key=lambda item: -item[1]["us"]))
    ### END SOLUTION


# %% nbgrader={"grade_id": "b1_1_4c_test", "grade": true, "points": 2}
def check_classes(**classes):
    for right, kernels in classes.items():
        for kernel in kernels.split():
            op, _, name = kernel.rpartition(":")
            got = classify({"op": op, "name": name})
            assert got == right, f"kernel {name!r} with op {op!r}: expected class {right!r}, got {got!r}"


check_classes(
    gemm="matmul:matmul_cpu_v3 :ampere_sgemm_128x64_nn :nvjet_sst_64x8", softmax="softmax:s :softmax_warp_forward"
)
check_classes(
    norm="rms_norm_backward:r :LayerNormKernel", elementwise="mul:m rope:r :silu_kernel", copy="copy:c :Memcpy_HtoD"
)
check_classes(gemm="linear_backward:l", embedding="embedding:e", optimizer="adamw:a :FusedAdamKernel")
check_classes(elementwise="rope:gemm_rope exp:softmax_exp matmul_bias:m")  # an op that is in no row, whatever its name
check_classes(elementwise="softmax_backward_data:x")  # this op does not end in _backward
check_classes(gemm=":gemm_softmax", softmax=":norm_softmax", norm=":copy_norm", copy=":adam_copy")  # the first row
### BEGIN HIDDEN TESTS
tile = f"{measure.draw(16, 256)}x{measure.draw(16, 256)}"
table = {"gemm": "matmul linear", "softmax": "softmax", "norm": "rms_norm layer_norm", "embedding": "embedding"}
table |= {"copy": "copy cat fill", "optimizer": "adamw", "elementwise": "swiglu add sum"}
check_classes(**{name: " ".join(f"{op}:x {op}_backward:x" for op in ops.split()) for name, ops in table.items()})
check_classes(gemm=f":cutlass_tensorop_{tile} :Kernel2_SGEMM_{tile} :{tile}_nvjet", softmax=f":softmax_{tile}")
check_classes(copy=":memset :CopyKernel :fill_reverse", elementwise=":reduce_kernel")
rows = {"gemm": "cutlass", "softmax": "softmax", "norm": "norm", "embedding": "embedding", "copy": "memset"}
rows["optimizer"] = "adam"
for first, second in ((0, 2), (1, 3), (2, 3), (3, 4), (4, 5), (0, 5)):
    (name, word), (_, later) = (list(rows.items())[place] for place in (first, second))
    check_classes(**{name: f":{word}_{later}_{tile} :{later}_{word}"})
ops = ("copy_to", "concat", "log_softmax", "norm", "embedding_bag", "adam", "gemm", "fill_diagonal", "batched_matmul")
check_classes(elementwise=" ".join(f"{op}:{word}_{tile}" for op in ops for word in rows.values()))
check_classes(elementwise=f"mul:adam_{tile} sum_backward:layer_norm_{tile} topk:fill_{tile}")
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b1_1_4c_table_test", "grade": true, "points": 2}
class_hint = "add up the durations of the class, and divide by those of all kernels"


def check_table(kernels, order):
    """`kernels` are pairs of a class and a kernel."""
    names = ("op", "name", "start_us", "duration_us", "bytes")
    rows = [dict(zip(names, one, strict=True)) for _, one in kernels]
    got = by_class(rows)
    assert isinstance(got, dict), f"by_class has to return a dict, not a {type(got).__name__}"
    assert list(got) == order, f"expected the classes {order} in order of time, got {list(got)}"
    busy = sum(row["duration_us"] for row in rows)
    for name in order:
        assert_keys(f"by_class()[{name!r}]", got[name], ("us", "launches", "bytes", "share"))
        own = [row for row, (kind, _) in zip(rows, kernels, strict=True) if kind == name]
        assert got[name]["launches"] == len(own), f"{name}: expected {len(own)} launches, got {got[name]['launches']}"
        moved = sum(row["bytes"] for row in own)
        assert got[name]["bytes"] == moved, f"{name}: expected {moved} bytes, got {got[name]['bytes']}"
        assert_near(f"{name}: us", got[name]["us"], sum(row["duration_us"] for row in own), 1e-6, class_hint)
        assert_near(
            f"{name}: its share of the time of all kernels",
            got[name]["share"],
            got[name]["us"] / busy,
            1e-6,
            class_hint,
        )


kernels = [
    ("gemm", ("matmul", "m", 0, 50.0, 800)),
    ("elementwise", ("add", "a", 90, 2.0, 30)),
    ("elementwise", ("mul", "b", 120, 3.0, 40)),
    ("softmax", ("softmax", "s", 200, 9.0, 5)),
]
check_table(kernels, ["gemm", "softmax", "elementwise"])
### BEGIN HIDDEN TESTS
others = [("elementwise", ("", "vectorized_add", 9, 4.0, 7)), ("copy", ("copy", "c", 20, 2.0, 99))]
check_table([("gemm", ("", "nvjet_x", 0, 1.0, 10)), *others] * 3, ["elementwise", "copy", "gemm"])
us, moved = float(measure.draw(1, 50)), measure.draw(1, 99)
norm = ("norm", ("rms_norm", "r", 90, us + 0.5, 1))
check_table([("optimizer", ("adamw", "a", 0, us, moved)), norm], ["norm", "optimizer"])
### END HIDDEN TESTS

# %%
rows = []
for phase in ("forward", "backward"):
    inside = [kernel for kernel in kernels_of_step if f"/{phase}" in f"/{kernel['range']}"]
    for name, one in by_class(inside).items():
        numbers = (one["launches"], f"{one['bytes'] / 1e6:.1f}", f"{one['us']:,.0f}", f"{one['share']:.1%}")
        rows.append((phase, name, *numbers))
Table(("phase", "class", "launches", "MB moved", "µs", "share of busy time"), rows, title="The step of 1.1.4a by class")

# %% [markdown]
# Compare the share of the time with the number of launches. The matrix products take most of the time, but most
# launches are something else. The bytes explain why the others take time at all: an elementwise kernel computes little
# with each number, but it has to read and write all of them. On a GPU that multiplies fast, the share of these kernels
# grows. For the small model at L = 128, W finds that products take 72.6 per cent of the kernel time. R finds 88.0 per
# cent on another GPU.
#
# <details><summary>The same in PyTorch, Nsight Systems and Nsight Compute</summary>
#
# | here | in PyTorch | at NVIDIA |
# |---|---|---|
# | `rl.range("forward")` | `torch.profiler.record_function("forward")` | `nvtx.annotate("forward")` |
# | `rl.profile()` | `torch.profiler.profile()` | `nsys profile` |
# | `table(sort_by="cuda_time_total")` | the same | `nsys stats` |
# | `export_chrome_trace(path)` | the same | a file of Nsight Systems |
# | `rl.memory.record()` | `torch.cuda.memory._record_memory_history()` | `nsys profile --cuda-memory-usage=true` |
# | `timeline.save_snapshot(path)` | `torch.cuda.memory._dump_snapshot(path)` | |
#
# If you put your steps into a file `step.py`, these commands profile it on a GPU:
#
# ```sh
# nsys profile --trace=cuda,nvtx --output=step python step.py
# ncu --nvtx --nvtx-include "forward/" --launch-count 20 --export step python step.py
# ```
#
# Both show each range that you open, and those of the blocks of a model. On a cluster they run in a job. For Slurm and
# Singularity, with an image `course.sif` and a virtual environment `.venv` in which you installed rooflab from inside
# of this image, submit this file with `sbatch`:
#
# ```sh
# #!/bin/bash
# #SBATCH --gres=gpu:1
# #SBATCH --cpus-per-task=4
# #SBATCH --time=00:15:00
# singularity exec --nv course.sif bash -c 'source .venv/bin/activate &&
#   nsys profile --trace=cuda,nvtx --output=step-$SLURM_JOB_ID python step.py'
# ```
# </details>
