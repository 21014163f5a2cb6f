// The ladder of cat: see cat.h for what it computes.
#include "kernels/cat/cat.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_PER_ISA(cat_cpu_v1_pieces, CatArgs)
ROOFLAB_CUDA_RUNG(cat_cuda_v1_pieces, CatArgs)

namespace {

bool cat_accepts(const CatArgs& args, const Target&) { return args.alike; }

}  // namespace

const Ladder<CatArgs> cat_ladder(
    "cat", {
               {"v1_pieces", kCuda, "one launch: blockIdx.y says which piece, in words of up to 16 bytes; of one dtype",
                cat_accepts, cat_cuda_v1_pieces},
               {"v0_composed", kCuda, "a copy or a cast of each piece", nullptr, composed<CatArgs>},
               {"v1_pieces", kCpu, "one launch: a part of y at a time is filled from every piece; of one dtype",
                cat_accepts, cat_cpu_v1_pieces},
               {"v0_composed", kCpu, "a copy or a cast of each piece", nullptr, composed<CatArgs>},
           });

}  // namespace rooflab::kernels
