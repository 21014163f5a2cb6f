// What is added up, for each place in the kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "protocol.h"

namespace simt {

// Of one kind of access at one site. A request is one instruction of a warp.
struct Access {
  uint64_t requests = 0, lanes = 0, bytes = 0;
  uint64_t distinct_bytes = 0;    // bytes that two lanes of a request share are there once
  uint64_t sectors = 0;           // of 32 bytes, in global memory
  uint64_t wavefronts = 0;        // in shared memory
  uint64_t ideal_wavefronts = 0;  // had no two lanes met in a bank
};

// The request of a site that needed the most sectors or wavefronts, and the first of these: who accesses what.
struct Example {
  uint64_t cost = 0;
  int log_size = 0;
  std::vector<uint64_t> lanes, addresses;
};

struct Site {
  Access access[2][3];  // by space and operation
  Example example[2][3];
  uint64_t block_steps = 0, block_lanes = 0;  // a basic block: by warps, and by their threads
  uint64_t barriers = 0, barrier_lanes = 0;   // warps that arrived
  uint64_t warp_steps = 0, warp_lanes = 0;
  uint64_t line = 0;
  bool is_atomic = false;
  bool is_guess = false;  // a load that a thread compares with, in a compare-and-swap of what it loaded
};

class Totals {
 public:
  Site& operator[](uint32_t site) {
    if (site >= sites_.size()) sites_.resize(site + 1);
    return sites_[site];
  }
  const std::vector<Site>& sites() const { return sites_; }
  uint64_t blocks = 0, releases = 0;
  uint64_t global_writes = 0;

 private:
  std::vector<Site> sites_;
};

struct Finding {
  uint64_t word[kFindingWords];
  uint64_t count;
};

// Of each kind of fault at each place, the first; the others are numbers.
class Findings {
 public:
  void add(Fault fault, uint64_t block, uint64_t thread, uint64_t site, uint64_t a, uint64_t b, uint64_t c) {
    for (Finding& known : findings_) {
      if (known.word[0] != static_cast<uint64_t>(fault) || known.word[3] != site) continue;
      if ((fault == Fault::kRace || fault == Fault::kGlobalRace) && known.word[4] != a) continue;
      ++known.count;
      return;
    }
    if (findings_.size() < 100) findings_.push_back({{static_cast<uint64_t>(fault), block, thread, site, a, b, c}, 1});
  }
  const std::vector<Finding>& all() const { return findings_; }
  // A compare-and-swap fails where another thread was faster than the load that it begins with: that is no race.
  void forgive_guesses(const std::vector<Site>& sites) {
    const auto is_guess = [&](uint64_t load, uint64_t other) {
      return load < sites.size() && other < sites.size() && sites[load].is_guess && sites[other].is_atomic;
    };
    const auto is_forgiven = [&](const Finding& found) {
      const auto fault = static_cast<Fault>(found.word[0]);
      const uint64_t one = found.word[3], other = found.word[4];
      return (fault == Fault::kRace || fault == Fault::kGlobalRace) && (is_guess(one, other) || is_guess(other, one));
    };
    findings_.erase(std::remove_if(findings_.begin(), findings_.end(), is_forgiven), findings_.end());
  }

 private:
  std::vector<Finding> findings_;
};

}  // namespace simt
