// What the rungs of sort that move packed elements share: an element and its place in its line are one item, the
// element's key (sort_key.h) above and its place below, so that all items differ and equal elements keep their order.
// Where no positions are asked for, an item may be the key alone.
#pragma once

#include "core/dtype.h"
#include "kernels/common/cuda_types.cuh"
#include "kernels/common/strided.h"
#include "kernels/sort/sort.h"
#include "kernels/sort/sort_key.h"

namespace rooflab::kernels {

// The work of v3, with sort_radix_bytes() of scratch.
void sort_by_radix(const SortArgs& args, Queue& queue, void* scratch);

// For elements of 64 bits. The others fit into an integer with their place.
struct WideItem {
  uint64_t key, place;
};

template <class Key>
struct KeyItem {
  Key key;
};
template <class Item>
constexpr bool kIsKey = requires(Item item) {
  item.key;
}
&&!std::is_same_v<Item, WideItem>;

template <class Item>
__device__ __forceinline__ Item pack(uint64_t key, uint64_t place) {
  if constexpr (kIsKey<Item>)
    return {static_cast<decltype(Item::key)>(key)};
  else if constexpr (std::is_same_v<Item, WideItem>)
    return {key, place};
  else
    return static_cast<Item>(key << (4 * sizeof(Item)) | place);
}
template <class Item>
__device__ __forceinline__ uint64_t key_in(const Item& item) {
  if constexpr (kIsKey<Item> || std::is_same_v<Item, WideItem>)
    return item.key;
  else
    return item >> (4 * sizeof(Item));
}
template <class Item>
__device__ __forceinline__ int64_t place_in(const Item& item) {
  if constexpr (std::is_same_v<Item, WideItem>)
    return static_cast<int64_t>(item.place);
  else
    return static_cast<int64_t>(item & static_cast<Item>(~Item{0} >> (4 * sizeof(Item))));
}

// An item that comes after all others.
template <class Item>
__device__ __forceinline__ Item last_item() {
  if constexpr (std::is_same_v<Item, WideItem>)
    return {~uint64_t{0}, ~uint64_t{0}};
  else
    return static_cast<Item>(~Item{0});
}

__device__ __forceinline__ bool is_before(uint32_t a, uint32_t b) { return a < b; }
__device__ __forceinline__ bool is_before(uint64_t a, uint64_t b) { return a < b; }
__device__ __forceinline__ bool is_before(const WideItem& a, const WideItem& b) {
  return a.key != b.key ? a.key < b.key : a.place < b.place;
}

// Calls f.operator()<Item>() with the smallest item that is the key of an element.
template <class F>
void dispatch_key_item(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 8: return f.template operator()<KeyItem<uint64_t>>();
    case 4: return f.template operator()<KeyItem<uint32_t>>();
    default: return f.template operator()<KeyItem<uint16_t>>();
  }
}

// The same with the smallest one that holds an element and any of `places` places.
template <class F>
void dispatch_item(DType dtype, int64_t places, F&& f) {
  if (size_of(dtype) <= 2 && places <= INT64_C(1) << 16)
    f.template operator()<uint32_t>();
  else if (size_of(dtype) <= 4)
    f.template operator()<uint64_t>();
  else
    f.template operator()<WideItem>();
}

// A line of the input: the elements along the sorted axis, of `bytes` each.
struct Line {
  int bytes;
  int64_t inner, outer;
  const char* x;

  __device__ __forceinline__ Line(const SortArgs& args, int bytes, int64_t line)
      : bytes(bytes),
        outer(divide(line, args.inner, inner)),
        x(static_cast<const char*>(args.x) + (outer * args.outer_stride + inner * args.inner_stride) * bytes) {}

  template <class T>
  __device__ __forceinline__ T element(const SortArgs& args, int64_t place) const {
    return reinterpret_cast<const T*>(x)[place * args.n_stride];
  }

  // The key of an element of these bits, which comes first where it is small.
  template <class Bits>
  __device__ __forceinline__ Bits key_of_bits(const SortArgs& args, Bits bits) const {
    constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
    Bits key = bits;  // of a bool
    if (is_floating(args.dtype))
      key = key_of_float(bits, (bits & kMagnitude) > infinity<Bits>(args.dtype), args.indices == nullptr);
    else if (args.dtype != DType::kBool)
      key = integer_of_key(bits);
    return args.descending ? static_cast<Bits>(~key) : key;
  }

  // The key of the element at a place.
  __device__ __forceinline__ uint64_t key(const SortArgs& args, int64_t place) const {
    switch (bytes) {
      case 1: return key_of_bits(args, element<uint8_t>(args, place));
      case 2: return key_of_bits(args, element<uint16_t>(args, place));
      case 4: return key_of_bits(args, element<uint32_t>(args, place));
      default: return key_of_bits(args, element<uint64_t>(args, place));
    }
  }

  // Writes the element at `place` as number `rank` of the result.
  __device__ __forceinline__ void write(const SortArgs& args, int64_t rank, int64_t place) const {
    const int64_t at = place_of_result(args, rank);
    if (args.indices) args.indices[at] = place;
    switch (bytes) {
      case 1: static_cast<uint8_t*>(args.values)[at] = element<uint8_t>(args, place); break;
      case 2: static_cast<uint16_t*>(args.values)[at] = element<uint16_t>(args, place); break;
      case 4: static_cast<uint32_t*>(args.values)[at] = element<uint32_t>(args, place); break;
      default: static_cast<uint64_t*>(args.values)[at] = element<uint64_t>(args, place);
    }
  }

  // The same for an item. Its key says what the element is, so x, where it may lie anywhere, is not read again.
  template <class Item>
  __device__ __forceinline__ void write_item(const SortArgs& args, int64_t rank, const Item& item) const {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * bytes), key = args.descending ? key_in(item) ^ mask : key_in(item);
    const int64_t at = place_of_result(args, rank);
    const auto write_float = [&]<class Bits>() {
      Bits element_bits;
      const bool is_known = float_of_key(static_cast<Bits>(key), element_bits);
      if constexpr (!kIsKey<Item>)
        if (!is_known) element_bits = element<Bits>(args, place_in(item));
      static_cast<Bits*>(args.values)[at] = element_bits;
    };
    if constexpr (!kIsKey<Item>) args.indices[at] = place_in(item);
    switch (args.dtype) {
      case DType::kFloat64: return write_float.template operator()<uint64_t>();
      case DType::kFloat32: return write_float.template operator()<uint32_t>();
      case DType::kFloat16:
      case DType::kBFloat16: return write_float.template operator()<uint16_t>();
      case DType::kInt64: static_cast<uint64_t*>(args.values)[at] = integer_of_key(key); return;
      case DType::kInt32: static_cast<uint32_t*>(args.values)[at] = integer_of_key(static_cast<uint32_t>(key)); return;
      case DType::kBool: static_cast<uint8_t*>(args.values)[at] = static_cast<uint8_t>(key);
    }
  }

 private:
  __device__ __forceinline__ int64_t place_of_result(const SortArgs& args, int64_t rank) const {
    return (outer * args.keep + rank) * args.inner + inner;
  }

  template <class Bits>
  __device__ __forceinline__ static Bits infinity(DType dtype) {
    if constexpr (sizeof(Bits) == 8) return 0x7ff0000000000000u;
    if constexpr (sizeof(Bits) == 4) return 0x7f800000u;
    if constexpr (sizeof(Bits) == 2) return dtype == DType::kFloat16 ? 0x7c00u : 0x7f80u;
    return 0;  // no float has 8 bits
  }
};

}  // namespace rooflab::kernels
