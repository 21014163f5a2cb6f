// Runs the threads of a block one after another, each up to where it has to wait for others.
#include <sys/mman.h>

#include <cstdlib>

#include "runner.h"

namespace simt {
namespace {

void* map(size_t bytes) {
  void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) std::exit(3);
  return made;
}

[[noreturn]] void begin_lane() {
  self.kernel(self.arguments);  // ends in rl_exit
  __builtin_trap();
}

int order[kMaxThreads];

// splitmix64: the same on every machine.
uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// Whole warps are moved, and lanes inside of them: what a warp has done is read in one piece.
void make_order() {
  const int warps = (self.threads + kWarp - 1) / kWarp;
  int moved[kMaxThreads / kWarp];
  for (int w = 0; w < warps; ++w) moved[w] = w;
  uint64_t random = self.launch.seed ^ self.block * 0x2545f4914f6cdd1d;
  const auto shuffle = [&](int* values, int count) {
    for (int i = count - 1; i > 0; --i) {
      const int other = static_cast<int>(next(random) % (i + 1));
      const int kept = values[i];
      values[i] = values[other];
      values[other] = kept;
    }
  };
  if (self.launch.schedule == Schedule::kSeeded) shuffle(moved, warps);
  int filled = 0;
  for (int w = 0; w < warps; ++w) {
    const int first = moved[w] * kWarp;
    const int count = self.threads - first < kWarp ? self.threads - first : kWarp;
    for (int i = 0; i < count; ++i) order[filled + i] = first + i;
    if (self.launch.schedule == Schedule::kSeeded) shuffle(order + filled, count);
    filled += count;
  }
  for (int i = 0; self.launch.schedule == Schedule::kReversed && i < self.threads / 2; ++i) {
    const int kept = order[i];
    order[i] = order[self.threads - 1 - i];
    order[self.threads - 1 - i] = kept;
  }
}

void resume(int index) {
  self.current = index;
  self.patience = kPatience;
  self.behind = lane().behind;
  if (self.is_recording) put(record(Kind::kLane, index));
  lane().state = State::kRunnable;
  switch_fiber(self.scheduler, lane().fiber);
}

// Whether all lanes that lane `i` names came to its operation. Those that have ended may be named, but for those that
// never came to it and did something that stands behind it. The code of a functional launch is in no such order.
void check_warp(int first, int count, int i, uint32_t ended) {
  const Lane& one = self.lanes[first + i];
  uint32_t past = 0, elsewhere = 0;
  for (int j = 0; j < count; ++j) {
    const Lane& other = self.lanes[first + j];
    if (!(one.mask >> j & 1)) continue;
    if (ended >> j & 1)
      past |= uint32_t{other.behind > one.site && !(other.took_part >> one.site % 64 & 1)} << j;
    else
      elsewhere |= uint32_t{other.operation != one.operation} << j;
  }
  self.current = first + i;
  if (elsewhere) stop(Fault::kMissedWarp, one.site, one.mask, elsewhere, 2);
  if (past && self.launch.mode != Mode::kFunctional) report(Fault::kMissedWarp, one.site, one.mask, past, 1);
}

// Lets go those lanes of a warp whose whole mask has arrived; lanes that have ended are not waited for, as on a GPU.
// True if there were some.
bool release_warp(int first, int count) {
  bool released = false;
  uint32_t waiting = 0, ended = 0;
  for (int i = 0; i < count; ++i) {
    waiting |= uint32_t{self.lanes[first + i].state == State::kWarpSync} << i;
    ended |= uint32_t{self.lanes[first + i].state == State::kExited} << i;
  }
  for (int i = 0; i < count; ++i) {
    const uint32_t mask = self.lanes[first + i].mask & ~ended;
    if (self.lanes[first + i].state != State::kWarpSync || !mask || (mask & waiting) != mask) continue;
    bool agreed = true;
    for (int j = 0; j < count; ++j) agreed &= !(mask >> j & 1) || (self.lanes[first + j].mask & ~ended) == mask;
    if (!agreed) continue;
    check_warp(first, count, i, ended);
    for (int j = 0; j < count; ++j) {
      if (!(mask >> j & 1)) continue;
      Lane& to = self.lanes[first + j];
      for (int from = 0; from < count; ++from) to.taken[from] = self.lanes[first + from].given;
      to.taken_from = mask;
    }
    for (int j = 0; j < count; ++j)
      if (mask >> j & 1) self.lanes[first + j].state = State::kRunnable;
    released = true;
  }
  return released;
}

// Lanes that asked which are active: no other can join them any more, so those at one place are. True if there were
// some.
bool name_active(int first, int count) {
  uint32_t site = 0, mask = 0;
  for (int i = 0; i < count; ++i) {
    const Lane& each = self.lanes[first + i];
    if (each.state != State::kWarpSync || each.mask || (mask && each.site != site)) continue;
    site = each.site;
    mask |= uint32_t{1} << i;
  }
  for (int i = 0; i < count; ++i)
    if (mask >> i & 1) self.lanes[first + i].mask = mask;
  return mask != 0;
}

// All lanes of the warp wait, for a barrier or for lanes that wait elsewhere: they would wait for ever.
[[noreturn]] void stop_warp(int first, int count) {
  uint32_t waiting = 0;
  for (int i = count - 1; i >= 0; --i) {
    if (self.lanes[first + i].state != State::kWarpSync) continue;
    waiting |= uint32_t{1} << i;
    self.current = first + i;
  }
  const Lane& one = lane();
  stop(Fault::kMissedWarp, one.site, one.mask, one.mask & ~waiting ? one.mask & ~waiting : one.mask);
}

bool run_warp(int first, int count) {
  bool any = false;
  while (true) {
    bool ran = false;
    for (int i = 0; i < count; ++i) {
      if (self.lanes[order[first + i]].state != State::kRunnable) continue;
      resume(order[first + i]);
      any = ran = true;
    }
    const int lowest = order[first] / kWarp * kWarp;
    if (ran || release_warp(lowest, count)) continue;
    bool waits = false, paused = false;
    for (int i = 0; i < count; ++i) {
      waits |= self.lanes[lowest + i].state == State::kWarpSync;
      paused |= self.lanes[lowest + i].state == State::kPaused;
    }
    if (paused) {
      if (self.is_recording) put(record(Kind::kWarpPaused, lowest / kWarp));
      for (int i = 0; i < count; ++i)
        if (self.lanes[lowest + i].state == State::kPaused) self.lanes[lowest + i].state = State::kRunnable;
      return true;  // the other warps get their turn
    }
    if (!waits) return any;
    if (name_active(lowest, count)) continue;
    stop_warp(lowest, count);
  }
}

// Everyone is at a barrier or has ended.
void release_block() {
  int first = -1, ended = -1, exited = 0, waiting = 0, is_true = 0;
  const bool in_order = self.launch.mode != Mode::kFunctional;  // its code may hold one barrier several times
  for (int i = 0; i < self.threads; ++i) {
    const Lane& each = self.lanes[i];
    if (each.state == State::kExited) {
      ++exited;
      if (ended < 0) ended = i;
      continue;
    }
    ++waiting;
    is_true += each.given != 0;
    if (first < 0) first = i;
    const bool is_same = self.lanes[first].line == each.line && (!in_order || self.lanes[first].site == each.site);
    if (!is_same) {
      self.current = i;
      stop(Fault::kMixedBarriers, each.site, self.lanes[first].site, first);
    }
  }
  if (exited > 0) {
    self.current = ended;
    report(Fault::kMissedBarrier, self.lanes[first].site, exited, waiting);
  }
  self.barrier_arrived = waiting;
  self.barrier_true = is_true;
  if (self.is_recording) put(record(Kind::kRelease, 0));
  for (int i = 0; i < self.threads; ++i)
    if (self.lanes[i].state == State::kBarrier) self.lanes[i].state = State::kRunnable;
}

}  // namespace

void make_lanes() {
  const size_t page = 16 << 10;  // the largest page of a supported system
  const size_t each = kStackBytes + page;
  char* stacks = static_cast<char*>(map(each * self.threads + page));
  self.lanes = static_cast<Lane*>(map(sizeof(Lane) * self.threads));
  auto* frames = static_cast<Frame*>(map(sizeof(Frame) * kMaxDepth * self.threads));
  for (int i = 0; i < self.threads; ++i) {
    Lane& made = self.lanes[i];
    made.stack = stacks + i * each + page;
    if (mprotect(made.stack - page, page, PROT_NONE) != 0) std::exit(3);
    made.frames = frames + static_cast<size_t>(i) * kMaxDepth;
    made.x = i % self.launch.block[0];
    made.y = i / self.launch.block[0] % self.launch.block[1];
    made.z = i / (self.launch.block[0] * self.launch.block[1]);
  }
  mprotect(stacks + each * self.threads, page, PROT_NONE);
  make_order();
}

void run_block() {
  if (self.launch.schedule == Schedule::kSeeded) make_order();
  for (int i = 0; i < self.threads; ++i) {
    Lane& each = self.lanes[i];
    prepare_fiber(each.fiber, each.stack, each.stack + kStackBytes, begin_lane);
    each.state = State::kRunnable;
    each.depth = 0;
    each.behind = 0;
    each.took_part = 0;
  }
  if (self.is_recording) put(record(Kind::kBlock, self.block));
  while (true) {
    bool ran = false, waits = false, runs = false;
    for (int first = 0; first < self.threads;) {
      const int lowest = order[first] / kWarp * kWarp;
      const int count = self.threads - lowest < kWarp ? self.threads - lowest : kWarp;
      ran |= run_warp(first, count);
      first += count;
    }
    for (int i = 0; i < self.threads; ++i) {
      waits |= self.lanes[i].state == State::kBarrier;
      runs |= self.lanes[i].state == State::kRunnable;
    }
    if (runs) continue;
    if (!waits) break;
    release_block();
  }
  if (self.is_recording) put(record(Kind::kBlockEnd, self.block));
}

void wait(State state) {
  lane().state = state;
  lane().behind = self.behind;
  switch_fiber(lane().fiber, self.scheduler);
}

void pause_if_tired() {
  self.patience = kPatience;
  if (self.is_recording) wait(State::kPaused);
}

}  // namespace simt
