// The state of the process that runs a kernel. It has one operating-system thread; lanes are fibers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber.h"
#include "protocol.h"

namespace simt {

constexpr size_t kStackBytes = 64 << 10;
constexpr int kMaxDepth = 512;           // of calls that are not inlined
constexpr uint32_t kPatience = 1 << 16;  // records of a lane before others get their turn

enum class State : uint8_t { kRunnable, kPaused, kWarpSync, kBarrier, kExited };

// What a frame looked like when its function began. It is compared when the function ends.
struct Frame {
  uintptr_t* place;
  uintptr_t previous, return_address;
};

struct Lane {
  Fiber fiber;
  char* stack;  // lowest address
  State state;
  uint32_t x, y, z;
  uint32_t site, line, mask;  // where and for whom it waits
  uint32_t operation;         // of the warp that it waits in: an rl_warp, or another number
  uint32_t behind;            // the place of its last access since it went back in the code
  uint64_t took_part;         // the places of the warp's operations that it came to, a bit for each 64th
  uint64_t given;             // to the other lanes of the mask
  uint64_t taken[kWarp];      // from them
  uint32_t taken_from;        // who took part
  uint32_t depth;
  Frame* frames;
};

struct Runner {
  Launch launch;  // a copy: the kernel's process may not change what it was told
  Ring* ring;
  uint64_t cursor, published, limit;  // of records: the next, what the accountant sees, where the ring is full
  bool is_recording;                  // this block
  bool is_counting;                   // basic blocks too
  uint32_t last_site;                 // of a basic block
  uint32_t behind;                    // of the lane that runs

  char* arena;
  uint8_t* granules;  // number of the buffer that each 256 bytes belong to, from 1
  uintptr_t shared_begin, shared_end, dynamic_begin, dynamic_end;
  uintptr_t device_begin, device_end, constant_begin, constant_end, text_begin, text_end;

  Lane* lanes;
  int threads;
  int current;  // lane
  uint64_t block;
  uint64_t done;  // blocks
  uint32_t block_x, block_y, block_z;
  Fiber scheduler;
  uint32_t patience;
  int barrier_arrived, barrier_true;  // what the last barrier counted
  void (*kernel)(void**);
  uint64_t stack_argument_bytes;  // at most; six fit into registers
  void* arguments[kMaxArguments];
  uint64_t argument_words[kMaxArguments];
};

extern Runner self;

inline Lane& lane() { return self.lanes[self.current]; }

// --- records ---

void wait_for_room();
inline void put(uint64_t word) {
  if (__builtin_expect(self.cursor == self.limit, 0)) wait_for_room();
  self.ring->records[self.cursor & (kRingRecords - 1)] = word;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // a signal's handler writes behind whole records
  ++self.cursor;
}
void publish();

// --- findings (faults.cpp) ---

void report(Fault fault, uint64_t site, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0);
// Reports, and ends the process: a GPU ends a launch that does one of these too.
[[noreturn]] void stop(Fault fault, uint64_t site, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0);
void catch_signals();

// --- what the kernel prints (print.cpp) ---

void flush_printed();

// --- lanes (scheduler.cpp) ---

void make_lanes();
void run_block();
// Leaves the lane for the scheduler until its state is runnable again.
void wait(State state);
void pause_if_tired();

// --- memory (memory.h has the fast path) ---

void refuse_access(uintptr_t address, uint64_t size, Operation operation, uint64_t site);

}  // namespace simt
