// How the blocks of gemma3_decode's v1 pass numbers to each other, through global memory, which here means the L2
// cache.
//
// Each number lies beside the number of the layer that wrote it, in one word of 8 bytes. A reader reads until all of
// its words are of the layer that it waits for. So no barrier is needed: a number takes one write and one read, where a
// barrier takes a write, a count, a read of the count and a read. (NCCL's protocol LL does the same.)
//
// Two layers take turns with the memory. What layer l + 2 overwrites has been read by then: each of its writers waited
// for results of layer l + 1 that need what all readers of layer l wrote afterwards.
#pragma once

#include "kernels/common/vector_load.cuh"
#include "kernels/gemma3_decode/gemma3_decode_plan.h"

namespace rooflab::kernels::gemma3_decode {

using Slot = uint64_t;  // 32 bits: a float, or two numbers of 16 bits; and above them the layer, from 1

__device__ __forceinline__ Slot slot_of(uint32_t bits, unsigned layer) { return Slot{layer} << 32 | bits; }

__device__ __forceinline__ void put_bits(Slot* to, uint32_t bits, unsigned layer) {
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(slot_of(bits, layer)) : "memory");
}
__device__ __forceinline__ void put(Slot* to, float value, unsigned layer) {
  put_bits(to, __float_as_uint(value), layer);
}
// Two slots, aligned to 16 bytes.
__device__ __forceinline__ void put_bits(Slot* to, uint32_t first, uint32_t second, unsigned layer) {
  asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(slot_of(first, layer)),
               "l"(slot_of(second, layer))
               : "memory");
}
__device__ __forceinline__ void put(Slot* to, float first, float second, unsigned layer) {
  put_bits(to, __float_as_uint(first), __float_as_uint(second), layer);
}
// Four numbers, as T in two slots.
template <class T>
__device__ __forceinline__ void put_as(Slot* to, const Vector<float, 4>& values, unsigned layer) {
  const Vector<T, 4> rounded = from_float<T>(values);
  const uint2 bits = *reinterpret_cast<const uint2*>(&rounded);
  put_bits(to, bits.x, bits.y, layer);
}

// Waits for the first `count` runs of kWide neighbours, `stride` slots apart, that `layer` puts there. The rest of the
// kCount runs are 0.
template <int kWide, int kCount>
__device__ __forceinline__ void get(Vector<float, kWide> (&runs)[kCount], const Slot* from, int stride, int count,
                                    unsigned layer) {
  unsigned wrong;
  do {
    wrong = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int j = 0; j < kWide; j += 2) {
        Slot first = slot_of(0, layer), second = first;
        if (i < count)
          asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];"
                       : "=l"(first), "=l"(second)
                       : "l"(from + i * stride + j)
                       : "memory");
        runs[i][j] = __uint_as_float(static_cast<unsigned>(first));
        runs[i][j + 1] = __uint_as_float(static_cast<unsigned>(second));
        wrong |= (static_cast<unsigned>(first >> 32) ^ layer) | (static_cast<unsigned>(second >> 32) ^ layer);
      }
    }
  } while (wrong);
}

// What the steps of a layer pass on to each other.
struct Between {
  Slot* for_qkv;   // (B, D) in T: what qkv multiplies; only with several texts
  Slot* for_gate;  // (B, D) in T: what gate and up multiply; only with several texts
  Slot* qkv;       // (B, rows of qkv)
  Slot* parts;     // (B, H, parts, D_h): sums over a part of the keys
  Slot* stats;     // (B, H, parts, 2): maximum in base 2, and sum
  Slot* heads;     // (B, H D_h) in T: the attention's result; only with several texts
  Slot* o;         // (slices, B, D)
  Slot* active;    // (B, I) in T
  Slot* down;      // (slices, B, D)

  __device__ __forceinline__ Between(Slot* slots, const DecodePlan& plan, unsigned layer) {
    for_qkv = slots + layer % 2 * plan.slots();
    for_gate = for_qkv + plan.normal_slots;
    qkv = for_gate + plan.normal_slots;
    parts = qkv + plan.qkv_slots;
    stats = parts + plan.part_slots;
    heads = stats + plan.stat_slots;
    o = heads + plan.head_slots;
    active = o + plan.o_slots;
    down = active + plan.active_slots;
  }
};

}  // namespace rooflab::kernels::gemma3_decode
