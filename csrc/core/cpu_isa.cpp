#include "core/cpu_isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "core/error.h"

namespace rooflab {
namespace {

CpuIsa detect_isa() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    return CpuIsa::kBaseline;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return __builtin_cpu_supports("avx512bf16") ? CpuIsa::kAvx512Bf16 : CpuIsa::kAvx512;
  return CpuIsa::kAvx2;
}

// AMX needs the CPU (leaf 7: AMX-BF16 is bit 22, AMX-TILE bit 24 of EDX), and Linux's permission to use its large
// state.
bool detect_amx() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if (!(d & (1u << 22)) || !(d & (1u << 24))) return false;
  constexpr long kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

std::atomic<CpuIsa>& in_use() {
  static std::atomic<CpuIsa> isa{detect_isa()};
  return isa;
}

}  // namespace

const char* name(CpuIsa isa) {
  switch (isa) {
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
  for (CpuIsa isa = CpuIsa::kBaseline; isa <= detect_isa(); isa = static_cast<CpuIsa>(static_cast<int>(isa) + 1)) {
    if (wanted == name(isa)) return in_use().store(isa);
    known += message(known.empty() ? "" : ", ", name(isa));
  }
  throw std::invalid_argument(message("[set_cpu_isa] isa: expected one of ", known, "; got \"", wanted, "\""));
}

bool cpu_has_amx_bf16() {
  static const bool has = detect_amx();
  return cpu_isa() == CpuIsa::kAvx512Bf16 && has;
}

}  // namespace rooflab
