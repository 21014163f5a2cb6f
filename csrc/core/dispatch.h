// From a DType known at run time to a type known to the compiler:
//   dispatch_floating(dtype, "gelu", [&]<class T>() { kernel<T>(...); });
// Switches over a DType name every one and have no `default`, so a new one does not compile before it is handled.
#pragma once

#include <utility>

#include "core/dtype.h"
#include "core/error.h"

namespace rooflab {

template <class F>
decltype(auto) dispatch_floating(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::kFloat64: return f.template operator()<double>();
    case DType::kFloat32: return f.template operator()<float>();
    case DType::kFloat16: return f.template operator()<Half>();
    case DType::kBFloat16: return f.template operator()<BFloat16>();
    case DType::kInt64:
    case DType::kInt32:
    case DType::kBool: break;
  }
  throw std::invalid_argument(message("[", op, "] dtype: expected a floating-point type, got ", name(dtype)));
}

// For kernels that compute in float: without float64.
template <class F>
decltype(auto) dispatch_float(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::kFloat32: return f.template operator()<float>();
    case DType::kFloat16: return f.template operator()<Half>();
    case DType::kBFloat16: return f.template operator()<BFloat16>();
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kInt32:
    case DType::kBool: break;
  }
  throw std::invalid_argument(message("[", op, "] dtype: expected float32, float16 or bfloat16, got ", name(dtype)));
}

template <class F>
decltype(auto) dispatch_all(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::kInt64: return f.template operator()<int64_t>();
    case DType::kInt32: return f.template operator()<int32_t>();
    case DType::kBool: return f.template operator()<bool>();
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16: break;
  }
  return dispatch_floating(dtype, op, std::forward<F>(f));
}

}  // namespace rooflab
