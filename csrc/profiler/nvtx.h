// Ranges for Nsight Systems and whatever else listens to NVTX (github.com/NVIDIA/NVTX).
#pragma once

namespace rooflab::profiler {

bool has_nvtx();  // whether rooflab was built with NVTX's headers

// From here on every range is an NVTX range of the same name and thread, in the default domain, if a tool that listens
// started this process. Otherwise nothing changes.
void show_ranges_to_nvtx();

}  // namespace rooflab::profiler
