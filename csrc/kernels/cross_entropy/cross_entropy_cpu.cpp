// What the CPU rungs of cross_entropy and of its backward share: see cross_entropy.h.
#include "core/error.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace rooflab::kernels {

void check_classes(const Classes& classes, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t target = class_of(classes, row);
    RL_CHECK(target == classes.ignore_index || (target >= 0 && target < classes.limit), "cross_entropy",
             "target: expected in [0, V=", classes.limit, "), or ignore_index=", classes.ignore_index, ", got ", target,
             " in row ", row);
  }
}

}  // namespace rooflab::kernels
