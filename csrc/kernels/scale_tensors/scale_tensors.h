// scale_tensors: multiplies several tensors by one number, in place, as clipping does to a model's gradients. The
// number lies on the device, so that a graph that is replayed reads a new one each time, and the host need not know it.
//
// FLOPs: 1 per element. Compulsory bytes: each element read and written once, 8 for the number. Roof: memory bandwidth;
// with many small tensors, launches, so one takes up to 192 of them.
#pragma once

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/common/tensor_list.h"

namespace rooflab::kernels {

struct ScaleTensorsArgs {
  TensorList list;
  const double* factor;  // (), rounded to float unless tensors are of double
  DType dtype;
};

extern const Ladder<ScaleTensorsArgs> scale_tensors_ladder;

}  // namespace rooflab::kernels
