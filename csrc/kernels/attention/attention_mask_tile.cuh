// The explicit mask as the accumulators of mma.sync need it, for v2 and v4. A lane has two neighbouring columns of each
// eight, in row lane / 4 and in the row eight below. Loads begin before the product whose scores they mask.
#pragma once

#include "kernels/attention/attention_mma_tile.cuh"

namespace rooflab::kernels {

// Neighbouring elements of a mask, as they lie in words.
template <class T>
struct MaskWords {
  static __device__ __forceinline__ void apply_bool(float& score, uint32_t word, int byte) {
    if (!(word & 0xffu << 8 * byte)) score = -INFINITY;
  }
  // `score` is scaled.
  static __device__ __forceinline__ void apply_added(float& score, uint32_t word, int half) {
    const float bias = to_float(reinterpret_cast<const Vector<T, 2>&>(word))[half];
    score = bias == -INFINITY ? bias : __fadd_rn(score, bias);  // not fused with the scale: see scaled()
  }
};

// v4: the mask of a lane's two pairs of keys in each of its two rows, of a tile of 16 keys.
template <class T>
class MaskPairs {
 public:
  __device__ MaskPairs(const AttentionArgs& args, int key_end)
      : is_bool_(args.mask_is_bool), key_end_(key_end), stride_(args.mask_strides[3]) {
    for (auto& row : pairs_) row[0] = row[1] = is_bool_ ? ~0u : 0;  // rows that are none of the group's see all keys
  }

  // Row r is that of `query`. The lane's first key is `key`, now or any number of whole tiles before.
  __device__ __forceinline__ void set_row(int r, const AttentionArgs& args, int64_t batch, int64_t head, int64_t query,
                                          int key) {
    const int64_t* strides = args.mask_strides;
    row_[r] =
        static_cast<const char*>(args.mask) + (batch * strides[0] + head * strides[1] + query * strides[2]) * element();
    is_paired_[r] = stride_ == 1 && (reinterpret_cast<uintptr_t>(row_[r]) + key * element()) % (2 * element()) == 0;
  }

  // `key` is the lane's first in the tile. Nothing is read from `key_end` on.
  __device__ __forceinline__ void load(int key) {
    is_bool_ ? load_elements<uint8_t, uint16_t>(key) : load_elements<uint16_t, uint32_t>(key);
  }

  __device__ __forceinline__ void apply(float (&score)[2][4]) const {
    const auto each = [&](auto&& apply_one) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) apply_one(score[j][e], pairs_[e / 2][j], e % 2);
      }
    };
    is_bool_ ? each(MaskWords<T>::apply_bool) : each(MaskWords<T>::apply_added);
  }

 private:
  __device__ __forceinline__ int element() const { return is_bool_ ? 1 : sizeof(T); }

  template <class Element, class Pair>
  __device__ __forceinline__ void load_elements(int key) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const auto* row = reinterpret_cast<const Element*>(row_[r]);
      if (row == nullptr) continue;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int at = key + j * 8;
        if (is_paired_[r] && at + 1 < key_end_) {
          pairs_[r][j] = *reinterpret_cast<const Pair*>(row + at);
        } else {
          const uint32_t first = at < key_end_ ? row[at * stride_] : 0;
          const uint32_t second = at + 1 < key_end_ ? row[(at + 1) * stride_] : 0;
          pairs_[r][j] = first | second << 8 * sizeof(Element);
        }
      }
    }
  }

  const bool is_bool_;
  const int key_end_;
  const int64_t stride_;
  const char* row_[2] = {};  // from key 0 on; null for a row of the tile that is none of the group's
  bool is_paired_[2] = {};   // whether the lane's pairs are aligned
  uint32_t pairs_[2][2];
};

// v4 without a mask.
struct NoMaskPairs {
  __device__ NoMaskPairs(const AttentionArgs&, int) {}
  __device__ __forceinline__ void set_row(int, const AttentionArgs&, int64_t, int64_t, int64_t, int) {}
  __device__ __forceinline__ void load(int) {}
  __device__ __forceinline__ void apply(float (&)[2][4]) const {}
};

// v2 without a mask: an accumulator's columns are keys in order.
struct NoMask {
  using KeyOrder = mma_tile::InOrder;
  static __device__ __forceinline__ int lane_key() { return mma_tile::accumulator_column(); }
  static __device__ __forceinline__ constexpr int key_of(int n, int e) { return n * mma_tile::kMmaN + e; }

  __device__ NoMask(const AttentionArgs&, const uint32_t*, int64_t, int64_t, int, int) {}
  static __device__ __forceinline__ constexpr bool takes(int) { return true; }
  __device__ __forceinline__ void load(int) {}
  __device__ __forceinline__ void apply(mma_tile::Accumulator (&)[8], int, int) {}
};

// v2: the mask of a warp's kTiles tiles of 16 rows and 64 keys. The keys lie in shared memory in the order that makes a
// lane's 16 columns neighbours, so that its part of a row of the mask is 16 or 32 bytes in a row. Rows that are aligned
// to 16 bytes are loaded 16 bytes at a time, others by words, whose bytes are shifted into place. The words hold all
// rows of a bool mask, but one tile of an added one, because there are no registers for more: the next is loaded when
// the first has been applied.
template <class T, int kTiles, int kRows>
class MaskTile {
  using Accumulator = mma_tile::Accumulator;
  static constexpr int kLaneKeys = 16;

 public:
  struct KeyOrder {
    __device__ __forceinline__ int operator()(int row) const { return row / 2 % 4 * kLaneKeys + row / 8 * 2 + row % 2; }
  };
  // The lane's first key, and after how many comes element e of its pair n.
  static __device__ __forceinline__ int lane_key() { return threadIdx.x % 4 * kLaneKeys; }
  static __device__ __forceinline__ constexpr int key_of(int n, int e) { return 2 * n + e; }

  // `first_row` is the warp's, in the block's tile of kRows queries from `first_query` on.
  __device__ MaskTile(const AttentionArgs& args, const uint32_t*, int64_t batch, int64_t head, int first_query,
                      int first_row)
      : args_(args) {
    const int64_t* strides = args.mask_strides;
    const int64_t sizes[4] = {args.batch, args.heads, args.q_length, args.kv_length};
    // All that lies between the mask's first element and its last may be read, but nothing beside.
    const char* begin = static_cast<const char*>(args.mask);
    const char* end = begin + element();
    data_ = begin + (batch * strides[0] + head * strides[1] + first_query * strides[2]) * element();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t extent = (sizes[i] - 1) * strides[i] * element();
      (extent < 0 ? begin : end) += extent;
    }
    const int64_t row_bytes = strides[2] * element();
    const int last_row = min(kRows, static_cast<int>(args.q_length) - first_query) - 1;
    const bool fits = strides[3] == 1 && row_bytes >= 0 && row_bytes < (int64_t{1} << 31) / kRows;
    const bool begins_inside = address(data_) / kWord * kWord >= address(begin);
    const uint64_t tile_end =
        (address(data_) + last_row * row_bytes + kTileKeys * element() + kWord - 1) / kWord * kWord;
    const int64_t room = static_cast<int64_t>(address(end) - tile_end) >> (is_bool() ? 0 : 1);
    first_key_ = begins_inside ? 0 : 1;
    last_key_ = fits ? static_cast<int>(min(room, args.kv_length)) : -1;
    has_vectors_ = ((address(data_) | row_bytes) & 15) == 0;
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const int row = min(first_row + i * 8 + mma_tile::accumulator_row(0), last_row);
      offset_[i] = row * static_cast<unsigned>(row_bytes) + lane_key() * element();
    }
  }

  // Whether the tile of keys from `key` on can be loaded by words.
  __device__ __forceinline__ bool takes(int key) const { return key >= first_key_ && key <= last_key_; }

  // Starts to load the mask of all rows, or of the first tile.
  __device__ __forceinline__ void load(int key) {
    if (is_bool()) {
#pragma unroll
      for (int row = 0; row < 2 * kTiles; ++row) load_row<kBoolWords>(row, row, key);
    } else {
      load_added(0, key);
    }
  }

  // Masks tile i, whose scores are scaled, and loads the next.
  __device__ __forceinline__ void apply(Accumulator (&score)[8], int i, int key) {
    if (is_bool()) {
      align<kBoolWords>(2 * i, 2 * i);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int k = 0; k < kLaneKeys; ++k)
          MaskWords<T>::apply_bool(score[k / 2][2 * half + k % 2], word<kBoolWords>(2 * i + half, k / 4), k % 4);
      }
    } else {
      align<kAddedWords>(0, 2 * i);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int k = 0; k < kLaneKeys; ++k)
          MaskWords<T>::apply_added(score[k / 2][2 * half + k % 2], word<kAddedWords>(half, k / 2), k % 2);
      }
      if (i + 1 < kTiles) load_added(i + 1, key);
    }
  }

 private:
  static constexpr int kWord = 4, kTileKeys = 4 * kLaneKeys;
  static constexpr int kBoolWords = kLaneKeys / kWord, kAddedWords = kLaneKeys * sizeof(T) / kWord;
  static constexpr int kHeld = std::max(2 * kTiles * (kBoolWords + 1), 2 * (kAddedWords + 1));

  __device__ __forceinline__ bool is_bool() const { return args_.mask_is_bool; }
  __device__ __forceinline__ int element() const { return is_bool() ? 1 : sizeof(T); }
  static __device__ __forceinline__ uint64_t address(const char* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
  }
  // A row's words are followed by one more, for rows that are not aligned.
  template <int kWords>
  __device__ __forceinline__ uint32_t& word(int slot, int i) {
    return words_[slot * (kWords + 1) + i];
  }

  __device__ __forceinline__ void load_added(int i, int key) {
#pragma unroll
    for (int half = 0; half < 2; ++half) load_row<kAddedWords>(half, 2 * i + half, key);
  }

  template <int kWords>
  __device__ __forceinline__ void load_row(int slot, int row, int key) {
    const char* from = data_ + int64_t{key} * element() + offset_[row];
    if (has_vectors_) {
#pragma unroll
      for (int i = 0; i < kWords; i += 4) {
        const uint4 four = *reinterpret_cast<const uint4*>(from + i * kWord);
        word<kWords>(slot, i) = four.x, word<kWords>(slot, i + 1) = four.y;
        word<kWords>(slot, i + 2) = four.z, word<kWords>(slot, i + 3) = four.w;
      }
    } else {
      const auto* aligned = reinterpret_cast<const uint32_t*>(address(from) / kWord * kWord);
#pragma unroll
      for (int i = 0; i < kWords; ++i) word<kWords>(slot, i) = aligned[i];
      if (address(from) % kWord != 0) word<kWords>(slot, kWords) = aligned[kWords];
    }
  }

  // Shifts the words of two rows.
  template <int kWords>
  __device__ __forceinline__ void align(int slot, int row) {
    if (has_vectors_) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned bits = (address(data_) + offset_[row + half]) % kWord * 8;
#pragma unroll
      for (int i = 0; i < kWords; ++i)
        word<kWords>(slot + half, i) =
            __funnelshift_r(word<kWords>(slot + half, i), word<kWords>(slot + half, i + 1), bits);
    }
  }

  const AttentionArgs& args_;
  const char* data_;             // of the block's first query and key 0
  unsigned offset_[2 * kTiles];  // from there, the lane's first key in each of its rows
  int first_key_, last_key_;     // between which a tile may begin
  bool has_vectors_;
  uint32_t words_[kHeld] = {};
};

}  // namespace rooflab::kernels
