#include "core/out_of_range.h"

#include <stdexcept>

#include "core/error.h"

namespace rooflab {

void raise(const OutOfRange& found, const std::string& where) {
  const auto& [kind, number, limit, detail, op] = found;
  switch (kind) {
    case OutOfRange::kIndexFromEnd:
      throw std::out_of_range(
          message("[index] ", number, " is out of bounds for dimension ", detail, " of size ", limit, where));
    case OutOfRange::kClass:
      throw std::invalid_argument(message("[cross_entropy] target: expected in [0, V=", limit,
                                          "), or ignore_index=", detail, ", got ", number, where));
    case OutOfRange::kPosition:
      throw std::invalid_argument(message("[kv_append] position: expected >= 0, got ", number, where));
    default:
      throw std::invalid_argument(message("[", op, "] index: expected in [0, ", limit, "), got ", number, where));
  }
}

}  // namespace rooflab
