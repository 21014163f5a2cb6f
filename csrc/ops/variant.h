// The ladder of an op: its kernels, fastest first, reference last. The library runs the first that accepts the
// arguments.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/counters.h"
#include "core/cuda_runtime.h"
#include "core/error.h"
#include "core/queue.h"
#include "core/target.h"
#include "ops/call.h"

namespace rooflab {

struct VariantInfo {
  const char* name;  // "v2_shared_tile"
  Device::Type device;
  const char* idea;    // one line
  std::string kernel;  // "matmul_cuda_v2_shared_tile": the function, and its name in a profile; "" if composed
};

// What rl.variants() reads: every ladder of the process, by op.
struct LadderInfo {
  const char* op;                    // the kernels' names begin with it too
  std::vector<const char*> members;  // the ops of a family that share the ladder: add, exp ...; else empty
  std::vector<VariantInfo> variants;
};
const std::vector<const LadderInfo*>& ladders();
std::vector<const char*> op_names(const LadderInfo& ladder);  // the ops it serves
const LadderInfo& find_ladder(std::string_view op);           // ValueError when there is none
void register_ladder(const LadderInfo* ladder);
[[noreturn]] void refuse_variant(const LadderInfo& ladder, const char* op, Device::Type kind, std::string_view variant,
                                 bool known);

// kByName: runs only if named, because its cost is the caller's to weigh, such as scratch of the operands' size.
enum class Choice { kDefault, kByName };

template <class Args>
struct Variant {
  const char* name;
  Device::Type device;  // kCpu or kCuda
  const char* idea;
  bool (*accepts)(const Args&, const Target&);  // null: everything that the op itself accepts
  void (*run)(const Args&, Queue&);             // null where this build lacks the backend (a weak declaration)
  Footprint (*footprint)(const Args&, const Target&) = nullptr;  // null: one launch and no scratch
  Choice choice = Choice::kDefault;
};

// Takes the place of a kernel: the op makes the result from other ops, which count themselves.
template <class Args>
void composed(const Args&, Queue&) {}

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
// Counts what a rung would start on a device without memory.
void count_footprint(Device device, const char* kernel, const Footprint& footprint);

template <class Args>
class Ladder {
 public:
  Ladder(const char* op, std::initializer_list<Variant<Args>> variants, std::vector<const char*> members = {}) {
    info_.op = op;
    info_.members = std::move(members);
    for (const Variant<Args>& variant : variants) {
      const char* device = variant.device == Device::Type::kCpu ? "cpu" : "cuda";
      info_.variants.push_back({variant.name, variant.device, variant.idea,
                                is_composed(variant) ? "" : message(op, "_", device, "_", variant.name)});
      rungs_.push_back(variant);
    }
    register_ladder(&info_);
  }
  Ladder(const Ladder&) = delete;
  Ladder& operator=(const Ladder&) = delete;

  // Whether the rung that run() would choose has no kernel of its own.
  bool composes(Device device, const Args& args, std::string_view variant) const {
    return is_composed(rungs_[choose(device, args, variant, info_.op)]);
  }

  // Runs the call by one rung on the device's current stream: the named one, or the first that accepts the arguments.
  void run(const Call& call, const Args& args) const {
    const Device device = call.device();
    const size_t i = choose(device, args, call.variant, call.op->name);
    const Variant<Args>& rung = rungs_[i];
    const char* kernel = info_.variants[i].kernel.c_str();
    switch (device.type) {
      case Device::Type::kCuda: {
        cuda::set_device(device.index);
        Queue queue(device, kernel);
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
      case Device::Type::kMeta:
        return count_footprint(device, kernel, rung.footprint ? rung.footprint(args, target_of(device)) : Footprint{});
    }
  }

 private:
  static bool is_composed(const Variant<Args>& rung) { return rung.run == composed<Args>; }

  size_t choose(Device device, const Args& args, std::string_view variant, const char* op) const {
    const Target& target = target_of(device);
    bool known = false;
    for (size_t i = 0; i < rungs_.size(); ++i) {
      const Variant<Args>& rung = rungs_[i];
      if (rung.device != target.kind) continue;
      if (variant.empty() ? rung.choice == Choice::kByName : variant != rung.name) continue;
      known = true;
      if (!rung.accepts || rung.accepts(args, target)) return i;
    }
    refuse_variant(info_, op, target.kind, variant, known);
  }

  LadderInfo info_;
  std::vector<Variant<Args>> rungs_;
};

}  // namespace rooflab
