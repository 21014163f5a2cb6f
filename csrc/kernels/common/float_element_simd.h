// For *_simd.cpp files whose rungs compute in float and leave float64 to another rung.
#pragma once

#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Calls f.operator()<T>() for the type of the elements, which is not float64.
template <class F>
ROOFLAB_INLINE void with_float_element(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat32: return f.template operator()<float>();
    case DType::kFloat16: return f.template operator()<Half>();
    default: return f.template operator()<BFloat16>();
  }
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
