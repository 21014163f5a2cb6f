// For *_simd.cpp files whose rungs compute in float and leave float64 to another rung.
#pragma once

#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Calls f.operator()<T>() for the type of the elements, which is not float64.
template <class F>
ROOFLAB_INLINE auto with_float_element(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat32: return f.template operator()<float>();
    case DType::kFloat16: return f.template operator()<Half>();
    case DType::kBFloat16: return f.template operator()<BFloat16>();
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kInt32:
    case DType::kBool: break;
  }
  __builtin_trap();
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
