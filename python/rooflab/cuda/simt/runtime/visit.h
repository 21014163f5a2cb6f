// An access to a place of memory, as the shadows of memory keep it.
#pragma once

#include "protocol.h"

namespace simt {

struct Visit {
  uint32_t epoch = 0;  // between two barriers of one block; 0 where there is no visit
  uint32_t step = 0;   // of the thread, by operations that order its warp's memory
  uint32_t site : kSiteBits, thread : 32 - kSiteBits;
  Visit() : site(0), thread(0) {}
  Visit(uint32_t epoch, uint32_t step, uint32_t site, uint32_t thread)
      : epoch(epoch), step(step), site(site), thread(thread) {}
};

// Whether nothing orders a visit of the present epoch before what `thread` does now. `seen`: for each lane of the
// thread's warp, the last of that lane's steps which comes before.
inline bool is_unordered(const Visit& visit, uint32_t thread, const uint32_t* seen) {
  return visit.thread != thread && (visit.thread / kWarp != thread / kWarp || visit.step > seen[visit.thread % kWarp]);
}

}  // namespace simt
