"""Sizes at which rungs cut their work, from which specs make samples one below, at and one above.

A test compares them with the constants of the same names in `csrc/kernels`.
"""

ELEMENTWISE = "elementwise/staged.h"
LINES = "common/line_simd.h"
COLUMNS = "common/columns.h"
COLUMN_SUMS = "common/column_sums.h"
ACTIVATION_BACKWARD = "activation_backward/activation_backward_cpu_simd.cpp"
SOFTMAX = "softmax/softmax.h"
SORT = "sort/sort.h"
CUMSUM = "cumsum/cumsum.h"
MEDIAN = "median/median.h"
NONZERO = "nonzero/nonzero.h"
GATHER = "gather/gather.h"
SOFTMAX_SIMD = "common/max_sum_simd.h"
ROW = "common/row_simd.h"
REDUCE = "reduce/reduce_cpu_simd.cpp"
PACKED = "matmul/matmul_packed.h"
PACKED_SIMD = "matmul/matmul_cpu_packed_simd.cpp"
BLOCKED = "matmul/matmul_cpu.cpp"
REGISTER_TILE = "matmul/matmul_cpu_register_tile_simd.cpp"
BF16_DOT = "matmul/matmul_cpu_bf16_dot.cpp"
BF16_MMLA = "matmul/matmul_cpu_bf16_mmla.cpp"
AMX = "matmul/matmul_cpu_amx_tile.cpp"
GEMV = "matmul/matmul_cpu_gemv_simd.cpp"
ATTENTION = "attention/attention_cpu_simd.cpp"
ATTENTION_SPLIT = "attention/attention.h"
ATTENTION_TILE = "attention/attention_cpu.cpp"
ATTENTION_BACKWARD = "attention/attention_backward_cpu_simd.cpp"

TILES = {
    ELEMENTWISE: {"kBlock": 512, "kParallelGrain": 1 << 15},
    LINES: {"kWalks": 4, "kChunkLines": 16},
    ACTIVATION_BACKWARD: {"kChunk": 2048},
    COLUMNS: {"kColumns": 64},
    COLUMN_SUMS: {
        "kBlockRows": 8,
        "kMostRowBlocks": 256,
        "kMostBlockRows": 64,
        "kColumnSumElements": 16,
        "kWarpRowElements": 20,
    },
    SOFTMAX: {"kSoftmaxCpuScratch": 128 << 10, "kSoftmaxStaged": 4096, "kSoftmaxStagedWidth": 1536},
    SORT: {
        "kSortShort": 512,
        "kSortBlock": 4096,
        "kSortChunk": 2048,
        "kSortTile": 2048,
        "kSelectMost": 256,
        "kSelectBytes": 32768,
        "kSelectShort": 4096,
    },
    CUMSUM: {"kCumsumTile": 1024},
    MEDIAN: {"kMedianBytes": 32768, "kMedianShort": 256},
    NONZERO: {"kNonzeroPortion": 32768, "kNonzeroTile": 4096},
    GATHER: {"kGatherStrip": 1024},
    SOFTMAX_SIMD: {"kBlock": 2048},
    ROW: {"kRun": 4},
    REDUCE: {"kColumns": 64, "kChunk": 16384, "kGather": 512, "kRows": 256},
    PACKED: {"kRows": 4096},
    PACKED_SIMD: {"kMr": 14, "kNc": 2048},
    BLOCKED: {"kRows": 64, "kColumns": 256, "kDepth": 128},
    REGISTER_TILE: {"kRows": 6, "kDepth": 512},
    BF16_DOT: {"kNr": 32, "kKc": 512},
    BF16_MMLA: {"kMr": 8, "kNr": 12, "kKc": 1024},
    AMX: {"kMr": 32, "kKc": 2048},
    GEMV: {"kGroup": 4, "kStretch": 4096},
    ATTENTION: {"kQueries": 256},
    ATTENTION_SPLIT: {"kAttentionSplitRows": 64, "kAttentionSplitKeys": 64},
    ATTENTION_TILE: {"kQueries": 32, "kKeys": 64},
    ATTENTION_BACKWARD: {"kKeys": 128},
}


def tile(source: str, name: str) -> int:
    """The constant of that name in a source of `csrc/kernels`; with AVX-512 where the instruction set decides.

    Examples
    --------
    >>> tile(ELEMENTWISE, "kBlock")
    512
    """
    return TILES[source][name]


def around(*sizes: int) -> tuple[int, ...]:
    """Each size with its neighbours.

    Examples
    --------
    >>> around(64, 512)
    (63, 64, 65, 511, 512, 513)
    """
    return tuple(size + step for size in sizes for step in (-1, 0, 1))
