// The rungs of the elementwise family on the CPU that need no vectors: the reference, and copies that turn rows into
// columns.
#include <algorithm>
#include <atomic>

#include "core/queue.h"
#include "core/zero_division.h"
#include "kernels/elementwise/reference.h"

namespace rooflab::kernels {
namespace {

// The lines of a tile stay in L1 until each of their words has been moved.
template <class Word>
void turn_tiles(const ElementwiseArgs& args, Queue& queue) {
  constexpr int64_t kTile = 64;      // elements a side
  constexpr int64_t kGrain = 32768;  // elements that are worth waking a thread for
  const int inner = args.ndim - 1, turned = elementwise_turned_dim(args);
  const int64_t rows = args.sizes[turned], columns = args.sizes[inner];
  const int64_t step = args.inputs[0].strides[inner], out_step = args.out_strides[turned];
  int outer_dims = 0;  // all others
  int64_t sizes[kMaxDims], strides[kMaxDims], out_strides[kMaxDims];
  for (int d = 0; d < inner; ++d) {
    if (d == turned) continue;
    sizes[outer_dims] = args.sizes[d];
    strides[outer_dims] = args.inputs[0].strides[d];
    out_strides[outer_dims++] = args.out_strides[d];
  }
  const int64_t down = (rows + kTile - 1) / kTile, across = (columns + kTile - 1) / kTile;
  queue.parallel(args.count / (rows * columns) * down * across, kGrain / (kTile * kTile),
                 [&](int64_t begin, int64_t end, int) {
                   for (int64_t tile = begin; tile < end; ++tile) {
                     const int64_t row = tile / across % down * kTile, column = tile % across * kTile;
                     int64_t offsets[2] = {row + column * step, row * out_step + column};
                     add_offsets(tile / (across * down), outer_dims, sizes, {strides, out_strides}, offsets);
                     const Word* from = static_cast<const Word*>(args.inputs[0].data) + offsets[0];
                     Word* to = static_cast<Word*>(args.out) + offsets[1];
                     const int64_t height = std::min(kTile, rows - row), width = std::min(kTile, columns - column);
                     for (int64_t i = 0; i < height; ++i)
                       for (int64_t j = 0; j < width; ++j) to[i * out_step + j] = from[i + j * step];
                   }
                 });
}

}  // namespace

void check_divisor(const ElementwiseArgs& args, Queue& queue) {
  if (!divides_integers(args)) return;
  constexpr int64_t kGrain = int64_t{1} << 15;  // elements that are worth waking a thread for
  const ElementwiseOperand& divisor = args.inputs[1];
  std::atomic<bool> is_zero{divisor.data == nullptr && divisor.scalar.integer == 0};
  if (divisor.data != nullptr)
    queue.parallel(args.count, kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t offset[1] = {};
        add_offsets(i, args.ndim, args.sizes, {divisor.strides}, offset);
        if (load_as<int64_t>(divisor.dtype, divisor.data, offset[0]) == 0) is_zero = true;
      }
    });
  if (is_zero) throw ZeroDivision(info(args.op).name);
}

void elementwise_cpu_v0_reference(const ElementwiseArgs& args, Queue& queue) {
  check_divisor(args, queue);
  for (int64_t i = 0; i < args.count; ++i) reference_element(args, i);
}

void elementwise_cpu_v3_tiles(const ElementwiseArgs& args, Queue& queue) {
  switch (size_of(args.dtype)) {
    case 1: return turn_tiles<uint8_t>(args, queue);
    case 2: return turn_tiles<uint16_t>(args, queue);
    case 4: return turn_tiles<uint32_t>(args, queue);
    default: return turn_tiles<uint64_t>(args, queue);
  }
}

}  // namespace rooflab::kernels
