// Mixed precision: while it is on in a thread, ops choose the dtype that they compute in by one table (autocast.cpp).
// An op of the table, and one whose operands may differ, begins with
//
//   if (const auto dtype = autocast::wanted("softmax", {&x})) return softmax(autocast::in(*dtype, x), dim, variant);
//
// before its OpScope, so a cast is an op of its own: counted, and recorded on the tape, which takes gradients back to
// the dtype that the operand had. What an op calls inside, and backward rules, take their operands as they are.
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

// The low dtype of this thread's context; none where autocast is off.
std::optional<DType> low_dtype();

// Begins a context inside the one that there is, with a low dtype or, for none, with autocast off; gives the low dtype
// before. end() takes that. Casts of leaves that require grad are kept until the outermost context ends, the last cast
// of a result of ops as long as backward holds it.
std::optional<DType> begin(std::optional<DType> low);
void end(std::optional<DType> before);

// Off for as long as it lives.
class Off {
 public:
  Off() : before_(begin(std::nullopt)) {}
  ~Off() { end(before_); }
  Off(const Off&) = delete;
  Off& operator=(const Off&) = delete;

 private:
  std::optional<DType> before_;
};

// The dtype that the floating operands of `op` should have; none when they have it, or autocast has no say: it is off,
// an op is under way, or one of them is float64 and the op is in the table.
std::optional<DType> wanted(std::string_view op, std::initializer_list<const Tensor*> operands);
std::optional<DType> wanted(std::string_view op, const std::vector<const Tensor*>& operands);

// x in the dtype, or as it is when it is not floating.
Tensor in(DType dtype, const Tensor& x);
std::optional<Tensor> in(DType dtype, const std::optional<Tensor>& x);

inline const Tensor* operand(const std::optional<Tensor>& x) { return x ? &*x : nullptr; }

}  // namespace rooflab::autocast
