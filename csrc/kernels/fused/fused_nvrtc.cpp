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
#include "kernels/common/column_sums.h"
#include "kernels/fused/fused.h"

namespace rooflab::kernels {
namespace {

constexpr int kAccessBytes = 16;
constexpr int kFewestThreads = 8, kMostThreads = 512;  // of a row
constexpr int kFewestPerSm = 1024;                     // threads, where rows are few
constexpr int kRegisters = 64;                         // of a thread, for its packs
constexpr int kRegistersWithSums = 48;                 // the same, with its sums of columns
constexpr int kMostRegistersWithSums = 80;             // where a row has no more threads
constexpr int kFewestSummedRows = 4;                   // of a block that leaves partial sums
constexpr int kResidentThreads = 1024;                 // per SM, where a block works on row after row

// What the source depends on, as text. The values of numbers are not part of it, because they are kernel parameters.
std::string key_of(const FusedProgram& program, const FusedTiling& tiling) {
  std::string key;
  for (int count : {program.operands, program.numbers, program.instructions, program.reductions,
                    program.row_instructions, program.results, program.column_sums})
    key += static_cast<char>(count);
  const auto add = [&](auto value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  for (int number : {tiling.width, tiling.threads, tiling.packs, tiling.whole, tiling.dims, tiling.row_dims})
    add(number);
  for (bool flag : {tiling.keeps, tiling.is_long}) add(flag);
  for (uint32_t bits : {tiling.adjacent, tiling.contiguous, tiling.loose}) add(bits);
  for (int k = 0; k < program.operands; ++k) {
    add(program.operand_dtypes[k]);
    add(tiling.repeats[k]);
  }
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
  for (int k = 0; k < program.column_sums; ++k) {
    add(program.column_sum[k].dtype);
    add(program.column_sum[k].input);
  }
  return key;
}

struct Compiled {
  cuda::LoadedKernel chain;
  cuda::LoadedKernel sums;  // where columns are summed
};

class Kernels {
 public:
  Compiled find(const FusedProgram& program, const FusedTiling& tiling, int device, int compute_capability) {
    std::lock_guard lock(mutex_);
    const auto [place, is_new] = loaded_.try_emplace({key_of(program, tiling), device});
    if (!is_new) return place->second.kernels;
    try {
      place->second = load(program, tiling, device, compute_capability);
    } catch (...) {
      loaded_.erase(place);
      throw;
    }
    return place->second.kernels;
  }

 private:
  struct Loaded {
    std::unique_ptr<cuda::Module> module;
    Compiled kernels;
  };

  static Loaded load(const FusedProgram& program, const FusedTiling& tiling, int device, int compute_capability) {
    std::vector<std::string> options = fused_options();
    options.push_back(message("-arch=sm_", compute_capability));
    cuda::Compilation made = cuda::compile(fused_source(program, tiling), options, fused_headers());
    if (made.image.empty()) throw CudaError(message("[fused] the generated kernel does not compile\n", made.log));
    Loaded loaded{std::make_unique<cuda::Module>(std::move(made.image)), {}};
    loaded.kernels.chain = loaded.module->load("fused_cuda_v1_nvrtc_kernel", device);
    if (program.column_sums > 0) loaded.kernels.sums = loaded.module->load("fused_cuda_v1_nvrtc_sums_kernel", device);
    return loaded;
  }

  Mutex mutex_{LockOrder::kKernels};
  std::map<std::pair<std::string, int>, Loaded> loaded_;
};

Kernels& kernels() {
  static Kernels& instance = *new Kernels;  // never destroyed: the driver may be gone before static objects are
  return instance;
}

// Elements in a 16-byte access of the widest array, if the results are aligned for it and neighbours in all arrays are
// neighbours in memory, or the same number; otherwise 1.
int width_of(const FusedArgs& args) {
  const auto& [program, launch] = args;
  int64_t widest = 1;
  for (int k = 0; k < program.operands; ++k) widest = std::max(widest, size_of(program.operand_dtypes[k]));
  for (int k = 0; k < program.results; ++k)
    widest = std::max(widest, size_of(program.dtype_of(program.result_values[k])));
  const int64_t width = kAccessBytes / widest;
  bool fits = true;
  for (int k = 0; k < program.results; ++k)
    if (const int value = program.result_values[k]; !program.is_of_row(value))
      fits &= is_aligned(launch.results[k], width * size_of(program.dtype_of(value)));
  for (int k = 0; k < program.operands; ++k) {
    const int64_t step = launch.operands[k].strides[launch.ndim - 1];
    fits &= step == 0 || step == 1;
  }
  return fits ? static_cast<int>(width) : 1;
}

bool is_contiguous(const FusedLaunch& launch, const FusedOperand& operand) {
  int64_t stride = 1;
  for (int d = launch.ndim - 1; d >= 0; stride *= launch.sizes[d--])
    if (operand.strides[d] != stride) return false;
  return true;
}

// Whether the elements for a pack of results, in the last dimension, are the same one or an aligned pack.
bool has_packs(const FusedArgs& args, int operand, int width) {
  const auto& [program, launch] = args;
  const auto& [data, strides] = launch.operands[operand];
  const int inner = launch.ndim - 1;
  if (std::all_of(strides, strides + launch.ndim, [](int64_t stride) { return stride == 0; })) return true;
  if (inner > 0 && launch.sizes[inner] % width != 0) return false;
  if (strides[inner] == 0) return true;
  bool fits = is_aligned(data, width * size_of(program.operand_dtypes[operand]));
  for (int d = 0; d < inner; ++d) fits &= strides[d] % width == 0;
  return fits;
}

// How many packs of a row so many registers hold: of what stays there between passes, and of what one pass reads.
int most_packs(const FusedProgram& program, const FusedTiling& tiling, int registers_there) {
  const auto registers = [&](int operand) {
    const int bytes = tiling.width * static_cast<int>(size_of(program.operand_dtypes[operand]));
    return tiling.is_constant(operand) ? 0 : std::max(1, bytes / 4);
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
  for (int k = 0; k < program.column_sums; ++k)
    kept += tiling.width * (program.column_sum[k].dtype == DType::kFloat64 ? 2 : 1);
  const auto fit = static_cast<unsigned>(registers_there / std::max(kept + most_read, 1));
  return std::clamp(static_cast<int>(std::bit_floor(fit)), 1, 16);
}

// As many packs or a few more, so that rows of similar lengths share a kernel.
int few_counts(int packs) { return packs <= 8 ? packs : (packs + 1) / 2 * 2; }

// A row belongs to as few threads as hold it in registers. Rows that are too few to fill the GPU get more of them.
void divide_rows(const FusedArgs& args, int sm_count, FusedTiling& tiling) {
  const auto& [program, launch] = args;
  const int64_t packs = launch.columns / tiling.width;
  const bool sums = program.column_sums > 0;
  const int fit = most_packs(program, tiling, sums ? kRegistersWithSums : kRegisters);
  const int most = sums ? most_packs(program, tiling, kMostRegistersWithSums) : fit;
  tiling.threads = kFewestThreads;
  const auto grow = [&] { tiling.threads = tiling.threads == 32 ? kFusedThreads : tiling.threads * 2; };
  while (tiling.threads < kMostThreads && int64_t{tiling.threads} * fit < packs) grow();
  while (tiling.threads < std::min<int64_t>(kMostThreads, packs) &&
         launch.rows * tiling.threads < int64_t{sm_count} * kFewestPerSm)
    grow();
  const int64_t needed = (packs + tiling.threads - 1) / tiling.threads;
  tiling.keeps = needed <= most;
  tiling.packs = tiling.keeps ? few_counts(static_cast<int>(needed)) : most;
  tiling.whole = static_cast<int>(std::min<int64_t>(tiling.packs, packs / tiling.threads));
}

// Bit k: the elements of operand k do not come in packs of this width.
uint32_t loose_operands(const FusedArgs& args, int width) {
  uint32_t loose = 0;
  for (int k = 0; k < args.program.operands; ++k) loose |= static_cast<uint32_t>(!has_packs(args, k, width)) << k;
  return loose;
}

// Where rows are reduced, packs are as narrow as all operands and results need to be aligned.
FusedTiling tiling_of(const FusedArgs& args, int sm_count) {
  const auto& [program, launch] = args;
  FusedTiling tiling{width_of(args)};
  tiling.dims = launch.ndim;
  tiling.row_dims = launch.row_ndim;
  tiling.is_long = launch.count >= int64_t{1} << 31;
  for (int k = 0; k < program.operands; ++k) {
    const int64_t* strides = launch.operands[k].strides;
    for (int d = 0; d < launch.ndim; ++d) tiling.repeats[k] |= (strides[d] == 0) << d;
    tiling.adjacent |= static_cast<uint32_t>(strides[launch.ndim - 1] == 1) << k;
  }
  if (program.reductions > 0) {
    const int64_t inner = launch.sizes[launch.ndim - 1];
    while (tiling.width > 1 && (inner % tiling.width != 0 || loose_operands(args, tiling.width))) tiling.width /= 2;
    divide_rows(args, sm_count, tiling);
    return tiling;
  }
  for (int k = 0; k < program.operands; ++k) {
    const bool is_aligned_too = is_aligned(launch.operands[k].data, tiling.width * size_of(program.operand_dtypes[k]));
    tiling.contiguous |= static_cast<uint32_t>(is_aligned_too && is_contiguous(launch, launch.operands[k])) << k;
  }
  tiling.loose = loose_operands(args, tiling.width) & ~tiling.contiguous;
  return tiling;
}

// Threads per block, and blocks. Where columns are summed, blocks are few and work on row after row.
LaunchShape shape_of(const FusedArgs& args, const FusedTiling& tiling, int sm_count) {
  const auto& [program, launch] = args;
  const int threads = program.reductions ? std::max(tiling.threads, kFusedThreads) : kFusedThreads;
  const int64_t per_block = program.reductions ? launch.columns * (threads / tiling.threads) : threads * tiling.width;
  const int64_t blocks = (launch.count + per_block - 1) / per_block;
  if (program.column_sums == 0) return {blocks, threads};
  const int64_t rows = std::max(threads / tiling.threads, kFewestSummedRows);
  const int64_t few = std::min<int64_t>((launch.rows + rows - 1) / rows, sm_count * (kResidentThreads / threads));
  return {column_sum_blocks(blocks, few), threads};
}

}  // namespace

Footprint fused_cuda_v1_footprint(const FusedArgs& args, const Target& target) {
  if (args.program.column_sums == 0) return {};
  const int64_t blocks = shape_of(args, tiling_of(args, target.sm_count), target.sm_count).grid.x;
  return {2, 0, args.program.partial_sum_bytes(blocks, args.launch.columns)};
}

void fused_cuda_v1_nvrtc(const FusedArgs& args, Queue& queue) {
  const auto& [program, launch] = args;
  const FusedTiling tiling = tiling_of(args, queue.target().sm_count);
  const Compiled compiled = kernels().find(program, tiling, queue.device().index, queue.target().compute_capability);
  const LaunchShape shape = shape_of(args, tiling, queue.target().sm_count);
  int64_t blocks = shape.grid.x;
  const bool sums = program.column_sums > 0;
  void* partial = sums ? queue.scratch_bytes(program.partial_sum_bytes(blocks, launch.columns)) : nullptr;
  void* parameters[] = {const_cast<FusedLaunch*>(&launch), &partial, &blocks};
  const LaunchShape of_sums{{(launch.columns + 31) / 32, program.column_sums}, kFusedSumThreads};
  queue.library({.kernels = 1 + sums}, [&] {
    cuda::launch_kernel(compiled.chain, "fused_cuda_v1_nvrtc", shape, parameters, queue.stream());
    if (!sums) return;
    cuda::launch_kernel(compiled.sums, "fused_cuda_v1_nvrtc", of_sums, parameters, queue.stream());
  });
}

}  // namespace rooflab::kernels
