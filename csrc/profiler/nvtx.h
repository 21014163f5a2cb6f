// Ranges for Nsight Systems and other tools that listen to NVTX (github.com/NVIDIA/NVTX).
#pragma once

namespace rooflab::profiler {

bool has_nvtx();  // whether rooflab was built with NVTX's headers

// From here on every range is also an NVTX range with the same name and thread, in the default domain, if a listening
// tool started this process. Otherwise nothing changes.
void show_ranges_to_nvtx();

}  // namespace rooflab::profiler
