// Every public op. Each checks its arguments, allocates the result, runs its ladder and counts its cost.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace rooflab {}  // namespace rooflab
