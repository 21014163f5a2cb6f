// The instruction sets that CPU kernels are compiled for.
#pragma once

#include <string_view>

namespace rooflab {

// x86-64: kBaseline is what all have; kAvx2: AVX2, FMA, F16C; kAvx512: also AVX-512 F, BW, DQ, VL; kAvx512Bf16: also
// AVX512_BF16. aarch64: kNeon is what all have; kNeonBf16: also FEAT_BF16.
enum class CpuIsa { kBaseline, kAvx2, kAvx512, kAvx512Bf16, kNeon, kNeonBf16 };

const char* name(CpuIsa isa);  // "baseline", "avx2", "avx512", "avx512_bf16", "neon", "neon_bf16"

// The instruction set in use: the best that this CPU can run, unless tests set another. ValueError for one that it
// cannot run.
CpuIsa cpu_isa();
void set_cpu_isa(std::string_view name);

// bfloat16 matrix tiles (AMX_BF16), permitted by Linux; only beside kAvx512Bf16.
bool cpu_has_amx_bf16();

}  // namespace rooflab
