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
  OpScope scope("memcpy");
  const Tensor source = contiguous(x.detach());
  Tensor out = Tensor::empty(x.shape(), x.dtype(), device);
  if (autograd::recording(x))
    autograd::record("to", out, {x}, [from = x.device()](const Tensor& dy) { return to_device(dy, from); });
  if (out.numel() == 0) return out;
  const Device gpu = device.is_cuda() ? device : x.device();
  const char* kernel = x.device().is_cpu() ? "memcpy_host_to_device"
                       : device.is_cpu()   ? "memcpy_device_to_host"
                                           : "memcpy_device_to_device";
  launch("memcpy", kernel, gpu, cuda::current_stream(gpu.index), Cost{0, 0, x.nbytes(), x.nbytes()},
         [&] { cuda::copy(out.data(), source.data(), x.nbytes(), gpu.index); });
  return out;
}

}  // namespace rooflab
