#include "request.h"

#include <algorithm>

namespace simt {
namespace {

constexpr int kLogSector = 5;
constexpr int kBanks = 32;

}  // namespace

void add_global(Access& total, const Request& request, int log_size) {
  uint64_t sorted[kWarp];
  const uint64_t* address = request.address;
  bool ascends = true;
  for (int i = 1; i < request.lanes; ++i) ascends &= address[i - 1] <= address[i];
  if (!ascends) {
    std::copy(address, address + request.lanes, sorted);
    std::sort(sorted, sorted + request.lanes);
    address = sorted;
  }
  uint64_t sectors = 1, distinct = 1;  // an access is aligned, so it lies in one sector
  for (int i = 1; i < request.lanes; ++i) {
    sectors += address[i - 1] >> kLogSector != address[i] >> kLogSector;
    distinct += address[i - 1] != address[i];
  }
  total.requests += 1;
  total.lanes += request.lanes;
  total.bytes += static_cast<uint64_t>(request.lanes) << log_size;
  total.distinct_bytes += distinct << log_size;
  total.sectors += sectors;
}

// Lanes go in groups of 32, 16 or 8 for 4, 8 or 16 bytes. In a group each bank gives one word a wavefront, to all lanes
// that want this word. Atomic operations on one word are done one after another.
void add_shared(Access& total, const Request& request, int log_size, bool is_atomic) {
  total.requests += 1;
  total.lanes += request.lanes;
  total.bytes += static_cast<uint64_t>(request.lanes) << log_size;
  total.distinct_bytes += static_cast<uint64_t>(request.lanes) << log_size;
  if (log_size <= 2 && !is_atomic) {  // words that span no more than the banks never meet in one
    const auto [low, high] = std::minmax_element(request.address, request.address + request.lanes);
    if ((*high >> 2) - (*low >> 2) < kBanks) {
      total.wavefronts += 1;
      total.ideal_wavefronts += 1;
      return;
    }
  }
  const int words = log_size <= 2 ? 1 : 1 << (log_size - 2);
  const int group = kWarp / words;
  for (int first = 0; first < request.lanes;) {
    const int number = request.lane[first] / group;
    int end = first;
    while (end < request.lanes && request.lane[end] / group == number) ++end;

    uint8_t depth[kBanks] = {};
    uint64_t seen[kBanks][kWarp];
    int most = 1;
    for (int i = first; i < end; ++i) {
      for (int w = 0; w < words; ++w) {
        const uint64_t word = (request.address[i] >> 2) + w;
        const int bank = static_cast<int>(word % kBanks);
        uint64_t* const known = seen[bank];
        if (!is_atomic && std::find(known, known + depth[bank], word) != known + depth[bank]) continue;
        known[depth[bank]++] = word;
        most = std::max<int>(most, depth[bank]);
      }
    }
    total.wavefronts += most;
    total.ideal_wavefronts += 1;
    first = end;
  }
}

void keep(Example& example, const Request& request, int log_size, uint64_t cost) {
  if (cost <= example.cost) return;
  example.cost = cost;
  example.log_size = log_size;
  example.lanes.assign(request.lane, request.lane + request.lanes);
  example.addresses.assign(request.address, request.address + request.lanes);
}

}  // namespace simt
