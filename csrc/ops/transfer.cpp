// Moving tensors between devices, and the copies that kernels need.
#include <cstring>

#include "autograd/tape.h"
#include "core/counters.h"
#include "core/cuda_runtime.h"
#include "core/range.h"
#include "ops/ops.h"

namespace rooflab {

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : copy(x); }

Tensor to_device(const Tensor& x, Device device) {
  if (x.device() == device) return x;
  OpScope scope("memcpy", OpScope::kName);
  RL_CHECK(!x.device().is_meta(), "to", "a tensor on ", to_string(x.device()), " has no data to copy to ",
           to_string(device));
  const Tensor source = contiguous(x.detach());
  Tensor out = Tensor::empty(x.shape(), x.dtype(), device);
  if (autograd::recording(x))
    autograd::record("to", out, {x}, [from = x.device()](const Tensor& dy) { return to_device(dy, from); });
  if (out.numel() == 0) return out;
  const Device gpu = x.device().is_cuda() ? x.device() : device;
  const char* kernel = x.device().is_cpu() ? "memcpy_host_to_device"
                       : device.is_cpu()   ? "memcpy_device_to_host"
                                           : "memcpy_device_to_device";
  RL_CHECK(!capture_log(), "to", "a copy between devices waits for its end, so a graph cannot capture it");
  scope.begin({0, 0, x.nbytes(), x.nbytes()});
  observe(LaunchRecord::kCopy, kernel, gpu, gpu.is_cuda() ? cuda::current_stream(gpu.index) : Stream{}, 0, [&] {
    if (gpu.is_cuda()) cuda::copy(out.data(), source.data(), x.nbytes(), gpu.index);
  });
  scope.done();
  return out;
}

}  // namespace rooflab
