// The ladder of an op: its kernels, fastest first, reference last. The library runs the first that accepts the
// arguments and is fast on the target (`by_default`). A table in kernels/<op>/<op>_ladder.cpp is the one place where a
// rung is named.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/common/per_isa.h"

// Declares a CUDA rung. In a build without CUDA the name is a null pointer, so the table stays the same and links.
#ifdef ROOFLAB_HAS_CUDA
#define ROOFLAB_CUDA_RUNG(function, Args) void function(const Args&, Queue&);
#else
#define ROOFLAB_CUDA_RUNG(function, Args) constexpr void (*function)(const Args&, Queue&) = nullptr;
#endif

namespace rooflab::kernels {

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

template <class Args>
struct Variant {
  const char* name;
  Device::Type device;  // kCpu or kCuda
  const char* idea;
  bool (*accepts)(const Args&, const Target&);                   // null: everything that the op itself accepts
  void (*run)(const Args&, Queue&);                              // null where this build lacks the backend
  Footprint (*footprint)(const Args&, const Target&) = nullptr;  // null: one launch and no scratch
  // Of what it accepts, where it runs though not named; null: everywhere.
  bool (*by_default)(const Args&, const Target&) = nullptr;
};

// Takes the place of a kernel: the op makes the result from other ops, which count themselves.
template <class Args>
void composed(const Args&, Queue&) {}

// What a rung would start.
template <class Args>
Footprint footprint_of(const Variant<Args>& rung, const Args& args, const Target& target) {
  return rung.footprint ? rung.footprint(args, target) : Footprint{};
}

// Constructed while the library is loaded, in any order; used only afterwards.
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

  // The place in the table of the named rung, or of the first that accepts the arguments. ValueError, in the name of
  // `op`, when there is none.
  int choose(Device device, const Args& args, std::string_view variant, const char* op) const {
    const Target& target = target_of(device);
    bool known = false;
    for (size_t i = 0; i < rungs_.size(); ++i) {
      const Variant<Args>& rung = rungs_[i];
      if (rung.device != target.kind) continue;
      if (!variant.empty() && variant != rung.name) continue;
      known = true;
      if (!accepts(rung, args, target)) continue;
      if (!variant.empty() || is_default(rung, args, target)) return static_cast<int>(i);
    }
    refuse_variant(info_, op, target.kind, variant, known);
  }

  const Variant<Args>& rung(int i) const { return rungs_[i]; }
  const char* kernel(int i) const { return info_.variants[i].kernel.c_str(); }
  bool composes(int i) const { return is_composed(rungs_[i]); }  // it has no kernel of its own

 private:
  static bool is_composed(const Variant<Args>& rung) { return rung.run == composed<Args>; }

  static bool is_default(const Variant<Args>& rung, const Args& args, const Target& target) {
    return !rung.by_default || rung.by_default(args, target);
  }

  static bool accepts(const Variant<Args>& rung, const Args& args, const Target& target) {
    if (rung.accepts && !rung.accepts(args, target)) return false;
    return rung.device == Device::Type::kCpu ||
           footprint_of(rung, args, target).shared_bytes <= target.shared_bytes_of_block;
  }

  LadderInfo info_;
  std::vector<Variant<Args>> rungs_;
};

}  // namespace rooflab::kernels
