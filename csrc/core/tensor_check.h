// Checks that many ops make of their arguments.
#pragma once

#include "core/tensor.h"

namespace rooflab {

inline void check_same_device(const char* op, const Tensor& a, const Tensor& b) {
  if (a.device() == b.device()) return;
  const std::string text = message("[", op, "] operands are on ", to_string(a.device()), " and ", to_string(b.device()),
                                   "; move one with .to()");
  if (a.device().is_meta() || b.device().is_meta()) throw WithoutMemory(text);
  throw std::invalid_argument(text);
}

inline void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dtype() == b.dtype(), op, "operands are ", name(a.dtype()), " and ", name(b.dtype()),
           "; convert one with .to()");
}

inline void check_floating(const char* op, const char* argument, const Tensor& x) {
  RL_CHECK(is_floating(x.dtype()), op, argument, ": expected a floating-point dtype, got ", name(x.dtype()));
}

}  // namespace rooflab
