// The name of a kernel as a reader knows it.
#pragma once

#include <string>

namespace rooflab::profiler {

// Demangled, without return type void, parameter list and rooflab's own namespaces:
// "_ZN7rooflab7kernels4gemmIfEEvPKT_" -> "gemm<float>".
std::string kernel_name(const char* symbol);

}  // namespace rooflab::profiler
