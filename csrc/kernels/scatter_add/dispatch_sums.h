// scatter_add's types of an element and of its sum.
#pragma once

#include <type_traits>

#include "core/dispatch.h"
#include "kernels/scatter_add/scatter_add.h"

namespace rooflab::kernels {

// Calls f.template operator()<T, S>(): T is the type of src, S that of y.
template <class F>
void dispatch_sums(const ScatterAddArgs& args, F&& f) {
  dispatch_all(args.dtype, args.at.op, [&]<class T>() {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, float>) {
      if (args.sums == DType::kFloat64)
        f.template operator()<T, double>();
      else
        f.template operator()<T, float>();
    } else if constexpr (!std::is_same_v<T, bool>) {
      f.template operator()<T, T>();
    }
  });
}

}  // namespace rooflab::kernels
