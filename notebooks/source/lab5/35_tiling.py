# %% [markdown]
# ## 3.5 Tiling ({points q3_5})
#
# A product of two N x N matrices uses $2 N^3$ operands: N pairs for each element of the result. If every thread reads
# its operands from global memory, each element of the two matrices is read N times. With tiling, the threads of a block
# first copy a tile of T x T elements of A, and one of B, into the **shared memory** of the SM. Then they read all
# operands from there:
#
# ```
# for each tile (i, j) of C:
#     for each k:
#         copy tile (i, k) of A and tile (k, j) of B into shared memory
#         add the product of the two tiles to tile (i, j) of C
# ```
#
# ### a) Reads ({points q3_5_test})
#
# - `global_reads(N, T)`: the elements of A and B that are read from global memory. A tile at an edge may be cut off:
#   only elements that exist are read. T = 1 is the product without tiles.
# - `shared_bytes(T)`: the bytes of shared memory that the two tiles take in fp32
# - `largest_tile(limit)`: the largest power of two T whose two tiles fit into `limit` bytes
# - `tile_intensity(T)`: the FLOPs per byte read from global memory in fp32, if N is a multiple of T


# %% nbgrader={"grade_id": "q3_5", "solution": true}
def global_reads(N, T):
    """Elements of A and B read from global memory by an N x N product in tiles of T x T: an int."""
    ### BEGIN SOLUTION
    return 2 * N * N * -(-N // T)
    ### END SOLUTION


def shared_bytes(T):
    """Bytes of two tiles of T x T numbers in fp32: an int."""
    ### BEGIN SOLUTION
    return 2 * 4 * T * T
    ### END SOLUTION


def largest_tile(limit):
    """The largest power of two T whose two tiles fit into `limit` bytes: an int."""
    ### BEGIN SOLUTION
    T = 1
    while shared_bytes(2 * T) <= limit:
        T *= 2
    return T
    ### END SOLUTION


def tile_intensity(T):
    """FLOPs per byte read from global memory, in fp32."""
    ### BEGIN SOLUTION
    return T / 4
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_5_test", "grade": true, "points": 2}
reads_hint = "how many tiles of C need a given element of A?"
assert_counts(global_reads, {(8, 1): 1024, (8, 4): 256, (8, 8): 128, (9, 4): 486, (5, 100): 50}, reads_hint)
bytes_hint = "how many elements do both tiles have, and how large is each?"
assert_counts(shared_bytes, {(16,): 2048, (1,): 8}, bytes_hint)
tile_hint = "double T while both tiles still fit"
assert_counts(largest_tile, {(2048,): 16, (2047,): 8, (10**5,): 64}, tile_hint)
### BEGIN HIDDEN TESTS
cases = [(64, 1), (128, 32), (100, 32), *draws((1, 60), (1, 70))]  # small enough for loops over the tiles
assert_counts(global_reads, {(N, T): 2 * N * N * ((N + T - 1) // T) for N, T in cases}, reads_hint)
sizes = (32, measure.draw(33, 4096), 10**9)
assert_counts(shared_bytes, {(T,): 8 * T * T for T in sizes}, bytes_hint)
assert_counts(largest_tile, {(48 * 1024,): 64, (164 * 1024,): 128, (8,): 1}, tile_hint)
T = 2 ** measure.draw(27, 30)
assert_counts(largest_tile, {(8 * T * T,): T, (8 * T * T - 1,): T // 2, (measure.draw(9, 31) * T * T,): T}, tile_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_5_intensity_test", "grade": true, "points": 1}
tile_hint = "how many FLOPs does the product do, and how many bytes come from global memory?"
assert_values(tile_intensity, {(16,): 4.0, (1,): 0.25}, tile_hint)
### BEGIN HIDDEN TESTS
assert_values(tile_intensity, {(T,): T / 4 for T in (2, 32, 1024, measure.draw(3, 999))}, tile_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### b) Count the reads ({points q3_5_product_test})
#
# `global_array(values)` is an array in global memory that counts its accesses. Indexing reads: `A[i, k]` or `A[i:j,
# k:l]` returns plain NumPy values, which are on the chip from then on. It counts an element each time it is read. As in
# NumPy, a slice that reaches past the edge ends there.
#
# - `tiled_matmul(A, B, T)`: the product of two such square arrays in fp64, computed in tiles of T x T. The result is a
#   NumPy array in fp64. At any moment only one tile of A, one of B and one of C may be on the chip. As soon as you read
#   from another tile of A, the previous tile of A is gone. The same holds for B. So each element of A and B has to be
#   read once for each pair of tiles that uses it. Finish a tile of C before you begin the next one, because it leaves
#   the chip as well. You may read a tile as a whole or in parts, and you may multiply tiles with `@`. The test follows
#   the order of your reads.

# %%
example = global_array(np.arange(16.0).reshape(4, 4))
example[0:2, 2:4], example[3, 3], f"{example.reads} elements read"


# %% nbgrader={"grade_id": "q3_5_product", "solution": true}
def tiled_matmul(A, B, T):
    """A @ B of two square arrays in global memory, computed in tiles of T x T: a NumPy array."""
    ### BEGIN SOLUTION
    N = A.shape[0]
    C = np.zeros((N, N))
    for i in range(0, N, T):
        for j in range(0, N, T):
            for k in range(0, N, T):
                C[i : i + T, j : j + T] += A[i : i + T, k : k + T] @ B[k : k + T, j : j + T]
    return C
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_5_product_test", "grade": true, "points": 3}
def check_tiles(N, T, each):
    A, B = measure.rng().standard_normal((2, N, N))
    seen = measure.accesses(tiled_matmul, A, B, T)
    case = f"tiled_matmul of {N} x {N} in tiles of {T} x {T}"
    assert_close(seen.value, A @ B, rtol=0, atol=1e-9, name=case)
    for name, counts in zip("AB", seen.reads[:2], strict=True):
        low, high = int(counts.min()), int(counts.max())
        said = f"{case}: elements of {name} were read {low} to {high} times each, expected {each} times"
        assert low == high == each, said
    lab5.assert_tiles(case, seen.order, N, T)


check_tiles(8, 4, each=2)
check_tiles(6, 1, each=6)
check_tiles(10, 4, each=3)
check_tiles(5, 8, each=1)
### BEGIN HIDDEN TESTS
T, large = measure.draw(3, 5), measure.draw(10, 16)
drawn = (measure.draw(2, 4) * T, T), (measure.draw(2, 3) * T + measure.draw(1, T - 1), T)
for N, T in [*drawn, (1, 1), (large, large), (large + 1, large)]:
    check_tiles(N, T, each=-(-N // T))
### END HIDDEN TESTS

# %%
N = 4096
tiles = [2**power for power in range(8)]
reads = {"read from global memory": {T: 4 * global_reads(N, T) for T in tiles}}
levels = {"compulsory: each element once": 4 * 2 * N * N}
rl.plots.plot_lines(
    reads, "B", "bytes", xlabel="side T of a tile", title=f"Product of two {N} x {N} matrices, fp32", levels=levels
)

# %%
a100 = SPECS["A100 SXM 40GB"]
points = {f"T = {T}": tile_intensity(T) for T in (1, 4, 16, 32, 64)}
title = f"Tiles against the ridge of an A100 in fp32 ({rl.roofline.ridge(a100, 'float32'):.2f} FLOP/byte)"
rl.plots.plot_roofline(a100, points, dtype="float32", title=title)

# %% [markdown]
# Which power of two is the first whose intensity passes the ridge in fp32, and which is the largest whose tiles fit
# into 48 KiB of shared memory? Kernels with larger tiles keep the tile of C in registers.
#
# What are tiles worth? `rl.matmul` is a ladder of kernels, and each step adds one idea. Their source is in
# `csrc/kernels/matmul` of a release or of the source archive; a wheel does not hold it. Here they are on this machine,
# from plain loops to tiles in registers:

# %%
N = 2048 if device == "cuda" else 384
a, b = rl.randn(N, N, device=device), rl.randn(N, N, device=device)
steps = ("v0", "v1", "v2", "v2a", "v2b", "v2c", "v3")
rows, before = [], None
for rung in reversed(rl.variants("matmul", device)):
    if rung.name.split("_")[0] not in steps:
        continue
    ms = latency(rl.matmul, a, b, variant=rung.name, warmup=1, repeat=5).median_ms
    gain = f"x {before / ms:.1f}" if before else ""
    rows.append((rung.name, rung.idea, f"{ms:.2f}", f"{2e-6 * N**3 / ms:,.1f}", gain))
    before = ms
title = f"{N} x {N} products in fp32 on {lab5.machine_name(device)}"
Table(("rung", "its idea", "ms", "GFLOP/s", "over the rung before"), rows, title=title)
