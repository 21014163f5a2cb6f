// kv_append: writes the keys and values of new tokens into their caches. A cache has room for T tokens and is a ring:
// the token at position p goes to place p mod T, so a cache as long as a sliding window keeps exactly that window. Of
// more than T new tokens only the last T are written. The position lies in the device's memory, so a graph writes to
// the next place at each replay. Below 0 it is an error, and nothing is written: on the CPU at once, on a GPU
// when the host next waits for it.
//
// FLOPs: none. Compulsory bytes: what is written is read once and written once; 8 for the position. Roof: memory
// bandwidth, and for one token the launch.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/out_of_range.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/attention/attention.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct KvAppendArgs {
  const void *k, *v;        // (B, H_kv, L, D_h), elements of a row adjacent
  void *k_cache, *v_cache;  // (B, H_kv, T, D_h)
  const int64_t* position;  // position of the first new token
  int64_t batch, heads, length, capacity, head_size;
  AttentionStrides k_strides, v_strides, k_cache_strides, v_cache_strides;
  DType dtype;
  OutOfRange* report;  // where a GPU reports a position below 0

  ROOFLAB_HOST_DEVICE int64_t tokens() const { return length < capacity ? length : capacity; }  // how many are written
};

// Row number n of those that are written, of K and of V: where it comes from and where it goes, in elements.
struct KvAppendRow {
  int64_t k_from, v_from, k_to, v_to;

  ROOFLAB_HOST_DEVICE KvAppendRow(const KvAppendArgs& args, int64_t position, int64_t n) {
    const int64_t tokens = args.tokens(), token = n % tokens + args.length - tokens;
    const int64_t head = n / tokens % args.heads, b = n / tokens / args.heads;
    const int64_t place = (position % args.capacity + token % args.capacity) % args.capacity;
    const auto at = [&](const AttentionStrides& strides, int64_t token) {
      return b * strides.batch + head * strides.head + token * strides.token;
    };
    k_from = at(args.k_strides, token);
    v_from = at(args.v_strides, token);
    k_to = at(args.k_cache_strides, place);
    v_to = at(args.v_cache_strides, place);
  }
};

ROOFLAB_HOST_DEVICE OutOfRange out_of_range(int64_t position) {
  return {OutOfRange::kPosition, position, 0, 0, nullptr};
}

bool kv_append_cuda_v1_accepts(const KvAppendArgs&, const Target&);

extern const Ladder<KvAppendArgs> kv_append_ladder;

}  // namespace rooflab::kernels
