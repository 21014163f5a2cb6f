// The ladder of an op: its kernels, fastest first, reference last. The first that accepts the arguments is what the
// library runs.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/counters.h"
#include "core/cuda_runtime.h"
#include "core/error.h"

namespace rooflab {

struct VariantInfo {
  const char* name;  // "v2_shared_tile"
  Device::Type device;
  const char* idea;    // one line
  std::string kernel;  // "matmul_cuda_v2_shared_tile": the function, and what a profile shows; "" when composed
};

// What rl.variants() reads: every ladder of the process, by op.
struct LadderInfo {
  const char* op;                    // also what the kernels' names begin with
  std::vector<const char*> members;  // the ops of a family that share the ladder: add, exp ...; else empty
  std::vector<VariantInfo> variants;
};
const std::vector<const LadderInfo*>& ladders();
std::vector<const char*> op_names(const LadderInfo& ladder);  // the ops it serves
const LadderInfo& find_ladder(std::string_view op);           // ValueError when there is none
void register_ladder(const LadderInfo* ladder);
[[noreturn]] void refuse_variant(const LadderInfo& ladder, const char* op, Device device, std::string_view variant,
                                 bool known);

template <class Args>
struct Variant {
  const char* name;
  Device::Type device;
  const char* idea;
  bool (*accepts)(const Args&);      // null: all that the op itself accepts
  void (*run)(const Args&, Stream);  // null where this build lacks the backend (a weak declaration): not listed
};

// In place of a kernel: the op makes the result from other ops, which count themselves.
template <class Args>
void composed(const Args&, Stream) {}

template <class Args>
class Ladder {
 public:
  Ladder(const char* op, std::initializer_list<Variant<Args>> variants, std::vector<const char*> members = {}) {
    info_.op = op;
    info_.members = std::move(members);
    for (const Variant<Args>& variant : variants) {
      if (!variant.run) continue;
      const char* device = variant.device == Device::Type::kCpu ? "cpu" : "cuda";
      info_.variants.push_back({variant.name, variant.device, variant.idea,
                                is_composed(variant) ? "" : message(op, "_", device, "_", variant.name)});
      rungs_.push_back(variant);
    }
    register_ladder(&info_);
  }
  Ladder(const Ladder&) = delete;
  Ladder& operator=(const Ladder&) = delete;

  // Whether the rung that run() would take has no kernel of its own.
  bool composes(Device device, const Args& args, std::string_view variant) const {
    return is_composed(rungs_[choose(device, args, variant, info_.op)]);
  }

  // Runs one kernel on the device's current stream and counts one launch: the named variant, or the first that accepts.
  // A family says which member runs; counters and profiles show that name.
  void run(Device device, const Args& args, const Cost& cost, std::string_view variant = {},
           const char* member = nullptr) const {
    const char* op = member ? member : info_.op;
    const size_t i = choose(device, args, variant, op);
    Stream stream;
    if (device.is_cuda()) {
      cuda::set_device(device.index);
      stream = cuda::current_stream(device.index);
    }
    launch(op, info_.variants[i].kernel.c_str(), device, stream, cost, [&] { rungs_[i].run(args, stream); });
  }

 private:
  static bool is_composed(const Variant<Args>& rung) { return rung.run == composed<Args>; }

  size_t choose(Device device, const Args& args, std::string_view variant, const char* op) const {
    bool known = false;
    for (size_t i = 0; i < rungs_.size(); ++i) {
      const Variant<Args>& rung = rungs_[i];
      if (rung.device != device.type || (!variant.empty() && variant != rung.name)) continue;
      known = true;
      if (!rung.accepts || rung.accepts(args)) return i;
    }
    refuse_variant(info_, op, device, variant, known);
  }

  LadderInfo info_;
  std::vector<Variant<Args>> rungs_;
};

}  // namespace rooflab
