// For instruction sets that do not round to bfloat16.
#pragma once

namespace rooflab::kernels::ROOFLAB_ISA {

ROOFLAB_INLINE bool convert_bfloat16(NativeFloat, NativeU16&) { return false; }
ROOFLAB_INLINE bool convert_bfloat16(NativeFloat, NativeFloat, NativeU16x2&) { return false; }

}  // namespace rooflab::kernels::ROOFLAB_ISA
