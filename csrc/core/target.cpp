#include "core/target.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/cuda_runtime.h"
#include "core/dynamic_library.h"
#include "core/error.h"
#include "core/platform/platform.h"
#include "core/threads.h"

namespace rooflab {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * 1024;

// Virtual machines report a cache that they share with others, or none at all.
int64_t cpu_cache_bytes() { return std::clamp<int64_t>(platform::cache_bytes(), 8 * kMiB, 64 * kMiB); }

// A target never changes, because ops of other threads read it: each combination of settings has one of its own.
const Target& cpu_target() {
  struct Made {
    Target target;
    const Made* earlier;
  };
  static std::atomic<const Made*> newest{nullptr};  // never freed
  const int threads = num_threads();
  const CpuIsa isa = cpu_isa();
  const bool has_amx_bf16 = cpu_has_amx_bf16();
  const Made* const last = newest.load(std::memory_order_acquire);
  for (const Made* made = last; made; made = made->earlier)
    if (const Target& t = made->target; t.threads == threads && t.isa == isa && t.has_amx_bf16 == has_amx_bf16)
      return t;
  auto* made = new Made{{.name = "cpu",
                         .kind = Device::Type::kCpu,
                         .cache_bytes = cpu_cache_bytes(),
                         .code = {},
                         .isa = isa,
                         .has_amx_bf16 = has_amx_bf16,
                         .has_fast_bfloat16_dots = platform::has_fast_bfloat16_dots(),
                         .threads = threads},
                        last};
  while (!newest.compare_exchange_weak(made->earlier, made)) {
  }
  return made->target;
}

Target gpu(const char* name, int compute_capability, int sm_count, int64_t shared_kib, int64_t cache_mib) {
  return {.name = name,
          .kind = Device::Type::kCuda,
          .cache_bytes = cache_mib * kMiB,
          .compute_capability = compute_capability,
          .code = {compute_capability, compute_capability == 90},
          .sm_count = sm_count,
          .shared_bytes_of_block = shared_kib * kKiB,
          .has_cublaslt = true};
}

// The GPUs of rl.machine's table: compute capability and shared memory of a block as the CUDA programming guide gives
// them by compute capability, multiprocessors and cache as the datasheets do.
const std::vector<Target>& gpu_targets() {
  static const std::vector<Target> targets{
      gpu("A6000", 86, 84, 99, 6),
      gpu("A10", 86, 72, 99, 6),
      gpu("A100 SXM 80GB", 80, 108, 163, 40),
      gpu("A100 SXM 40GB", 80, 108, 163, 40),
      gpu("A100 PCIe 80GB", 80, 108, 163, 40),
      gpu("A100 PCIe 40GB", 80, 108, 163, 40),
      gpu("H100 SXM", 90, 132, 227, 50),
      gpu("H100 PCIe", 90, 114, 227, 50),
      gpu("H200", 90, 132, 227, 60),
      gpu("B200", 100, 148, 227, 126),
      gpu("T4", 75, 40, 64, 4),
      gpu("L4", 89, 58, 99, 48),
      gpu("L40S", 89, 142, 99, 96),
      gpu("RTX 3090", 86, 82, 99, 6),
      gpu("RTX 4090", 89, 128, 99, 72),
      gpu("RTX 5090", 120, 170, 99, 96),
  };
  return targets;
}

const Target& cuda_target(int index) {
  static std::array<std::atomic<const Target*>, 128> known{};  // one for each device that Device can name; never freed
  if (const Target* found = known[index].load(std::memory_order_acquire)) return *found;
  const cuda::Properties& gpu = cuda::properties(index);
  const auto* made = new Target{.name = gpu.name,
                                .kind = Device::Type::kCuda,
                                .cache_bytes = gpu.l2_bytes,
                                .compute_capability = gpu.compute_capability,
                                .code = cuda::code_architecture(index),
                                .sm_count = gpu.sm_count,
                                .shared_bytes_of_block = gpu.shared_memory_per_block_optin,
                                .has_cublaslt = cublaslt().is_available()};
  const Target* first = nullptr;
  if (known[index].compare_exchange_strong(first, made)) return *made;
  delete made;
  return *first;
}

// Meta devices in order: this machine's CPU, the table's GPUs, this machine's GPUs.
const Target& meta_target(int index) {
  if (index == 0) return cpu_target();
  const int known = static_cast<int>(gpu_targets().size());
  return index <= known ? gpu_targets()[index - 1] : cuda_target(index - known - 1);
}

}  // namespace

const Target& target_of(Device device) {
  if (device.is_meta()) return meta_target(device.index);
  return device.is_cuda() ? cuda_target(device.index) : cpu_target();
}

std::vector<std::string> meta_names() {
  std::vector<std::string> names{"cpu"};
  for (const Target& target : gpu_targets()) names.push_back(target.name);
  for (int i = 0; i < cuda::device_count(); ++i) names.push_back(message("cuda:", i));
  return names;
}

Device meta_device(std::string_view name) {
  const std::vector<std::string> names = meta_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return {Device::Type::kMeta, static_cast<int8_t>(found - names.begin())};
  std::string list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  throw std::invalid_argument(message("[meta] name: expected one of ", list, "; got \"", name, "\""));
}

std::string to_string(Device device) {
  if (device.is_cpu()) return "cpu";
  return device.is_cuda() ? message("cuda:", device.index) : "meta:" + meta_names()[device.index];
}

}  // namespace rooflab
