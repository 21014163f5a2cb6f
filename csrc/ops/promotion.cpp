#include "ops/promotion.h"

#include <optional>

#include "core/error.h"

namespace rooflab {
namespace {

NumberKind kind_of(DType dtype) {
  return is_floating(dtype) ? NumberKind::kFloating : dtype == DType::kBool ? NumberKind::kBool : NumberKind::kInteger;
}

DType dtype_of_number(NumberKind kind) {
  switch (kind) {
    case NumberKind::kFloating: return DType::kFloat32;
    case NumberKind::kInteger: return DType::kInt64;
    case NumberKind::kBool: break;
  }
  return DType::kBool;
}

// `lower` counts only where it is of a higher kind.
std::optional<DType> over(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  return kind_of(*lower) > kind_of(*higher) ? lower : higher;
}

}  // namespace

DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (kind_of(a) != kind_of(b)) return kind_of(a) > kind_of(b) ? a : b;
  if (size_of(a) == size_of(b)) return DType::kFloat32;  // float16 and bfloat16
  return size_of(a) > size_of(b) ? a : b;
}

DType common_dtype(std::initializer_list<Operand> operands) {
  std::optional<DType> with_dims, without_dims, numbers;
  const auto add = [](std::optional<DType>& to, DType dtype) { to = to ? promoted(*to, dtype) : dtype; };
  for (const Operand& x : operands) {
    if (!x.tensor)
      add(numbers, dtype_of_number(x.scalar.kind));
    else
      add(x.tensor->ndim() > 0 ? with_dims : without_dims, x.tensor->dtype());
  }
  return *over(with_dims, over(without_dims, numbers));
}

void check_fits_dtype(const char* op, DType from, DType to) {
  RL_CHECK(kind_of(from) <= kind_of(to), op, "in place: the result is ", name(from), ", which a tensor of ", name(to),
           " cannot hold; make a new tensor (x = x + y)");
}

}  // namespace rooflab
