#include "request.h"

#include <algorithm>

namespace simt {
namespace {

constexpr int kLogSector = 5;
constexpr int kBanks = 32;

// Whether each lane accesses the same address as the lane whose number differs in the bit `step`, if both take part.
bool pairs_agree(const Request& request, int first, int end, int step) {
  for (int i = first; i < end; ++i)
    for (int j = i + 1; j < end && request.lane[j] <= (request.lane[i] | step); ++j)
      if ((request.lane[i] ^ step) == request.lane[j] && request.address[i] != request.address[j]) return false;
  return true;
}

}  // namespace

void add_global(Access& total, const Request& request, int log_size, bool is_atomic) {
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
  int alike = 1, most = 1;             // lanes at this address, and at the most wanted one of this sector
  for (int i = 1; i < request.lanes; ++i) {
    const bool is_new = address[i - 1] != address[i],
               is_new_sector = address[i - 1] >> kLogSector != address[i] >> kLogSector;
    distinct += is_new;
    sectors += is_new_sector;
    alike = is_new ? 1 : alike + 1;
    if (is_new_sector) most = 1;
    if (is_atomic && alike > most) {
      most = alike;
      ++sectors;
    }
  }
  total.requests += 1;
  total.lanes += request.lanes;
  total.bytes += static_cast<uint64_t>(request.lanes) << log_size;
  total.distinct_bytes += distinct << log_size;
  total.sectors += sectors;
}

// Lanes go in groups of 32, 16 or 8 for 4, 8 or 16 bytes. Two groups of 8 or 16 bytes go together where the lanes of
// each pair agree on their address. In a group each bank gives one word a wavefront, to all lanes that want this word.
// Atomic operations on one word are done one after another.
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
    const auto end_of = [&](int lanes) {
      int end = first;
      while (end < request.lanes && request.lane[end] / lanes == request.lane[first] / lanes) ++end;
      return end;
    };
    int end = end_of(2 * group);
    const bool agree = words > 1 && (pairs_agree(request, first, end, 1) || pairs_agree(request, first, end, 2));
    if (!agree || is_atomic) end = end_of(group);

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
