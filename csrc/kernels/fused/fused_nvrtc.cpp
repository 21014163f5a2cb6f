// v1_nvrtc of fused: which accesses the arrays allow, and the cache of compiled kernels. Free of CUDA headers: NVRTC
// and the driver are loaded at first use.
#include <algorithm>
#include <bit>
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
constexpr int kFewestThreads = 8, kMostThreads = 512;  // of a row
constexpr int kFewestPerSm = 1024;                     // threads, where rows are few
constexpr int kRegisters = 64;                         // of a thread, for its packs

// What the source depends on, as text. The values of numbers are not part of it, because they are kernel parameters.
std::string key_of(const FusedProgram& program, const FusedTiling& tiling) {
  std::string key;
  for (int count : {program.operands, program.numbers, program.instructions, program.reductions,
                    program.row_instructions, program.results})
    key += static_cast<char>(count);
  const auto add = [&](auto value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  for (int number : {tiling.width, tiling.threads, tiling.packs}) add(number);
  for (bool flag : {tiling.keeps, tiling.is_even, tiling.is_flat}) add(flag);
  add(tiling.constant);
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
  cuda::LoadedKernel find(const FusedProgram& program, const FusedTiling& tiling, int device, int compute_capability) {
    std::lock_guard lock(mutex_);
    const auto [place, is_new] = loaded_.try_emplace({key_of(program, tiling), device});
    if (!is_new) return place->second.kernel;
    try {
      place->second = load(program, tiling, device, compute_capability);
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

  static Loaded load(const FusedProgram& program, const FusedTiling& tiling, int device, int compute_capability) {
    std::vector<std::string> options = fused_options();
    options.push_back(message("-arch=sm_", compute_capability));
    cuda::Compilation made = cuda::compile(fused_source(program, tiling), options, fused_headers());
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

// Elements in a 16-byte access of the widest array, if all arrays are laid out for such accesses; otherwise 1.
int width_of(const FusedArgs& args) {
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

// Operands that have one number for each row, as bits.
uint32_t constant_operands(const FusedLaunch& launch, int operands) {
  uint32_t constant = 0;
  for (int k = 0; k < operands; ++k) {
    bool moves = false;
    for (int d = launch.row_ndim; d < launch.ndim; ++d) moves |= launch.operands[k].strides[d] != 0;
    constant |= static_cast<uint32_t>(!moves) << k;
  }
  return constant;
}

// How many packs of a row a thread's registers hold: of what stays there between passes, and of what one pass reads.
int most_packs(const FusedProgram& program, const FusedTiling& tiling) {
  const auto registers = [&](int operand) {
    const bool is_held = !(tiling.constant >> operand & 1);
    return is_held ? std::max(1, tiling.width * static_cast<int>(size_of(program.operand_dtypes[operand])) / 4) : 0;
  };
  int kept = 0, most_read = 0;
  for (int k = 0; k < program.operands; ++k)
    if (program.passes_that_read(k) > 1) kept += registers(k);
  for (int pass = 0; pass < program.passes; ++pass) {
    const auto is_needed = program.needed_in(pass);
    int read = 0;
    for (int k = 0; k < program.operands; ++k)
      if (is_needed[k] && program.passes_that_read(k) == 1) read += registers(k);
    most_read = std::max(most_read, read);
  }
  const auto fit = static_cast<unsigned>(kRegisters / std::max(kept + most_read, 1));
  return std::clamp(static_cast<int>(std::bit_floor(fit)), 1, tiling.width == 1 ? 16 : 8);
}

// A row belongs to as few threads as hold it in registers. Rows that are too few to fill the GPU get more of them.
FusedTiling tiling_of(const FusedArgs& args, int sm_count) {
  const auto& [program, launch] = args;
  FusedTiling tiling{width_of(args)};
  if (program.reductions == 0) return tiling;
  tiling.constant = constant_operands(launch, program.operands);
  tiling.is_flat = launch.ndim == launch.row_ndim + 1;
  const int64_t packs = launch.columns / tiling.width;
  const int most = most_packs(program, tiling);
  tiling.threads = kFewestThreads;
  const auto grow = [&] { tiling.threads = tiling.threads == 32 ? kFusedThreads : tiling.threads * 2; };
  while (tiling.threads < kMostThreads && int64_t{tiling.threads} * most < packs) grow();
  while (tiling.threads < std::min<int64_t>(kMostThreads, packs) &&
         launch.rows * tiling.threads < int64_t{sm_count} * kFewestPerSm)
    grow();
  const int64_t needed = (packs + tiling.threads - 1) / tiling.threads;
  tiling.keeps = needed <= most;
  tiling.packs = tiling.keeps ? static_cast<int>(std::bit_ceil(static_cast<uint64_t>(needed))) : most;
  tiling.is_even = packs % (int64_t{tiling.packs} * tiling.threads) == 0;
  return tiling;
}

}  // namespace

void fused_cuda_v1_nvrtc(const FusedArgs& args, Queue& queue) {
  const auto& [program, launch] = args;
  const FusedTiling tiling = tiling_of(args, queue.target().sm_count);
  const cuda::LoadedKernel kernel =
      kernels().find(program, tiling, queue.device().index, queue.target().compute_capability);
  const int threads = program.reductions ? std::max(tiling.threads, kFusedThreads) : kFusedThreads;
  const int64_t per_block = program.reductions ? launch.columns * (threads / tiling.threads) : threads * tiling.width;
  const LaunchShape shape{(launch.count + per_block - 1) / per_block, threads};
  queue.library({.kernels = 1}, [&] {
    void* parameters[] = {const_cast<FusedLaunch*>(&args.launch)};
    cuda::launch_kernel(kernel, "fused_cuda_v1_nvrtc", shape, parameters, queue.stream());
  });
}

}  // namespace rooflab::kernels
