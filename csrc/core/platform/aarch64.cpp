#include "core/platform/platform.h"

// A program may not ask an ARM processor what it can: the system says it.
#if defined(__APPLE__)
#include <sys/sysctl.h>
#else
#include <sys/auxv.h>
#endif

namespace rooflab::platform {
namespace {

bool has_bf16() {
#if defined(__APPLE__)
  int has = 0;
  size_t size = sizeof(has);
  return sysctlbyname("hw.optional.arm.FEAT_BF16", &has, &size, nullptr, 0) == 0 && has;
#else
  constexpr unsigned long kBf16 = 1ul << 14;
  return getauxval(AT_HWCAP2) & kBf16;
#endif
}

}  // namespace

std::vector<CpuIsa> instruction_sets() {
  if (has_bf16()) return {CpuIsa::kNeon, CpuIsa::kNeonBf16};
  return {CpuIsa::kNeon};
}

bool has_amx_bf16() { return false; }
bool has_fast_bfloat16_dots() { return true; }

// Not `yield`, which most processors pass over at once.
void pause() { asm volatile("isb" ::: "memory"); }

}  // namespace rooflab::platform
