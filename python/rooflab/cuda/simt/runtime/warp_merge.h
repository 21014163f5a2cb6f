// Puts what the 32 threads of a warp did, each on its own, into the order of the warp: of the threads' next records,
// those with the lowest site go together. So threads that took different ways meet again behind them.
#pragma once

#include <cstdint>
#include <vector>

#include "global_shadow.h"
#include "request.h"
#include "shared_shadow.h"

namespace simt {

class WarpMerge {
 public:
  WarpMerge(Totals& totals, Guesses& guesses, SharedShadow& shared, GlobalShadow& global, bool is_counting)
      : totals_(totals), guesses_(guesses), shared_(shared), global_(global), is_counting_(is_counting) {}

  void begin_block(int first_thread, int lanes);
  void append(int lane, uint64_t word) {
    queues_[lane].words.push_back(word);
    if (is_access(word) && is_swap(word)) queues_[lane].has_swap = true;
  }
  // The thread waits for the block, or has ended: what follows belongs to a later step.
  void close(int lane);
  bool is_closed() const { return open_ == 0; }
  void reopen();
  // Adds up as much as is certain: up to where a thread that goes on has no record left.
  void merge();
  void end_lane(int lane) { queues_[lane].has_ended = true; }

 private:
  struct Queue {
    std::vector<uint64_t> words;
    size_t next = 0;
    bool is_closed = false, has_ended = false;
    bool has_swap = false;  // that came after the last merge
  };
  void take(uint64_t like);
  void order(uint32_t lanes);

  Totals& totals_;
  Guesses& guesses_;
  SharedShadow& shared_;
  GlobalShadow& global_;
  const bool is_counting_;
  Queue queues_[kWarp];
  int first_ = 0, lanes_ = 0, open_ = 0;
  // For each lane, the last step of each lane that comes before what it does now, by operations that order the warp's
  // memory; for itself, its present step.
  uint32_t seen_[kWarp][kWarp];
  uint32_t head_[kWarp];  // the site of each thread's next record, or kNone
  static constexpr uint32_t kNone = ~uint32_t{0};
};

}  // namespace simt
