// Casts, copies, fills and where. Ops that only move bits are compiled for each element size, not for each dtype.
#include "kernels/elementwise/elementwise_cuda.cuh"

namespace rooflab::kernels {
namespace {

template <class Launch>
void dispatch_word(DType dtype, Launch&& launch) {
  switch (size_of(dtype)) {
    case 1: return launch.template operator()<uint8_t>();
    case 2: return launch.template operator()<uint16_t>();
    case 4: return launch.template operator()<uint32_t>();
    default: return launch.template operator()<uint64_t>();
  }
}

}  // namespace

void launch_movement(const ElementwiseArgs& args, Queue& queue, ElementwiseRung rung) {
  using enum ElementwiseOp;
  if (args.op == kCast) {
    with_type(args.dtype, [&]<class From>(From) {
      with_type(args.out_dtype, [&]<class To>(To) {
        using In = cuda_type_t<From>;
        if constexpr (!std::is_same_v<From, To>) launch_elementwise<kCast, In, In, cuda_type_t<To>>(args, queue, rung);
      });
    });
  } else if (args.op == kWhere) {
    dispatch_word(args.dtype, [&]<class T>() { launch_elementwise<kWhere, bool, T, T>(args, queue, rung); });
  } else {
    dispatch_word(args.dtype, [&]<class T>() { launch_elementwise<kCopy, T, T, T>(args, queue, rung); });
  }
}

}  // namespace rooflab::kernels
