#include "ops/custom.h"

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
  for (const Tensors* tensors : {&read, &written}) {
    if (graph) graph->add(name, *tensors);
    for (const Tensor& x : *tensors) device = x.device().index;
  }
  if (graph) graph->keep(kernel.module());
  for (const Tensors* tensors : {&read, &written})
    for (const Tensor& x : *tensors) x.storage()->use(cuda::current_stream(device));
  OpScope scope("custom");
  scope.begin(cost, DType::kFloat32);
  kernel.launch(shape, arguments, device);
  scope.done();
  for (const Tensor& y : written) y.storage()->bump_version();
}

}  // namespace rooflab
