// Random numbers on the CPU, all threads. A group of Philox blocks is computed side by side, one step at a time, in
// loops that the compiler vectorises. Every step is philox.h's, so the bits are the same.
#include "kernels/common/simd.h"
#include "kernels/random/philox.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int kGroup = 16;

struct Group {
  uint32_t words[4][kGroup];

  [[gnu::noinline]] Group(const RandomArgs& args, uint64_t counter) {
    auto& [c0, c1, c2, c3] = words;
    for (int j = 0; j < kGroup; ++j) {
      c0[j] = static_cast<uint32_t>(counter + static_cast<uint64_t>(j));
      c1[j] = static_cast<uint32_t>((counter + static_cast<uint64_t>(j)) >> 32);
      c2[j] = static_cast<uint32_t>(stream_of(args));
      c3[j] = static_cast<uint32_t>(stream_of(args) >> 32);
    }
    PhiloxKey key(args.seed);
    for (int round = 0; round < kPhiloxRounds; ++round, key.advance())
      for (int j = 0; j < kGroup; ++j) philox_round(key, c0[j], c1[j], c2[j], c3[j]);
  }
  template <class Word>
  ROOFLAB_INLINE Word word(int i, int j) const {
    if constexpr (sizeof(Word) == 4)
      return words[i][j];
    else
      return words[2 * i][j] | static_cast<uint64_t>(words[2 * i + 1][j]) << 32;
  }
};

// Columns i and i + 1 of the group's normals.
template <class Real, class Word>
void normal_columns(const Group& group, int i, Real* first, Real* second) {
  alignas(64) Real radius[kGroup];
  for (int j = 0; j < kGroup; ++j) radius[j] = -2 * exact_log(open_unit(group.word<Word>(i, j)));
  for (int j = 0; j < kGroup; j += Simd<Real>::kLanes)
    store(radius + j, sqrt(load(static_cast<const Real*>(radius + j))));
  for (int j = 0; j < kGroup; ++j) {
    Real cosine, sine;
    exact_cos_sin(unit(group.word<Word>(i + 1, j)), cosine, sine);
    first[j] = radius[j] * cosine;
    second[j] = radius[j] * sine;
  }
}

// Computes blocks [counter, counter + kGroup), transposed: element i of block j at out[i][j].
template <RandomKind kKind, class T>
void fill_group(const RandomArgs& args, uint64_t counter, T (&out)[kPerBlock<T>][kGroup]) {
  const Group group(args, counter);
  if constexpr (kKind == RandomKind::kNormal && sizeof(T) == 8) {
    normal_columns<double, uint64_t>(group, 0, out[0], out[1]);
  } else if constexpr (kKind == RandomKind::kNormal) {
    float normal[4][kGroup];
    for (int i = 0; i < 4; i += 2) normal_columns<float, uint32_t>(group, i, normal[i], normal[i + 1]);
    for (int i = 0; i < 4; ++i) store(out[i], load(static_cast<const float*>(normal[i])));
  } else {
    for (int i = 0; i < kPerBlock<T>; ++i)
      for (int j = 0; j < kGroup; ++j) out[i][j] = random_element<kKind, T>(args, group.word<WordOf<T>>(i, j));
  }
}

template <RandomKind kKind, class T>
void fill_blocks(const RandomArgs& args, int64_t first, int64_t last) {
  constexpr int kWidth = kPerBlock<T>;
  T* out = static_cast<T*>(args.out);
  for (int64_t begin = first; begin < last; begin += kGroup) {
    T columns[kWidth][kGroup], rows[kGroup][kWidth];
    fill_group<kKind>(args, static_cast<uint64_t>(begin), columns);
    for (int j = 0; j < kGroup; ++j)
      for (int i = 0; i < kWidth; ++i) rows[j][i] = columns[i][j];
    const int64_t end = begin + kGroup < last ? begin + kGroup : last;
    const int64_t stop = end * kWidth < args.count ? end * kWidth : args.count;
    std::memcpy(static_cast<void*>(out + begin * kWidth), rows, static_cast<size_t>(stop - begin * kWidth) * sizeof(T));
  }
}

}  // namespace

void random_cpu_v1_blocked(const RandomArgs& args, Queue& queue) {
  dispatch_random(args, [&]<RandomKind kKind, class T>() {
    const int64_t blocks = (args.count + kPerBlock<T> - 1) / kPerBlock<T>;
    queue.parallel(blocks, 1024, [&](int64_t first, int64_t last, int) { fill_blocks<kKind, T>(args, first, last); });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
