"""Answers to Part 4 of Lab 5, tiles and waves, right and wrong."""

from labs.mutants import mutants

COUNT = """
def tile_count(M, N, tile_m, tile_n):
    return ((M + tile_m - 1) // tile_m) * ((N + tile_n - 1) // tile_n)

def tile_share(M, N, tile_m, tile_n):
    rows, columns = -(-M // tile_m), -(-N // tile_n)
    return (M / (rows * tile_m)) * (N / (columns * tile_n))
"""

COUNT_LOOP = """
def tile_count(M, N, tile_m, tile_n):
    return len(range(0, M, tile_m)) * len(range(0, N, tile_n))

def tile_share(M, N, tile_m, tile_n):
    work = tile_count(M, N, tile_m, tile_n) * tile_m * tile_n
    return M * N / work
"""

WAVES = """
def waves(N, tile, sms):
    tiles = ((N + tile[0] - 1) // tile[0]) * ((N + tile[1] - 1) // tile[1])
    return (tiles + sms - 1) // sms

def wave_efficiency(N, tile, sms):
    tiles = -(-N // tile[0]) * -(-N // tile[1])
    return tiles / (sms * waves(N, tile, sms))

def throughput_gain(N, bigger, tile, sms):
    speed = {size: size**3 / (waves(size, tile, sms) * size) for size in (N, bigger)}
    return speed[bigger] / speed[N]

def cliffs(tile, sms, first, last):
    found, before = [], waves(first, tile, sms)
    for N in range(first + 1, last + 1):
        now = waves(N, tile, sms)
        if now > before:
            found.append(N)
        before = now
    return found
"""

WAVES_STEPS = """
def waves(N, tile, sms):
    return math.ceil(tile_count(N, N, *tile) / sms)

def wave_efficiency(N, tile, sms):
    in_waves = tile_count(N, N, *tile) / sms
    return in_waves / math.ceil(in_waves)

def throughput_gain(N, bigger, tile, sms):
    return (bigger / N) ** 2 * waves(N, tile, sms) / waves(bigger, tile, sms)

def cliffs(tile, sms, first, last):
    number = np.array([waves(N, tile, sms) for N in range(first, last + 1)])
    return [int(place) + first + 1 for place in np.flatnonzero(np.diff(number) > 0)]
"""

RIGHT = {
    "q4_1": [("rounded up", COUNT), ("ranges", COUNT_LOOP)],
    "q4_2": [("loops", WAVES), ("NumPy", WAVES_STEPS)],
}

WRONG = {
    "q4_1": mutants(
        COUNT,
        ("rounded down", "((M + tile_m - 1) // tile_m) * ((N + tile_n - 1) // tile_n)",
         "(M // tile_m) * (N // tile_n)"),
        ("a ratio of areas", "((M + tile_m - 1) // tile_m) * ((N + tile_n - 1) // tile_n)",
         "-(-M * N // (tile_m * tile_n))"),
        ("rounded up by a float", "((M + tile_m - 1) // tile_m)", "math.ceil(M / tile_m)"),
        ("one side rounded", "((M + tile_m - 1) // tile_m)", "(M // tile_m)"),
        ("a float", "return ((M", "return 1.0 * ((M"),
        ("the sides exchanged", "(M + tile_m - 1) // tile_m", "(M + tile_n - 1) // tile_n",
         "((N + tile_n - 1) // tile_n)", "((N + tile_m - 1) // tile_m)"),
        ("the share of one side", " * (N / (columns * tile_n))", ""),
        ("the inverse", "return (M / (rows * tile_m)) * (N / (columns * tile_n))",
         "return rows * tile_m * columns * tile_n / (M * N)"),
    ),
    "q4_2": mutants(
        WAVES,
        ("waves with a fraction", "(tiles + sms - 1) // sms", "tiles / sms"),
        ("waves rounded down", "(tiles + sms - 1) // sms", "max(tiles // sms, 1)"),
        ("tiles of 128 x 128", "((N + tile[0] - 1) // tile[0])", "((N + 127) // 128)"),
        ("1793 on every GPU", "(tiles + sms - 1) // sms", "(tiles + 107) // 108"),
        ("one side", " * ((N + tile[1] - 1) // tile[1])", ""),
        ("efficiency of one wave", "(sms * waves(N, tile, sms))", "sms"),
        ("always efficient", "return tiles / (sms * waves(N, tile, sms))", "return 1.0"),
        ("waves alone", "size**3 / (waves(size, tile, sms) * size)", "1 / waves(size, tile, sms)"),
        ("the inverse", "speed[bigger] / speed[N]", "speed[N] / speed[bigger]"),
        ("time without the inner dimension", "(waves(size, tile, sms) * size)", "waves(size, tile, sms)"),
        ("the N before", "found.append(N)", "found.append(N - 1)"),
        ("the last one left out", "last + 1)", "last)"),
        ("the first one as well", "range(first + 1", "range(first",
         "before = [], waves(first,", "before = [], waves(first - 1,"),
        ("every change of tiles", "now = waves(N, tile, sms)", "now = -(-N // tile[0]) * -(-N // tile[1])",
         "[], waves(first, tile, sms)", "[], -(-first // tile[0]) * -(-first // tile[1])"),
    ),
}  # fmt: skip

ONLY_HIDDEN: dict[str, str] = {}
