// What the CPU rungs of cross_entropy and of its backward share: see cross_entropy.h.
#include "core/error.h"
#include "kernels/common/find_first.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace rooflab::kernels {

void check_classes(const Classes& classes, int64_t rows, Queue& queue) {
  const int64_t bad = find_first(queue, rows, [&](int64_t row) {
    const int64_t target = class_of(classes, row);
    return target != classes.ignore_index && (target < 0 || target >= classes.limit);
  });
  if (bad < rows) raise(out_of_range(classes, class_of(classes, bad)), message(" in row ", bad));
}

}  // namespace rooflab::kernels
