// v1_nvrtc of fused: which accesses the arrays allow, and the cache of compiled kernels. Free of CUDA headers: NVRTC
// and the driver are loaded at first use.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "core/cuda_module.h"
#include "core/error.h"
#include "core/mutex.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/fused/fused.h"

namespace rooflab::kernels {
namespace {

constexpr int kAccessBytes = 16;

// What the source depends on, as text. The values of numbers are not part of it, because they are kernel parameters.
std::string key_of(const FusedProgram& program, int width) {
  std::string key;
  for (int count : {width, program.operands, program.numbers, program.instructions, program.reductions,
                    program.row_instructions, program.results})
    key += static_cast<char>(count);
  const auto add = [&](auto value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  for (int k = 0; k < program.operands; ++k) add(program.operand_dtypes[k]);
  for (int k = 0; k < program.numbers; ++k) add(program.number_dtypes[k]);
  const auto add_instruction = [&](const FusedInstruction& instruction) {
    add(instruction.op);
    add(instruction.dtype);
    add(instruction.out_dtype);
    for (const int16_t input : instruction.inputs) add(input);
  };
  for (int k = 0; k < program.instructions; ++k) add_instruction(program.instruction[k]);
  for (int k = 0; k < program.reductions; ++k) {
    add(program.reduction[k].op);
    add(program.reduction[k].dtype);
    add(program.reduction[k].input);
  }
  for (int k = 0; k < program.row_instructions; ++k) add_instruction(program.row_instruction[k]);
  for (int k = 0; k < program.results; ++k) add(program.result_values[k]);
  return key;
}

class Kernels {
 public:
  cuda::LoadedKernel find(const FusedProgram& program, int width, int device, int compute_capability) {
    std::lock_guard lock(mutex_);
    const auto [place, is_new] = loaded_.try_emplace({key_of(program, width), device});
    if (!is_new) return place->second.kernel;
    try {
      place->second = load(program, width, device, compute_capability);
    } catch (...) {
      loaded_.erase(place);
      throw;
    }
    return place->second.kernel;
  }

 private:
  struct Loaded {
    std::unique_ptr<cuda::Module> module;
    cuda::LoadedKernel kernel;
  };

  static Loaded load(const FusedProgram& program, int width, int device, int compute_capability) {
    std::vector<std::string> options = fused_options();
    options.push_back(message("-arch=sm_", compute_capability));
    cuda::Compilation made = cuda::compile(fused_source(program, width), options, fused_headers());
    if (made.image.empty()) throw CudaError(message("[fused] the generated kernel does not compile\n", made.log));
    Loaded loaded{std::make_unique<cuda::Module>(std::move(made.image)), {}};
    loaded.kernel = loaded.module->load("fused_cuda_v1_nvrtc_kernel", device);
    return loaded;
  }

  Mutex mutex_{LockOrder::kKernels};
  std::map<std::pair<std::string, int>, Loaded> loaded_;
};

Kernels& kernels() {
  static Kernels& instance = *new Kernels;  // never destroyed: the driver may be gone before static objects are
  return instance;
}

}  // namespace

int fused_width(const FusedArgs& args) {
  const auto& [program, launch] = args;
  int64_t widest = 1;
  for (int k = 0; k < program.operands; ++k) widest = std::max(widest, size_of(program.operand_dtypes[k]));
  for (int k = 0; k < program.results; ++k)
    widest = std::max(widest, size_of(program.dtype_of(program.result_values[k])));
  const int64_t width = kAccessBytes / widest;
  const int inner = launch.ndim - 1;
  if (inner > 0 && launch.sizes[inner] % width != 0) return 1;
  for (int k = 0; k < program.results; ++k)
    if (program.result_values[k] < program.first_of_row() &&
        !is_aligned(launch.results[k], width * size_of(program.dtype_of(program.result_values[k]))))
      return 1;
  for (int k = 0; k < program.operands; ++k) {
    const auto& [data, strides] = launch.operands[k];
    if (strides[inner] == 0) continue;
    const int64_t size = size_of(program.operand_dtypes[k]);
    bool fits = strides[inner] == 1 && is_aligned(data, width * size);
    for (int d = 0; d < inner; ++d) fits &= strides[d] % width == 0;
    if (!fits) return 1;
  }
  return static_cast<int>(width);
}

void fused_cuda_v1_nvrtc(const FusedArgs& args, Queue& queue) {
  const int width = fused_width(args);
  const int device = queue.device().index;
  const cuda::LoadedKernel kernel = kernels().find(args.program, width, device, queue.target().compute_capability);
  const int64_t per_block = int64_t{kFusedThreads} * width;
  const int64_t blocks = args.program.reductions ? args.launch.count / args.launch.columns
                                                 : (args.launch.count + per_block - 1) / per_block;
  const LaunchShape shape{blocks, kFusedThreads};
  queue.library({.kernels = 1}, [&] {
    void* parameters[] = {const_cast<FusedLaunch*>(&args.launch)};
    cuda::launch_kernel(kernel, "fused_cuda_v1_nvrtc", shape, parameters, queue.stream());
  });
}

}  // namespace rooflab::kernels
