// Instructions of Hopper (sm_90a) that CUDA C++ has no names for: barriers that count bytes (mbarrier), bulk copies of
// tiles by tensor map (TMA), tensor core products of a warpgroup (wgmma), clusters of blocks. Kernels that use them
// guard their body with ROOFLAB_SM90A; for those of clusters, which newer GPUs have too, ROOFLAB_SM90 is enough.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/common/ptx_ampere.cuh"

namespace rooflab::kernels::ptx {

// ---- Barriers in shared memory. A phase ends when `arrivals` arrivals and all announced bytes have come.

using Barrier = uint64_t;

__device__ __forceinline__ void barrier_init(Barrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}

// Makes initialised barriers known to the other blocks of the cluster and to the copy engine.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and announces that bulk copies will bring `bytes` in this phase.
__device__ __forceinline__ void barrier_expect(Barrier& barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void barrier_arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

// Arrives at the same barrier of block `rank` of the cluster. It orders no memory outside this block: it can tell that
// reads are finished, but not that something was written.
__device__ __forceinline__ void barrier_arrive_at(Barrier& barrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}

// Waits for the end of the phase of this parity: 0 for the first phase, then 1, then 0...
__device__ __forceinline__ void barrier_wait(Barrier& barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "wait:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra wait;\n"
      "}" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

// Barrier `id` (1 to 15) among `threads` of the block.
__device__ __forceinline__ void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Counts as the caller's arrival at a named barrier, without waiting for the others.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- Clusters

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Where the same variable of block `rank` lies: an address for ordinary loads and stores.
template <class T>
__device__ __forceinline__ T* at_rank(T* shared, uint32_t rank) {
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
  return there;
}

// ---- Tensor maps: tiles of three or four dimensions, innermost first

__device__ __forceinline__ void tensor_map_prefetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Copies contiguous bytes; addresses and size are multiples of 16.
__device__ __forceinline__ void copy_row(void* shared, const void* global, uint32_t bytes, Barrier& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(bytes), "r"(shared_address(&barrier))
               : "memory");
}

__device__ __forceinline__ void tile_load(void* shared, const CUtensorMap& map, Barrier& barrier, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

__device__ __forceinline__ void tile_load(void* shared, const CUtensorMap& map, Barrier& barrier, int x, int y, int z,
                                          int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// The tile goes to the same address, and its bytes to the same barrier, in each block of the cluster that `blocks`
// names.
__device__ __forceinline__ void tile_load_multicast(void* shared, const CUtensorMap& map, Barrier& barrier, int x,
                                                    int y, int z, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(z), "h"(blocks)
      : "memory");
}

__device__ __forceinline__ void tile_store(const CUtensorMap& map, const void* shared, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(x), "r"(y), "r"(z)
               : "memory");
}

__device__ __forceinline__ void tile_store(const CUtensorMap& map, const void* shared, int x, int y, int z, int w) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
               "r"(shared_address(shared)), "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
}

__device__ __forceinline__ void tile_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until at most kPending of this thread's stores are still reading their shared memory.
template <int kPending>
__device__ __forceinline__ void tile_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// Waits until all of this thread's stores are done.
__device__ __forceinline__ void tile_store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Orders this thread's earlier accesses to global memory before what it then tells the copy engine to do there.
__device__ __forceinline__ void async_proxy_fence_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Orders this thread's ordinary writes to shared memory before the reads of the copy engine and the tensor cores.
__device__ __forceinline__ void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Stores four 8 x 8 matrices of 16-bit elements in shared memory; lane l gives the address of row l % 8 of matrix l /
// 8.
__device__ __forceinline__ void store_matrices(void* shared_row, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(shared_row)),
               "r"(r0), "r"(r1), "r"(r2), "r"(r3)
               : "memory");
}

// ---- Sums in global memory

// Adds four neighbours, 16-byte aligned, without waiting; each of the four is atomic by itself.
__device__ __forceinline__ void add_vector(float* sum, const float* x) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sum), "f"(x[0]), "f"(x[1]), "f"(x[2]),
               "f"(x[3])
               : "memory");
}

// Adds `bytes` of floats from shared memory in the background, as part of a group, as tile_store's copies are. Both
// addresses and the size are multiples of 16 bytes. Unlike with add_vector, later fences do not wait for it.
__device__ __forceinline__ void add_bulk(float* sum, const void* shared, uint32_t bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(sum),
               "r"(shared_address(shared)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ uint32_t load_acquire(const uint32_t* x) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(x) : "memory");
  return value;
}

__device__ __forceinline__ void store_release(uint32_t* x, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(x), "r"(value) : "memory");
}

// ---- Registers: one warpgroup gives some up, another takes them

template <int kCount>
__device__ __forceinline__ void registers_shrink_to() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void registers_grow_to() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// ---- Products of a warpgroup

// Describes a tile in shared memory made of lines of 128 bytes, as a tensor map with 128-byte swizzle writes it: eight
// lines make an atom of 1024 bytes. If the lines do not run along K, the tile repeats along M or N every
// `repeat_bytes`.
__device__ __forceinline__ uint64_t swizzled_tile(const void* shared, uint32_t repeat_bytes) {
  constexpr uint64_t kSwizzle128 = 1, kAtomBytes = 1024;
  return uint64_t{(shared_address(shared) & 0x3ffff) >> 4} | uint64_t{repeat_bytes >> 4} << 16 |
         (kAtomBytes >> 4) << 32 | kSwizzle128 << 62;
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

}  // namespace rooflab::kernels::ptx
