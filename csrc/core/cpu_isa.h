// The instruction sets that CPU kernels are compiled for.
#pragma once

#include <string_view>

namespace rooflab {

// kAvx2: AVX2, FMA, F16C.    kAvx512: also AVX-512 F, BW, DQ, VL.    kAvx512Bf16: also AVX512_BF16.
enum class CpuIsa { kBaseline, kAvx2, kAvx512, kAvx512Bf16 };

const char* name(CpuIsa isa);  // "baseline", "avx2", "avx512", "avx512_bf16"

// The instruction set in use: the best that this CPU can run, unless tests set another. ValueError for one that it
// cannot run.
CpuIsa cpu_isa();
void set_cpu_isa(std::string_view name);

// bfloat16 matrix tiles (AMX_BF16), permitted by Linux; part of no instruction set below kAvx512Bf16.
bool cpu_has_amx_bf16();

}  // namespace rooflab
