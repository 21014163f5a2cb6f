// The CPU's threads, which work on one kernel at a time. Kernels reach them through Queue::parallel.
#pragma once

#include <cstdint>

namespace rooflab {

// How many work on a kernel: as many as were set, else OMP_NUM_THREADS, else one for each CPU that may be used.
int num_threads();
void set_num_threads(int threads);  // of the whole process; where the system has fewer threads to give, those

namespace threads {

// Calls run(body, begin, end, worker) on disjoint pieces of [0, count) that together cover it. A piece has `grain`
// items or more, but for a rounding of long pieces to cache lines. 0 <= worker < min(workers, num_threads()), and no
// two pieces run at once with the same worker. `run` must not throw. A call from within a piece, or while another
// thread's call is under way, runs on the calling thread alone.
using Run = void (*)(void* body, int64_t begin, int64_t end, int worker);
void parallel(int64_t count, int64_t grain, int64_t workers, Run run, void* body);

}  // namespace threads
}  // namespace rooflab
