#include "core/cpu_isa.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/platform/instruction_sets.h"
#include "core/platform/platform.h"

namespace rooflab {
namespace {

bool is_compiled(CpuIsa isa) {
#define ROOFLAB_IS(space, each, ...) || isa == CpuIsa::each
  return false ROOFLAB_EACH_ISA(ROOFLAB_IS, );
}

// What kernels are compiled for and this CPU can run, the best one last.
std::vector<CpuIsa> usable() {
  std::vector<CpuIsa> sets = platform::instruction_sets();
  const char* best = name(sets.back());
  std::erase_if(sets, [](CpuIsa isa) { return !is_compiled(isa); });
  if (sets.empty())
    throw std::runtime_error(message("rooflab has no code for this CPU, whose instruction set is ", best,
                                     ": install it again without ROOFLAB_INSTRUCTION_SETS"));
  return sets;
}

std::atomic<CpuIsa>& in_use() {
  static std::atomic<CpuIsa> isa{usable().back()};
  return isa;
}

}  // namespace

const char* name(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kNeonBf16: return "neon_bf16";
    case CpuIsa::kNeon: return "neon";
    case CpuIsa::kAvx512Bf16: return "avx512_bf16";
    case CpuIsa::kAvx512: return "avx512";
    case CpuIsa::kAvx2: return "avx2";
    case CpuIsa::kBaseline: return "baseline";
  }
  return "unknown";
}

CpuIsa cpu_isa() { return in_use().load(std::memory_order_relaxed); }

void set_cpu_isa(std::string_view wanted) {
  std::string known;
  for (CpuIsa isa : usable()) {
    if (wanted == name(isa)) return in_use().store(isa);
    known += message(known.empty() ? "" : ", ", name(isa));
  }
  throw std::invalid_argument(message("[set_cpu_isa] isa: expected one of ", known, "; got \"", wanted, "\""));
}

bool cpu_has_amx_bf16() {
  static const bool has = platform::has_amx_bf16();
  return cpu_isa() == CpuIsa::kAvx512Bf16 && has;
}

}  // namespace rooflab
