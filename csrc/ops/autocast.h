// Mixed precision: while it is on in a thread, one table (autocast.cpp) decides in which dtype ops compute. An op of
// the table, and one whose operands may have different dtypes, begins with
//
//   if (const auto dtype = autocast::wanted("softmax", {&x})) return softmax(autocast::in(*dtype, x), dim, variant);
//
// before its OpScope. So a cast is an op of its own: it is counted, and recorded on the tape, which takes gradients
// back to the operand's dtype. Ops inside another op, and backward rules, take their operands as they are.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace rooflab::autocast {

// kLow: in the dtype of the context. kFloat32: in float32. kWidest: in the widest dtype among the operands.
enum class Policy { kLow, kFloat32, kWidest };
const std::vector<std::pair<const char*, Policy>>& policies();  // of all ops that are not kWidest

// The low dtype of this thread's context; none if autocast is off.
std::optional<DType> low_dtype();

// Begins a nested context with a low dtype, or without one, which turns autocast off; returns the previous low dtype,
// which end() takes. Casts of leaves that require grad are kept until the outermost context ends; the last cast of an
// op's result is kept as long as backward holds it.
std::optional<DType> begin(std::optional<DType> low);
void end(std::optional<DType> before);

// Turns autocast off while it lives.
class Off {
 public:
  Off() : before_(begin(std::nullopt)) {}
  ~Off() { end(before_); }
  Off(const Off&) = delete;
  Off& operator=(const Off&) = delete;

 private:
  std::optional<DType> before_;
};

// The dtype that the floating operands of `op` should have. None if they already have it, or if autocast does not
// apply: it is off, another op is running, or an operand is float64 and the op is in the table.
std::optional<DType> wanted(std::string_view op, std::initializer_list<const Tensor*> operands);
std::optional<DType> wanted(std::string_view op, const std::vector<const Tensor*>& operands);

// x in the dtype; if it is not floating, x as it is.
Tensor in(DType dtype, const Tensor& x);
std::optional<Tensor> in(DType dtype, const std::optional<Tensor>& x);

inline const Tensor* operand(const std::optional<Tensor>& x) { return x ? &*x : nullptr; }

}  // namespace rooflab::autocast
