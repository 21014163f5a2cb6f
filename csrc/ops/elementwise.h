// Moves of the elementwise family that other ops make inside a call of their own.
#pragma once

#include "core/tensor.h"
#include "ops/call.h"

namespace rooflab {

// Writes `from`, which broadcasts, into `to` in its dtype; zeros where `from` is not defined. One launch of the op that
// is under way; `variant` is a rung of the elementwise ladder.
void write_elements(const Tensor& from, const Tensor& to, std::string_view variant = {});

}  // namespace rooflab
