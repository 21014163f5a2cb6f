// The error of dividing an integer by zero, raised in Python as ZeroDivisionError.
#pragma once

#include "core/error.h"

namespace rooflab {

struct ZeroDivision : std::runtime_error {
  explicit ZeroDivision(const char* op) : std::runtime_error(message("[", op, "] b: an integer divided by zero")) {}
};

}  // namespace rooflab
