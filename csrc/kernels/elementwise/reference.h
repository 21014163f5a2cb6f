// One element of any elementwise op, with op and dtypes found at run time: the v0 rung of both devices.
#pragma once

#include "kernels/common/strided.h"
#include "kernels/elementwise/functors.h"

namespace rooflab::kernels {

template <class T>
constexpr bool kIsSmallFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class Compute>
ROOFLAB_HOST_DEVICE Compute load_as(DType dtype, const void* data, int64_t i) {
  return with_type(dtype, [=]<class T>(T) {
    const T value = static_cast<const T*>(data)[i];
    if constexpr (kIsSmallFloat<T>)
      return convert<Compute>(static_cast<float>(value));
    else
      return convert<Compute>(value);
  });
}

// The number nearest to `value` in the type of an element.
template <class T, class Compute>
ROOFLAB_HOST_DEVICE T as_element(Compute value) {
  if constexpr (kIsSmallFloat<T>)
    return T(round_to_odd(value));
  else
    return convert<T>(value);
}

template <class Compute>
ROOFLAB_HOST_DEVICE void store_as(DType dtype, void* data, int64_t i, Compute value) {
  with_type(dtype, [=]<class T>(T) { static_cast<T*>(data)[i] = as_element<T>(value); });
}

// Writes element i of the input as element `at` of `data`, an array of another dtype.
ROOFLAB_HOST_DEVICE void convert_element(const ElementwiseOperand& input, int64_t i, DType dtype, void* data,
                                         int64_t at) {
  if (is_floating(input.dtype))
    store_as(dtype, data, at, load_as<double>(input.dtype, input.data, i));
  else
    store_as(dtype, data, at, load_as<int64_t>(input.dtype, input.data, i));
}

template <class Compute>
ROOFLAB_HOST_DEVICE Compute load_input(DType dtype, const ElementwiseOperand& input, int64_t i) {
  if (input.dtype == dtype) return load_as<Compute>(dtype, input.data, i);
  int64_t element = 0;
  convert_element(input, i, dtype, &element, 0);
  return load_as<Compute>(dtype, &element, 0);
}

template <class Compute>
ROOFLAB_HOST_DEVICE void reference_number(const ElementwiseArgs& args, const int64_t (&offsets)[4]) {
  Compute values[3] = {};
  for (int k = 0; k < arity(args.op); ++k) {
    const ElementwiseOperand& input = args.inputs[k];
    values[k] = input.data ? load_input<Compute>(args.dtype, input, offsets[k]) : scalar_as<Compute>(input.scalar);
  }
  if (args.op == ElementwiseOp::kCast) return store_as(args.out_dtype, args.out, offsets[3], values[0]);
  if (is_comparison(args.op)) {
    static_cast<bool*>(args.out)[offsets[3]] = holds(outcomes(args.op), values[0], values[1]);
    return;
  }
  if (args.op == ElementwiseOp::kBitwiseNot && args.dtype == DType::kBool)
    return store_as(args.out_dtype, args.out, offsets[3], static_cast<Compute>(values[0] == Compute(0)));
  dispatch_arithmetic(args.op, [&]<ElementwiseOp kOp>() {
    if constexpr (takes<Compute>(kOp))
      store_as(args.out_dtype, args.out, offsets[3],
               evaluate<kOp>(values[0], values[1], values[2], scalar_as<Compute>(args.number)));
  });
}

ROOFLAB_HOST_DEVICE void reference_element(const ElementwiseArgs& args, int64_t i) {
  int64_t offsets[4] = {};
  add_offsets(i, args.ndim, args.sizes,
              {args.inputs[0].strides, args.inputs[1].strides, args.inputs[2].strides, args.out_strides}, offsets);
  if (args.op == ElementwiseOp::kCopy || args.op == ElementwiseOp::kWhere) {
    const bool second = args.op == ElementwiseOp::kWhere && !static_cast<const bool*>(args.inputs[0].data)[offsets[0]];
    const int from = args.op == ElementwiseOp::kWhere ? 1 + second : 0;
    const ElementwiseOperand& input = args.inputs[from];
    if (input.data && input.dtype != args.dtype)
      return convert_element(input, offsets[from], args.dtype, args.out, offsets[3]);
    const int64_t size = size_of(args.dtype);
    const char* bytes = input.data ? static_cast<const char*>(input.data) + offsets[from] * size
                                   : reinterpret_cast<const char*>(&input.scalar.integer);
    for (int64_t b = 0; b < size; ++b) static_cast<char*>(args.out)[offsets[3] * size + b] = bytes[b];
  } else if (is_floating(args.dtype)) {
    reference_number<double>(args, offsets);
  } else {
    reference_number<int64_t>(args, offsets);
  }
}

}  // namespace rooflab::kernels
