// The reference rung of reduce on the CPU: see reduce.h.
#include <cmath>
#include <type_traits>

#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/reduce/reduce.h"

namespace rooflab::kernels {
namespace {

// Two passes, and what the rounded mean lacks.
double variance(const ReduceArgs& args, auto&& element) {
  const double count = static_cast<double>(args.reduced);
  double mean = 0, distances = 0, squares = 0;
  for (int64_t k = 0; k < args.reduced; ++k) mean += element(k);
  mean /= count;
  for (int64_t k = 0; k < args.reduced; ++k) {
    const double distance = element(k) - mean;
    distances += distance;
    squares += distance * distance;
  }
  const double variation = squares - distances * (distances / count);
  return (variation < 0 ? 0 : variation) / std::max(count - args.correction, 0.0);
}

double reduce_numbers(const ReduceArgs& args, auto&& element) {
  if (is_spread(args.op)) {
    const double found = variance(args, element);
    return args.op == ReduceOp::kStd ? std::sqrt(found) : found;
  }
  const bool is_max = args.op == ReduceOp::kMax, is_min = args.op == ReduceOp::kMin;
  const bool is_product = args.op == ReduceOp::kProd;
  double value = is_max ? -INFINITY : is_min ? INFINITY : is_product ? 1 : 0;
  for (int64_t k = 0; k < args.reduced; ++k) {
    const double x = element(k);
    if (is_product)
      value *= x;
    else if (!is_max && !is_min)
      value += x;
    else if ((is_max ? x > value : x < value) || std::isnan(x))
      value = x;
  }
  return args.op == ReduceOp::kMean ? value / static_cast<double>(args.reduced) : value;
}

int64_t reduce_integers(const ReduceArgs& args, auto&& element) {
  const bool is_product = args.op == ReduceOp::kProd;
  int64_t value = args.op == ReduceOp::kMax ? INT64_MIN : args.op == ReduceOp::kMin ? INT64_MAX : is_product ? 1 : 0;
  for (int64_t k = 0; k < args.reduced; ++k) {
    const int64_t x = element(k);
    if (args.op == ReduceOp::kMax)
      value = std::max(value, x);
    else if (args.op == ReduceOp::kMin)
      value = std::min(value, x);
    else if (is_product)
      value = static_cast<int64_t>(static_cast<uint64_t>(value) * static_cast<uint64_t>(x));  // wraps around
    else
      value = static_cast<int64_t>(static_cast<uint64_t>(value) + static_cast<uint64_t>(x));  // wraps around
  }
  return value;
}

bool reduce_truths(const ReduceArgs& args, auto&& element) {
  bool any = false, all = true;
  for (int64_t k = 0; k < args.reduced; ++k) {
    const bool truth = to_double(element(k)) != 0;
    any |= truth;
    all &= truth;
  }
  return args.op == ReduceOp::kAny ? any : all;
}

}  // namespace

void reduce_cpu_v0_reference(const ReduceArgs& args, Queue&) {
  dispatch_all(args.dtype, "reduce", [&]<class T>() {
    for (int64_t o = 0; o < args.outer; ++o)
      for (int64_t i = 0; i < args.inner; ++i) {
        const T* x = static_cast<const T*>(args.x) + o * args.outer_stride + i * args.inner_stride;
        const int64_t at = o * args.inner + i;
        if (is_truth(args.op))
          static_cast<bool*>(args.y)[at] = reduce_truths(args, [&](int64_t k) { return x[k * args.reduced_stride]; });
        else if constexpr (!std::is_integral_v<T>)
          static_cast<T*>(args.y)[at] =
              from_double<T>(reduce_numbers(args, [&](int64_t k) { return to_double(x[k * args.reduced_stride]); }));
        else if (const auto element = [&](int64_t k) { return static_cast<int64_t>(x[k * args.reduced_stride]); };
                 args.op == ReduceOp::kMax || args.op == ReduceOp::kMin)
          static_cast<T*>(args.y)[at] = static_cast<T>(reduce_integers(args, element));
        else
          static_cast<int64_t*>(args.y)[at] = reduce_integers(args, element);
      }
  });
}

}  // namespace rooflab::kernels
