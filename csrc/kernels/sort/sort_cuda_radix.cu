// The radix rung of sort on the GPU: see sort.h for what it computes. The first pass packs the elements as it reads
// them; if they are not adjacent, so that reading is slow, they are packed before. A pass puts the items of each line
// in order of one digit, the lowest first, and keeps the order of the pass before among equal digits. It has three
// kernels: blocks count the digits of their portions of a line; others add up a digit's counts, which tells where every
// portion's items go among those of the digit; then each tile of a portion is put in order in shared memory, and its
// items are moved from there, neighbours together.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/sort/sort_cuda_digits.cuh"
#include "kernels/sort/sort_cuda_packed.cuh"

namespace rooflab::kernels {
namespace {

static_assert(kDigits == kThreads, "a thread for each digit");
constexpr int kMostTeams = 32, kBatch = 16;  // of threads that add up counts, and loads in flight
constexpr int kRounds = kSortTile / kThreads, kWarps = kThreads / kWarp;

template <class Item>
struct RadixPass {
  const Item* from;  // (lines, n); null where the elements are not packed yet
  Item* to;          // (lines, n); null in the last pass, which writes the result
  uint32_t* counts;  // (lines, portions, digits); then how many of the digit are in the portions before
  uint32_t* totals;  // (lines, digits)
  int64_t portions;  // per line, one for each block
  int number;        // of the pass, and so of the digit
  int bytes;         // of an element

  __device__ __forceinline__ int digit(const Item& item) const { return digit_of(item, number); }
  __device__ __forceinline__ Item item(const SortArgs& args, const Line& line, int64_t line_number, int64_t at) const {
    return from ? from[line_number * args.n + at] : pack<Item>(line.key(args, at), at);
  }
};

template <class Item>
__global__ void __launch_bounds__(kThreads)
    sort_cuda_v3_radix_pack_kernel(const __grid_constant__ SortArgs args, int bytes, Item* items) {
  const int64_t count = args.outer * args.inner * args.n, threads = gridDim.x * int64_t{kThreads};
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < count; i += threads) {
    int64_t at;
    const int64_t line = divide(i, args.n, at);
    items[i] = pack<Item>(Line(args, bytes, line).key(args, at), at);
  }
}

// The part of a line that a block works on.
struct Portion {
  int64_t line, number, begin, end;

  __device__ __forceinline__ Portion(int64_t n, int64_t portions)
      : line(blockIdx.x / portions), number(blockIdx.x % portions) {
    const int64_t tiles = (n + kSortTile - 1) / kSortTile;
    begin = tiles * number / portions * kSortTile;
    end = min(tiles * (number + 1) / portions * kSortTile, n);
  }
};

template <class Item>
__global__ void __launch_bounds__(kThreads)
    sort_cuda_v3_radix_count_kernel(const __grid_constant__ SortArgs args,
                                    const __grid_constant__ RadixPass<Item> pass) {
  __shared__ uint32_t counts[kDigits];
  wait_for_previous_kernel();
  counts[threadIdx.x] = 0;
  __syncthreads();
  const Portion portion(args.n, pass.portions);
  const Line line(args, pass.bytes, portion.line);
  for (int64_t tile = portion.begin; tile < portion.end; tile += kSortTile) {
    int digits[kRounds];  // all loads are issued before the first atomic
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const int64_t at = tile + round * kThreads + threadIdx.x;
      digits[round] = at < portion.end ? pass.digit(pass.item(args, line, portion.line, at)) : -1;
    }
#pragma unroll
    for (int round = 0; round < kRounds; ++round)
      if (digits[round] >= 0) atomicAdd(&counts[digits[round]], 1);
  }
  __syncthreads();
  pass.counts[blockIdx.x * int64_t{kDigits} + threadIdx.x] = counts[threadIdx.x];
}

// Turns the counts of a line into the sums of those of the portions before. A warp has a thread for each of 32 digits,
// and the warps of a block share the portions.
__global__ void __launch_bounds__(kWarp* kMostTeams)
    sort_cuda_v3_radix_places_kernel(uint32_t* counts, uint32_t* totals, int64_t portions) {
  __shared__ uint32_t of_team[kMostTeams][kWarp];
  const int lane = threadIdx.x, team = threadIdx.y, teams = blockDim.y;
  const int64_t begin = portions * team / teams, end = portions * (team + 1) / teams;
  const int64_t line = blockIdx.x / (kDigits / kWarp), digit = blockIdx.x % (kDigits / kWarp) * kWarp + lane;
  uint32_t* own = counts + line * portions * kDigits + digit;
  wait_for_previous_kernel();
  uint32_t sum = 0;
#pragma unroll(kBatch)
  for (int64_t p = begin; p < end; ++p) sum += own[p * kDigits];
  of_team[team][lane] = sum;
  __syncthreads();
  uint32_t before = 0;
  for (int t = 0; t < team; ++t) before += of_team[t][lane];
  if (team == teams - 1) totals[line * kDigits + digit] = before + sum;

  for (int64_t p = begin; p < end; p += kBatch) {
    uint32_t batch[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      if (p + i < end) batch[i] = own[(p + i) * kDigits];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (p + i >= end) break;
      own[(p + i) * kDigits] = before;
      before += batch[i];
    }
  }
}

template <class Item>
__global__ void __launch_bounds__(kThreads)
    sort_cuda_v3_radix_move_kernel(const __grid_constant__ SortArgs args,
                                   const __grid_constant__ RadixPass<Item> pass) {
  __shared__ uint32_t counts[kWarps][kDigits + 1];  // the last column is for lanes past the end
  __shared__ uint32_t to_line[kDigits];             // from an item's place in the ordered tile to that in the line
  __shared__ uint32_t of_warps[kWarps];
  __shared__ Item ordered[kSortTile];
  wait_for_previous_kernel();
  const Portion portion(args.n, pass.portions);
  const Line line(args, pass.bytes, portion.line);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;

  // Where this thread's digit goes on: after all lower digits, and its own of the portions before.
  uint32_t next = sum_before(pass.totals[portion.line * kDigits + threadIdx.x], of_warps);
  next += pass.counts[blockIdx.x * int64_t{kDigits} + threadIdx.x];

  for (int64_t tile = portion.begin; tile < portion.end; tile += kSortTile) {
    for (int w = 0; w < kWarps; ++w) counts[w][threadIdx.x] = 0;
    __syncthreads();

    // Each warp takes neighbouring items, and numbers those of the same digit in their order.
    Item items[kRounds];
    int digits[kRounds];
    uint32_t ranks[kRounds];
    const int64_t first = tile + warp * kRounds * kWarp + lane;
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const bool is_inside = first + round * kWarp < portion.end;
      if (is_inside) items[round] = pass.item(args, line, portion.line, first + round * kWarp);
      digits[round] = is_inside ? pass.digit(items[round]) : kDigits;
    }
    rank_in_warp(digits, kRounds, counts[warp], ranks);
    __syncthreads();

    uint32_t of_tile;
    to_line[threadIdx.x] = next - places_in_tile(counts, of_warps, of_tile);
    next += of_tile;
    __syncthreads();

    // The tile is put in order first, so that neighbouring threads write to neighbouring places of the line.
#pragma unroll
    for (int round = 0; round < kRounds; ++round)
      if (first + round * kWarp < portion.end) ordered[counts[warp][digits[round]] + ranks[round]] = items[round];
    __syncthreads();
    const int count = static_cast<int>(min(portion.end - tile, int64_t{kSortTile}));
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const Item item = ordered[i];
      const int64_t to = to_line[pass.digit(item)] + static_cast<uint32_t>(i);
      if (pass.to)
        pass.to[portion.line * args.n + to] = item;
      else if (to < args.keep)
        line.write_item(args, to, item);
    }
    __syncthreads();
  }
}

template <class Item>
void sort_by_digits(const SortArgs& args, Queue& queue, void* scratch) {
  const int64_t lines = args.outer * args.inner, portions = sort_portions(args), items = lines * args.n;
  Item* buffers[] = {static_cast<Item*>(scratch), static_cast<Item*>(scratch) + items};
  auto* totals = reinterpret_cast<uint32_t*>(buffers[1] + items);
  const int bytes = static_cast<int>(size_of(args.dtype));
  RadixPass<Item> pass{nullptr, nullptr, totals + lines * kDigits, totals, portions, 0, bytes};
  if (sort_packs_before(args)) {
    queue.launch(sort_cuda_v3_radix_pack_kernel<Item>, a_thread_each(items), args, bytes, buffers[0]);
    pass.from = buffers[0];
  }
  const LaunchShape shape{.grid = lines * portions, .block = kThreads, .early = can_launch_early(queue)};
  const auto teams = static_cast<unsigned>(std::min<int64_t>(blocks_of(portions, kBatch), kMostTeams));
  const LaunchShape sums{.grid = lines * (kDigits / kWarp), .block = {kWarp, teams}, .early = shape.early};
  for (; pass.number < bytes; ++pass.number) {
    pass.to = pass.number == bytes - 1 ? nullptr : buffers[(pass.number + 1) % 2];
    queue.launch(sort_cuda_v3_radix_count_kernel<Item>, shape, args, pass);
    queue.launch(sort_cuda_v3_radix_places_kernel, sums, pass.counts, pass.totals, portions);
    queue.launch(sort_cuda_v3_radix_move_kernel<Item>, shape, args, pass);
    pass.from = pass.to;
  }
}

}  // namespace

void sort_by_radix(const SortArgs& args, Queue& queue, void* scratch) {
  const auto sort = [&]<class Item>() { sort_by_digits<Item>(args, queue, scratch); };
  if (args.indices)
    dispatch_item(args.dtype, args.n, sort);
  else
    dispatch_key_item(args.dtype, sort);
}

void sort_cuda_v3_radix(const SortArgs& args, Queue& queue) {
  sort_by_radix(args, queue, queue.scratch_bytes(sort_radix_bytes(args)));
}

}  // namespace rooflab::kernels
