// Splits a range of independent work over the CPU's threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace rooflab::kernels {

// Calls body(begin, end) on disjoint parts of [0, count), in parallel when every thread gets at
// least `grain` items. The body must not throw.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  const int64_t wanted = grain > 0 ? count / grain : count;
  const int threads = static_cast<int>(std::clamp<int64_t>(wanted, 1, omp_get_max_threads()));
  if (threads == 1 || omp_in_parallel()) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int64_t id = omp_get_thread_num(), all = omp_get_num_threads();
    const int64_t begin = count * id / all, end = count * (id + 1) / all;
    if (begin < end) body(begin, end);
  }
}

// The threads that a parallel loop opened here could use.
inline int64_t usable_threads() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

// Calls body(item, thread) for each item of [0, count), thread < threads. Whoever is free takes the next one: for items
// that differ in work, and for machines that are busy. The body must not throw.
template <class Body>
void parallel_for_dynamic(int64_t count, int64_t threads, Body&& body) {
  if (threads > count) threads = count;
  if (threads <= 1) {
    for (int64_t item = 0; item < count; ++item) body(item, int64_t{0});
    return;
  }
  int64_t next = 0;
#pragma omp parallel num_threads(static_cast <int>(threads))
  for (int64_t item; (item = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < count;)
    body(item, static_cast<int64_t>(omp_get_thread_num()));
}

}  // namespace rooflab::kernels
