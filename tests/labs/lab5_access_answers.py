"""Answers to 3.4 to 3.6 of Lab 5, coalescing, tiling and alignment, right and wrong."""

from labs.mutants import changed, mutants

BURSTS = """
def bursts(addresses, size, burst):
    found = set()
    for address in addresses:
        found.update(range(address // burst, (address + size - 1) // burst + 1))
    return len(found)

def useful_share(addresses, size, burst):
    wanted = set()
    for address in addresses:
        wanted |= set(range(address, address + size))
    return len(wanted) / bursts(addresses, size, burst) / burst
"""

BURSTS_SORTED = """
def bursts(addresses, size, burst):
    bytes_ = np.unique(np.add.outer(np.array(addresses), np.arange(size)))
    numbers = np.sort(bytes_ // burst)
    return int(1 + (np.diff(numbers) > 0).sum())

def useful_share(addresses, size, burst):
    bytes_ = np.unique(np.add.outer(np.array(addresses), np.arange(size)))
    return bytes_.size / (burst * bursts(addresses, size, burst))
"""

WALK = """
def walk_bursts(N, owns, size, burst):
    total = 0
    for step in range(N):
        for warp in range(N // 32):
            lanes = [warp * 32 + lane for lane in range(32)]
            if owns == "column":
                addresses = [(step * N + lane) * size for lane in lanes]
            else:
                addresses = [(lane * N + step) * size for lane in lanes]
            total += bursts(addresses, size, burst)
    return total

coalesced = "column"
"""

WALK_NUMPY = """
def walk_bursts(N, owns, size, burst):
    places = np.arange(N * N).reshape(N, N) * size
    places = places if owns == "column" else places.T
    warps = places.reshape(-1, 32)
    return sum(bursts([int(one) for one in warp], size, burst) for warp in warps)

coalesced = "column"
"""

TILES = """
def global_reads(N, T):
    tiles = (N + T - 1) // T
    return N * N * tiles + N * N * tiles

def shared_bytes(T):
    return 8 * T**2

def largest_tile(limit):
    return max(2**power for power in range(40) if 8 * 4**power <= limit)

def tile_intensity(T):
    return 0.25 * T
"""

TILES_LOOP = """
def global_reads(N, T):
    return 2 * N**2 * (N // T + (N % T > 0))

def shared_bytes(T):
    return sum(T * T * 4 for matrix in "AB")

def largest_tile(limit):
    T = 1 << 40
    while shared_bytes(T) > limit:
        T >>= 1
    return T

def tile_intensity(T):
    N = 64 * T
    return 2 * N**3 / (4 * global_reads(N, T))
"""

TILES_WALK = """
def global_reads(N, T):
    reads = 0
    for i in range(0, N, T):
        for j in range(0, N, T):
            for k in range(0, N, T):
                rows, columns, depth = min(T, N - i), min(T, N - j), min(T, N - k)
                reads += rows * depth + depth * columns
    return reads

def shared_bytes(T):
    return 2 * T * T * 4

def largest_tile(limit):
    T = 1
    while shared_bytes(2 * T) <= limit:
        T = 2 * T
    return T

def tile_intensity(T):
    return T / 4
"""

PRODUCT = """
def tiled_matmul(A, B, T):
    N = len(A)
    C = np.zeros((N, N))
    steps = range(0, N, T)
    for row in steps:
        for column in steps:
            tile = 0
            for k in steps:
                tile = tile + A[row:row + T, k:k + T] @ B[k:k + T, column:column + T]
            C[row:row + T, column:column + T] = tile
    return C
"""

PRODUCT_SCALARS = """
def tiled_matmul(A, B, T):
    N = A.shape[0]
    C = np.zeros((N, N))
    for i0 in range(0, N, T):
        for j0 in range(0, N, T):
            rows, columns = range(i0, min(i0 + T, N)), range(j0, min(j0 + T, N))
            for k0 in range(0, N, T):
                inner = range(k0, min(k0 + T, N))
                a = {(i, k): A[i, k] for i in rows for k in inner}
                b = {(k, j): B[k, j] for k in inner for j in columns}
                for i in rows:
                    for j in columns:
                        C[i, j] += sum(a[i, k] * b[k, j] for k in inner)
    return C
"""

PRODUCT_STEPS = """
def tiled_matmul(A, B, T):
    N = A.shape[0]
    C = np.zeros((N, N))
    for i0 in range(0, N, T):
        for j0 in range(0, N, T):
            for k0 in range(0, N, T):
                for k in range(k0, min(k0 + T, N)):
                    row, column = B[k, j0:j0 + T], A[i0:i0 + T, k]
                    C[i0:i0 + T, j0:j0 + T] += np.outer(column, row)
    return C
"""

PRODUCT_TURNS = """
def tiled_matmul(A, B, T):
    N = A.shape[0]
    C, steps = np.zeros((N, N)), [np.arange(first, min(first + T, N)) for first in range(0, N, T)]
    for place, rows in enumerate(steps):
        for columns in steps[::-1] if place % 2 else steps:
            for inner in reversed(steps):
                b = B[np.ix_(inner, columns)]
                for i in rows:
                    C[i, columns] += A[i, inner] @ b
    return C
"""

# Each element is read as often as with tiles, and no access is larger than a tile.
PRODUCT_WHOLE = """
def tiled_matmul(A, B, T):
    N = A.shape[0]
    def whole(X):
        x = np.zeros((N, N))
        for i in range(0, N, T):
            for k in range(0, N, T):
                x[i:i + T, k:k + T] = X[i:i + T, k:k + T]
        return x
    for _ in range(0, N, T):
        a, b = whole(A), whole(B)
    return a @ b
"""

PRODUCT_ELEMENTS = """
def tiled_matmul(A, B, T):
    N = A.shape[0]
    for _ in range(0, N, T):
        a, b = (np.array([[X[i, k] for k in range(N)] for i in range(N)]) for X in (A, B))
    return a @ b
"""

PRODUCT_ROWS = """
def tiled_matmul(A, B, T):
    N = A.shape[0]
    C = np.zeros((N, N))
    for i in range(0, N, T):
        for j in range(0, N, T):
            a = np.hstack([A[i:i + T, k:k + T] for k in range(0, N, T)])
            b = np.vstack([B[k:k + T, j:j + T] for k in range(0, N, T)])
            C[i:i + T, j:j + T] = a @ b
    return C
"""

ROWS = """
def row_bursts(K, rows):
    total = 0
    for row in range(rows):
        first = row * K * 2
        total += (first + 127) // 128 - first // 128 + 1
    return total

def padded(K):
    return (K + 63) // 64 * 64
"""

ROWS_SET = """
def row_bursts(K, rows):
    starts = np.arange(rows) * 2 * K
    return int(rows + (starts % 128 != 0).sum())

def padded(K):
    while K % 64:
        K += 1
    return K
"""

RIGHT = {
    "q3_4": [("ranges of bursts", BURSTS), ("sorted", BURSTS_SORTED)],
    "q3_4_walk": [("lane by lane", WALK), ("reshaped", WALK_NUMPY)],
    "q3_5": [
        ("rounded up", TILES),
        ("derived", TILES_LOOP),
        ("the tiles of the text, one after the other", TILES_WALK),
        ("a quotient of floats", changed(TILES, "(N + T - 1) // T", "math.ceil(N / T)")),
    ],
    "q3_5_product": [
        ("a tile at a time", PRODUCT),
        ("number by number", PRODUCT_SCALARS),
        ("a column of A and a row of B at a time", PRODUCT_STEPS),
        ("a row of A at a time, back and forth", PRODUCT_TURNS),
    ],
    "q3_6": [
        ("first and last byte", ROWS),
        ("NumPy", ROWS_SET),
        (
            "64 columns at a time",
            changed(
                ROWS,
                "    return (K + 63) // 64 * 64",
                "    columns = 64\n    while columns < K:\n        columns += 64\n    return columns",
            ),
        ),
    ],
}

WRONG = {
    "q3_4": mutants(
        BURSTS,
        ("bytes over bursts, unaligned", "return len(found)", "return -(-len(set(addresses)) * size // burst)"),
        ("one a lane", "return len(found)", "return len(addresses)"),
        ("repeats count twice", "found = set()", "found = []", "found.update", "found.extend"),
        ("only the first byte", "(address + size - 1) // burst + 1", "address // burst + 1"),
        ("one byte too far", "(address + size - 1)", "(address + size)"),
        ("useful bytes with repeats", "len(wanted)", "len(addresses) * size"),
        ("a lane is useful", "len(wanted) / bursts", "len(addresses) / bursts"),
        ("per cent", "/ burst\n", "/ burst * 100\n"),
    ),
    "q3_4_walk": mutants(
        WALK,
        ("roles exchanged", 'owns == "column"', 'owns == "row"'),
        ("one warp", "range(N // 32)", "range(1)"),
        ("one step", "for step in range(N)", "for step in range(1)"),
        ("elements for bytes", ") * size", ")"),
        ("always coalesced", "(lane * N + step)", "(step * N + lane)"),
        ("the row", '"column"\n', '"row"\n'),
    ),
    "q3_5": mutants(
        TILES,
        ("rounded down", "(N + T - 1) // T", "max(N // T, 1)"),
        ("T squared saved", "tiles = (N + T - 1) // T", "tiles = -(-N // T**2)"),
        ("only A is tiled", "N * N * tiles + N * N * tiles", "N * N * tiles + N**3"),
        ("one matrix", "N * N * tiles + N * N * tiles", "N * N * tiles"),
        ("edge tiles are full", "return N * N * tiles + N * N * tiles", "return 2 * (tiles * T)**2 * tiles"),
        ("one tile in shared memory", "return 8 * T**2", "return 4 * T**2"),
        ("at most 4096", "range(40)", "range(13)"),
        ("a logarithm of a float", "max(2**power for power in range(40) if 8 * 4**power <= limit)",
         "2 ** int(math.log2(math.sqrt(limit / 8)))"),
        ("three tiles", "8 * 4**power", "12 * 4**power"),
        ("less than the limit", "<= limit", "< limit"),
        ("not a power of two", "max(2**power for power in range(40) if 8 * 4**power <= limit)",
         "int((limit / 8)**0.5)"),
        ("bytes of one matrix", "0.25 * T", "0.5 * T"),
        ("MACs", "0.25 * T", "0.125 * T"),
        ("elements", "0.25 * T", "1.0 * T"),
    ),
    "q3_5_product": [*mutants(
        PRODUCT,
        *((f"in {dtype}", "np.zeros((N, N))", f"np.zeros((N, N), '{dtype}')") for dtype in ("int64", "float32")),
        ("without tiles", "    N = len(A)", "    N, T = len(A), 1"),
        ("the library's product", "    C = np.zeros((N, N))", "    return np.asarray(A) @ np.asarray(B)\n    C = 0"),
        ("a row of tiles at once", "k:k + T] @ B[k:k + T", ":] @ B[:", "for k in steps", "for k in range(1)"),
        ("B is read once", "    steps = range", "    B = B[:, :]\n    steps = range"),
        ("edge tiles are skipped", "range(0, N, T)", "range(0, N - T + 1, T)"),
        ("the last k wins", "tile = tile + A", "tile = A"),
        ("A transposed", "A[row:row + T, k:k + T]", "A[k:k + T, row:row + T].T"),
        ("tile M(0,0) again", "k:k + T] @", "0:T] @"),
        ("read twice", "    return C", "    A[0, 0]\n    return C"),
        ("C in the middle loop", "for column in steps:\n            tile = 0\n            for k in steps:",
         "for k in steps:\n            for column in steps:", "tile = tile + A", "tile = A",
         "            C[row:row + T, column:column + T] = tile",
         "                C[row:row + T, column:column + T] += tile"),
        ("C in the outer loop", "    for row in steps:\n        for column in steps:\n            tile = 0\n"
         "            for k in steps:",
         "    for k in steps:\n        for row in steps:\n            for column in steps:",
         "tile = tile + A", "tile = A",
         "            C[row:row + T, column:column + T] = tile",
         "                C[row:row + T, column:column + T] += tile"),
    ), ("all of A and B, tile by tile, then the product", PRODUCT_WHOLE),
       ("all of A and B, element by element, then the product", PRODUCT_ELEMENTS),
       ("a row of tiles and a column of tiles, then the product", PRODUCT_ROWS)],
    "q3_6": mutants(
        ROWS,
        ("always one", "(first + 127) // 128 - first // 128 + 1", "1"),
        ("always two", "(first + 127) // 128 - first // 128 + 1", "2"),
        ("fp32", "row * K * 2", "row * K * 4"),
        ("one byte too far", "(first + 127)", "(first + 128)"),
        ("padded to 32", "(K + 63) // 64 * 64", "(K + 31) // 32 * 32"),
        ("padded to 128", "(K + 63) // 64 * 64", "(K + 127) // 128 * 128"),
        ("always one more", "(K + 63) // 64 * 64", "(K + 64) // 64 * 64"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q3_5": "at most 4096|a logarithm of a float",
    "q3_4_walk": "the row",
}
