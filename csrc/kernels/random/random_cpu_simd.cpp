// Random numbers on the CPU, all threads; the compiler vectorises over Philox blocks.
#include "kernels/common/parallel.h"
#include "kernels/random/philox.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// A group of blocks is computed side by side, element by element of a block, then interleaved into out.
constexpr int kGroup = 16;

template <RandomKind kKind, class T>
void fill_blocks(const RandomArgs& args, int64_t first, int64_t last) {
  constexpr int kWidth = kPerBlock<T>;
  T* out = static_cast<T*>(args.out);
  for (int64_t begin = first; begin < last; begin += kGroup) {
    T columns[kWidth][kGroup];
    for (int j = 0; j < kGroup; ++j) {
      T block[kWidth];
      random_block<kKind>(args, static_cast<uint64_t>(begin + j), block);
      for (int i = 0; i < kWidth; ++i) columns[i][j] = block[i];
    }
    const int64_t left = args.count - begin * kWidth, whole = (last - begin) * kWidth;
    const int64_t n = left < whole ? left : whole;
    for (int k = 0; k < kGroup * kWidth && k < n; ++k) out[begin * kWidth + k] = columns[k % kWidth][k / kWidth];
  }
}

}  // namespace

void random_cpu_v1_blocked(const RandomArgs& args, Stream) {
  dispatch_random(args, [&]<RandomKind kKind, class T>() {
    const int64_t blocks = (args.count + kPerBlock<T> - 1) / kPerBlock<T>;
    parallel_for(blocks, 1024, [&](int64_t first, int64_t last) { fill_blocks<kKind, T>(args, first, last); });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
