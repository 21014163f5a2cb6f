// What is added up, for each place in the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "guesses.h"

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
  explicit Findings(const Guesses& guesses) : guesses_(guesses) {}

  void add(Fault fault, uint64_t block, uint64_t thread, uint64_t site, uint64_t a, uint64_t b, uint64_t c) {
    add({{static_cast<uint64_t>(fault), block, thread, site, a, b, c}, 1});
  }
  // A race of a load at `site` or `a` with an atomic operation at the other, unless the load turns out to be a guess.
  // Kept for each place, as far as there is room.
  void suspect(uint32_t load, const Place& place, Fault fault, uint64_t block, uint64_t thread, uint64_t site,
               uint64_t a, uint64_t b, uint64_t c) {
    if (guesses_.has(load, place)) return;
    const auto known = known_.find({site, a, place.line, place.units});
    if (known != known_.end()) {
      ++suspects_[known->second].found.count;
    } else if (suspects_.size() < kMostSuspects) {
      known_[{site, a, place.line, place.units}] = suspects_.size();
      suspects_.push_back({load, place, {{static_cast<uint64_t>(fault), block, thread, site, a, b, c}, 1}});
    }
  }
  // All guesses are known.
  void settle() {
    for (const Suspect& each : suspects_)
      if (!guesses_.has(each.load, each.place)) add(each.found);
    suspects_.clear();
  }
  const std::vector<Finding>& all() const { return findings_; }

 private:
  static constexpr size_t kMostSuspects = 1 << 16;
  struct Suspect {
    uint32_t load;
    Place place;
    Finding found;
  };
  void add(const Finding& found) {
    const auto fault = static_cast<Fault>(found.word[0]);
    for (Finding& known : findings_) {
      if (known.word[0] != found.word[0] || known.word[3] != found.word[3]) continue;
      if ((fault == Fault::kRace || fault == Fault::kGlobalRace) && known.word[4] != found.word[4]) continue;
      known.count += found.count;
      return;
    }
    if (findings_.size() < 100) findings_.push_back(found);
  }

  const Guesses& guesses_;
  std::vector<Finding> findings_;
  std::vector<Suspect> suspects_;
  std::map<std::array<uint64_t, 4>, size_t> known_;  // where in suspects_
};

}  // namespace simt
