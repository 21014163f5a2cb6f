// The name of a kernel as shown to readers.
#pragma once

#include <string>

namespace rooflab::profiler {

// Demangled, and without return type void, parameter list and rooflab's own namespaces:
// "_ZN7rooflab7kernels4gemmIfEEvPKT_" -> "gemm<float>".
std::string kernel_name(const char* symbol);

}  // namespace rooflab::profiler
