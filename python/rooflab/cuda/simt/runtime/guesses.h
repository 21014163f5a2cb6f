// Loads that compare-and-swaps begin with. A swap fails where another thread was faster than its thread's load, so such
// a load is no race with atomic operations.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "protocol.h"

namespace simt {

// The place of an access: a line of 128 bytes in its space, and a bit for each two bytes there. No swap is shorter.
struct Place {
  uint64_t line, units;
  Place(Space space, uint64_t address, int log_size)
      : line(address >> 7 << 1 | static_cast<uint64_t>(space)),
        units(((uint64_t{2} << ((1 << log_size) - 1) / 2) - 1) << (address % 128 / 2)) {}
  explicit Place(uint64_t word) : Place(space_of(word), address_of(word), log_size_of(word)) {}
};

class Guesses {
 public:
  // Of what one thread did, in its order: finds each load of a place that the thread then swaps. A write of the thread
  // between the two makes the load an old one.
  void find(const std::vector<uint64_t>& words) {
    std::unordered_map<uint64_t, uint64_t> swapped;  // of each line, the units that the thread swaps next
    for (size_t i = words.size(); i-- > 0;) {
      const uint64_t word = words[i];
      if (!is_access(word)) continue;
      const Place place(word);
      const auto known = swapped.find(place.line);
      if (is_swap(word)) {
        swapped[place.line] |= place.units;
      } else if (known == swapped.end()) {
        continue;
      } else if (operation_of(word) != Operation::kLoad) {
        known->second &= ~place.units;
      } else if (known->second & place.units) {
        add(site_of(word), place.line, known->second & place.units);
      }
    }
  }
  bool has(uint32_t site, const Place& place) const {
    const auto known = units_.find(key(site, place.line));
    return known != units_.end() && (place.units & ~known->second) == 0;
  }

 private:
  static constexpr size_t kMost = 1 << 20;  // only a broken runner swaps so many lines that lie apart
  static uint64_t key(uint32_t site, uint64_t line) { return line << kSiteBits | site; }
  void add(uint32_t site, uint64_t line, uint64_t units) {
    if (units_.size() < kMost) units_[key(site, line)] |= units;
  }

  std::unordered_map<uint64_t, uint64_t> units_;  // by site and line
};

}  // namespace simt
