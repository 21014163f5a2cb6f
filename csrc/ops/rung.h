// How a call runs one rung of its op's ladder: counted, captured into a graph, or only counted where there is no
// memory.
#pragma once

#include <stdexcept>
#include <string>

#include "core/counters.h"
#include "core/cuda_runtime.h"
#include "core/error.h"
#include "core/queue.h"
#include "kernels/common/ladder.h"
#include "ops/call.h"

namespace rooflab {

// Runs a kernel of the CPU, or adds it to the graph that is being captured.
template <class Run>
void run_on_cpu(const char* kernel, const Run& run) {
  observe(LaunchRecord::kKernel, kernel, Device{}, Stream{}, 1, [&] {
    if (CaptureLog* log = capture_log())
      log->cpu_work.emplace_back([run, op = current_op()] {
        const OpScope scope(op, OpScope::kName);  // the scratch counts as this op's
        run();
      });
    else
      run();
  });
}

// Where the device's kernels report a number that is out of range. Null on the CPU, whose kernels throw.
inline OutOfRange* report_of(Device device) { return device.is_cuda() ? cuda::out_of_range(device.index) : nullptr; }

// Counts what a rung would start on a device without memory.
void count_footprint(Device device, const char* kernel, const Footprint& footprint);

// Runs the call by one rung on the device's current stream: the one that its plan has chosen, the named one, or the
// first that accepts the arguments.
template <class Args>
void run_rung(const kernels::Ladder<Args>& ladder, const AnyCall& call, const Args& args) {
  const Device device = call.device();
  const int chosen = call.rung == kUnchosen ? ladder.choose(device, args, call.variant, call.op->name) : call.rung;
  const kernels::Variant<Args>& rung = ladder.rung(chosen);
  const char* kernel = ladder.kernel(chosen);
  if (ladder.composes(chosen))  // its plan was made for operands that a kernel took; these would stay unwritten
    throw std::logic_error(message("[", call.op->name,
                                   "] no kernel takes the operands of this recorded call; call the ",
                                   "op itself, or compile the function for them"));
  switch (device.type) {
    case Device::Type::kCuda: {
      const cuda::OnDevice scope(device.index);
      Queue queue(device, kernel, footprint_of(rung, args, target_of(device)).shared_bytes);
      for (const Tensors* tensors : {&call.inputs, &call.outputs})
        for (const Tensor& x : *tensors)
          if (x.defined()) x.storage()->use(queue.stream());
      return rung.run(args, queue);
    }
    case Device::Type::kCpu:
      return run_on_cpu(kernel, [run = rung.run, args, kernel] {
        Queue queue(Device{}, kernel);
        run(args, queue);
      });
    case Device::Type::kMeta: return count_footprint(device, kernel, footprint_of(rung, args, target_of(device)));
  }
}

}  // namespace rooflab
