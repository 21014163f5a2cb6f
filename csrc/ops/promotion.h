// The dtype in which operands of several dtypes meet: PyTorch's rules.
#pragma once

#include <initializer_list>

#include "ops/elementwise.h"

namespace rooflab {

// Of two tensors that count alike: the one of the higher kind (bool, integer, floating), or the wider one. float16 and
// bfloat16 meet in float32.
DType promoted(DType a, DType b);

// Tensors with dimensions decide. A tensor without dimensions counts only if it is of a higher kind than they are, and
// a number only if it is of a higher kind than all tensors. An integer is then int64, and a float is float32.
DType common_dtype(std::initializer_list<Operand> operands);

// ValueError unless elements of `from` may be written into a tensor of `to`: no fractions into integers, no integers
// into bool.
void check_fits_dtype(const char* op, DType from, DType to);

}  // namespace rooflab
