// The instruction sets that CPU kernels are compiled for.
#pragma once

#include <string_view>

namespace rooflab {

// kAvx2: AVX2, FMA, F16C.    kAvx512: AVX-512 F, BW, DQ, VL besides.
enum class CpuIsa { kBaseline, kAvx2, kAvx512 };

const char* name(CpuIsa isa);  // "baseline", "avx2", "avx512"

// The best instruction set that this CPU runs (read once), or the lower one that was set. ValueError for one that it
// does not run.
CpuIsa cpu_isa();
void set_cpu_isa(std::string_view isa);

// Whether the CPU has, beside kAvx512, bfloat16 dot products (AVX512_BF16) and bfloat16 matrix tiles (AMX_BF16,
// permitted by Linux).
bool cpu_has_avx512_bf16();
bool cpu_has_amx_bf16();

}  // namespace rooflab
