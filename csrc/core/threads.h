// The CPU's threads, which work on one kernel at a time. Kernels use them through Queue::parallel.
#pragma once

#include <cstdint>

namespace rooflab {

// How many threads work on a kernel: the number that was set, else OMP_NUM_THREADS, else one per usable CPU.
int num_threads();
void set_num_threads(int threads);  // for the whole process; fewer if the system cannot give so many

namespace threads {

// Calls run(body, begin, end, worker) on disjoint pieces of [0, count) that together cover it. A piece has `grain`
// items or more, except that long pieces are rounded to cache lines. 0 <= worker < min(workers, num_threads()), and no
// two pieces run at the same time with the same worker. `run` must not throw. A call from within a piece, or while
// another thread's call is in progress, runs on the calling thread alone.
using Run = void (*)(void* body, int64_t begin, int64_t end, int worker);
void parallel(int64_t count, int64_t grain, int64_t workers, Run run, void* body);

}  // namespace threads
}  // namespace rooflab
