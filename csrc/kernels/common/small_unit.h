// For norms in float of rows with numbers so large that their squares overflow.
#pragma once

namespace rooflab::kernels {

// Such rows are multiplied by this before they are squared: then no square overflows.
inline constexpr float kSmallUnit = 0x1p-96f;

}  // namespace rooflab::kernels
