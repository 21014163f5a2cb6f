#include "core/cpu_isa.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/platform/platform.h"

namespace rooflab {
namespace {

std::atomic<CpuIsa>& in_use() {
  static std::atomic<CpuIsa> isa{platform::instruction_sets().back()};
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
  for (CpuIsa isa : platform::instruction_sets()) {
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
