// triangle on the CPU: see triangle.h for what it computes.
#include <algorithm>
#include <cstring>

#include "kernels/common/strided.h"
#include "kernels/triangle/triangle.h"

namespace rooflab::kernels {

void triangle_cpu_v0_reference(const TriangleArgs& args, Queue&) {
  const int64_t size = size_of(args.dtype), columns = args.sizes[args.ndim - 1], rows = args.sizes[args.ndim - 2];
  for (int64_t i = 0; i < args.count; ++i) {
    const int64_t column = i % columns, from_diagonal = column - i / columns % rows - args.diagonal;
    int64_t offsets[1] = {};
    add_offsets(i, args.ndim, args.sizes, {args.strides}, offsets);
    char* y = static_cast<char*>(args.y) + i * size;
    if (args.upper ? from_diagonal >= 0 : from_diagonal <= 0)
      std::memcpy(y, static_cast<const char*>(args.x) + offsets[0] * size, size);
    else
      std::memset(y, 0, size);
  }
}

void triangle_cpu_v1_parallel(const TriangleArgs& args, Queue& queue) {
  constexpr int64_t kGrain = 16384;  // elements that are worth waking a thread for
  const int64_t size = size_of(args.dtype), columns = args.sizes[args.ndim - 1], rows = args.sizes[args.ndim - 2];
  const int64_t step = args.strides[args.ndim - 1];
  const bool rows_adjoin = step == 1 && args.strides[args.ndim - 2] == columns;
  queue.parallel(args.count / columns, std::max<int64_t>(kGrain / columns, 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin, next; row < end; row = next) {
      const int64_t in_matrix = row % rows, diagonal = in_matrix + args.diagonal;
      const int64_t first = args.upper ? std::clamp<int64_t>(diagonal, 0, columns) : 0;
      int64_t last = args.upper ? columns : std::clamp<int64_t>(diagonal + 1, 0, columns);
      // Rows of zeros, and rows that are kept whole, are treated as one long row; they end where `until` says.
      const bool none = first == last, all = last - first == columns && rows_adjoin;
      int64_t until = in_matrix + 1;
      if (none) until = args.upper ? rows : -args.diagonal;
      if (all) until = args.upper ? 1 - args.diagonal : rows;
      next = std::min(end, row + std::clamp<int64_t>(until - in_matrix, 1, rows - in_matrix));
      const int64_t length = (next - row) * columns;
      if (all) last = length;

      int64_t offsets[1] = {};
      add_offsets(row * columns, args.ndim, args.sizes, {args.strides}, offsets);
      const char* x = static_cast<const char*>(args.x) + offsets[0] * size;
      char* y = static_cast<char*>(args.y) + row * columns * size;
      std::memset(y, 0, first * size);
      if (step == 1)
        std::memcpy(y + first * size, x + first * size, (last - first) * size);
      else
        for (int64_t c = first; c < last; ++c) std::memcpy(y + c * size, x + c * step * size, size);
      std::memset(y + last * size, 0, (length - last) * size);
    }
  });
}

}  // namespace rooflab::kernels
