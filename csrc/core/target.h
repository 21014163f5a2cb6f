// What a device can do, as far as the choice of a kernel and its launches depend on it. Plain data: a plan for a GPU
// needs no GPU, and two devices with the same numbers get the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/code_architecture.h"
#include "core/cpu_isa.h"
#include "core/device.h"

namespace rooflab {

struct Target {
  std::string name;                    // "H200"; "cpu" for this machine's CPU
  Device::Type kind;                   // whose kernels it runs: kCpu or kCuda
  int64_t cache_bytes = 0;             // the last level
  int compute_capability = 0;          // GPU: 90 for sm_90
  CodeArchitecture code;               // GPU: of the kernels that run there; of a table's GPU, the best there could be
  int sm_count = 0;                    // GPU
  int64_t shared_bytes_of_block = 0;   // GPU: the most that a block can use
  bool has_cublaslt = false;           // GPU: the library can be loaded
  CpuIsa isa = CpuIsa::kBaseline;      // CPU
  bool has_amx_bf16 = false;           // CPU
  bool has_fast_bfloat16_dots = true;  // CPU: if it has any, they multiply at twice the rate of float32
  int threads = 1;                     // CPU: threads that work on one kernel

  // True for an array that, once written, will not be found in the last-level cache: stores should bypass it.
  bool exceeds_cache(int64_t bytes) const { return 2 * bytes > cache_bytes; }
};

inline constexpr int64_t kSharedBytesOfSm90a = 227 * 1024;  // rungs for sm_90a may use all that a block can have

// What a rung starts, known before it runs. For a device without memory these numbers are counted instead.
struct Footprint {
  int launches = 1;
  int fills = 0;
  int64_t scratch_bytes = 0;  // held at once
  int64_t shared_bytes = 0;   // GPU: dynamic, the most of a block; said where it may be over kSharedBytesOfAnyGpu
};

// The target for which kernels for `device` are chosen: for "cuda:0" the GPU of this machine, for "meta:H200" the GPU
// of that name.
const Target& target_of(Device device);

// The device without memory that stands for the named machine. "cpu" and "cuda:0" are this machine's own; other GPUs
// are named as in rl.roofline's table. ValueError lists the names.
Device meta_device(std::string_view name);
std::vector<std::string> meta_names();

}  // namespace rooflab
