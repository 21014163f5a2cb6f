#include "ops/custom.h"

#include "autograd/reads.h"
#include "core/range.h"
#include "ops/graph.h"
#include "ops/trace.h"

namespace rooflab {

void launch_custom(cuda::Kernel& kernel, const LaunchShape& shape, void** arguments, const Tensors& read,
                   const Tensors& written, const Cost& cost) {
  const char* name = kernel.name().c_str();
  Trace::refuse(name, "a kernel of rl.cuda.compile cannot be traced; call it outside of the compiled function");
  for (const Tensor& y : written) autograd::check_destination(name, y);
  Graph* const graph = Graph::capturing();
  int device = graph && graph->device().is_cuda() ? graph->device().index : 0;
  for (const Tensors* tensors : {&read, &written})
    for (const Tensor& x : *tensors) device = x.device().index;
  if (graph) {
    graph->add(name, read, written);
    graph->keep(kernel.module());
  }
  for (const Tensors* tensors : {&read, &written})
    for (const Tensor& x : *tensors) x.storage()->use(cuda::current_stream(device));
  for (const Tensor& x : read) autograd::note_read(x);
  OpScope scope("custom");
  scope.begin(cost, DType::kFloat32, Device{Device::Type::kCuda, static_cast<int8_t>(device)});
  kernel.launch(shape, arguments, device);
  scope.done();
  for (const Tensor& y : written) y.storage()->bump_version();
}

void launch_custom_on_cpu(const std::string& kernel, const std::function<void()>& run, const Tensors& written,
                          const Cost& cost) {
  const char* name = cuda::keep_name(kernel).c_str();
  Trace::refuse(name, "a kernel of rl.cuda.compile cannot be traced; call it outside of the compiled function");
  RL_CHECK(!Graph::capturing(), kernel, "a kernel that runs on the CPU cannot be captured");
  for (const Tensor& y : written) autograd::check_destination(name, y);
  OpScope scope("custom");
  scope.begin(cost, DType::kFloat32, Device{});
  observe(LaunchRecord::kKernel, name, Device{}, Stream{}, 1, run);
  scope.done();
  for (const Tensor& y : written) y.storage()->bump_version();
}

}  // namespace rooflab
