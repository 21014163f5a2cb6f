// Moves tensors between devices, and makes the copies that kernels need.
#include <cstring>
#include <limits>
#include <type_traits>

#include "autograd/reads.h"
#include "autograd/tape.h"
#include "core/counters.h"
#include "core/cuda_runtime.h"
#include "core/dispatch.h"
#include "core/range.h"
#include "core/target.h"
#include "kernels/elementwise/functors.h"
#include "ops/ops.h"

namespace rooflab {
namespace {

// Data for an integer dtype must fit it. A cast of a tensor saturates and turns NaN into 0; in data that is an error.
template <class To, class From>
void check_holds([[maybe_unused]] From value) {
  if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> && !std::is_same_v<From, bool>) {
    constexpr bool kReal = std::is_floating_point_v<From>;
    using Wide = std::conditional_t<kReal, double, int64_t>;
    const Wide wide = static_cast<Wide>(value), low = static_cast<Wide>(std::numeric_limits<To>::min());
    const bool holds = wide >= low && (kReal ? wide < -static_cast<double>(low)
                                             : wide <= static_cast<Wide>(std::numeric_limits<To>::max()));
    RL_CHECK(holds, "tensor", "data: expected numbers that ", name(DTypeOf<To>::value), " can hold, got ", wide);
  }
}

template <class To, class From>
To element_of(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return element_of<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    using Wide = std::conditional_t<std::is_integral_v<From>, int64_t, double>;
    return To(round_to_odd(static_cast<Wide>(value)));
  } else {
    check_holds<To>(value);
    return kernels::convert<To>(value);
  }
}

// Whether it is the meta device of this machine's CPU. A move from the CPU to it copies nothing, because a move from
// the CPU to the CPU copies nothing either.
bool stands_for_cpu(Device device) { return device.is_meta() && target_of(device).kind == Device::Type::kCpu; }

}  // namespace

Tensor from_host(const void* data, DType from, const Shape& shape, DType dtype, Device device) {
  if (stands_for_cpu(device)) return Tensor::empty(shape, dtype, device);
  Tensor host = Tensor::empty(shape, dtype, Device{});
  const int64_t count = host.numel();
  if (from == dtype && from != DType::kBool) {
    if (count) std::memcpy(host.data(), data, host.nbytes());
  } else if (from == DType::kBool) {  // other libraries may have written bytes that are neither 0 nor 1
    dispatch_all(dtype, "tensor", [&]<class To>() {
      for (int64_t i = 0; i < count; ++i)
        host.data<To>()[i] = element_of<To>(static_cast<const uint8_t*>(data)[i] != 0);
    });
  } else {
    dispatch_all(from, "tensor", [&]<class From>() {
      dispatch_all(dtype, "tensor", [&]<class To>() {
        for (int64_t i = 0; i < count; ++i) host.data<To>()[i] = element_of<To>(static_cast<const From*>(data)[i]);
      });
    });
  }
  return to_device(host, device);
}

bool are_bools(const Tensor& x) {
  if (x.ndim() > 1) {
    for (int64_t i = 0; i < x.size(0); ++i)
      if (!are_bools(x.select(0, i))) return false;
    return true;
  }
  const int64_t count = x.numel(), stride = x.ndim() ? x.stride(0) : 0;
  for (int64_t i = 0; i < count; ++i)
    if (static_cast<const uint8_t*>(x.data())[i * stride] > 1) return false;
  return true;
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : copy(x); }

Tensor to_device(const Tensor& x, Device device) {
  if (x.device() == device) return x;
  OpScope scope("memcpy", OpScope::kName);
  RL_CHECK_AS(WithoutMemory, !x.device().is_meta(), "to", "a tensor on ", to_string(x.device()),
              " has no data to copy to ", to_string(device));
  autograd::note_read(x);
  const Tensor source = contiguous(x.detach());
  Tensor out = Tensor::empty(x.shape(), x.dtype(), device);
  if (autograd::recording(x))
    autograd::record("to", out, {x}, [from = x.device()](const Tensor& dy) { return to_device(dy, from); });
  if (out.numel() == 0 || stands_for_cpu(device)) return out;
  const Device gpu = x.device().is_cuda() ? x.device() : device;
  const char* kernel = x.device().is_cpu() ? "memcpy_host_to_device"
                       : device.is_cpu()   ? "memcpy_device_to_host"
                                           : "memcpy_device_to_device";
  RL_CHECK(!capture_log(), "to", "a copy between devices waits for its end, so a graph cannot capture it");
  scope.begin({0, 0, x.nbytes(), x.nbytes()}, x.dtype(), gpu);
  observe(LaunchRecord::kCopy, kernel, gpu, gpu.is_cuda() ? cuda::current_stream(gpu.index) : Stream{}, 0, [&] {
    // On another GPU, work that is queued there may still use the block that `out` got.
    if (x.device().is_cuda() && device.is_cuda()) cuda::synchronize(cuda::current_stream(device.index), device.index);
    if (gpu.is_cuda()) cuda::copy(out.data(), source.data(), x.nbytes(), gpu.index);
  });
  scope.done();
  if (gpu.is_cuda()) cuda::raise_out_of_range(gpu.index);
  return out;
}

}  // namespace rooflab
