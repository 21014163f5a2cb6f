// Reads the records of one launch and adds them up: accountant RING, an open file. It runs none of the kernel's code,
// and the kernel's process cannot reach its memory. Prints one line for each total and finding.
#include <sys/mman.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "warp_merge.h"

namespace simt {
namespace {

constexpr uint64_t kMaxShared = 1 << 20;

class Accountant {
 public:
  explicit Accountant(Ring& ring) : ring_(ring), launch_(ring.launch), shadow_(findings_), global_(launch_, findings_) {
    const uint64_t threads = uint64_t{launch_.block[0]} * launch_.block[1] * launch_.block[2];
    threads_ = threads >= 1 && threads <= kMaxThreads ? static_cast<int>(threads) : 1;
    for (int first = 0; first < threads_; first += kWarp)
      warps_.push_back(std::make_unique<WarpMerge>(totals_, guesses_, shadow_, global_, launch_.mode == Mode::kCount));
    warp_ = warps_.front().get();
    warp_->begin_block(0, 0);
  }

  // Until the launch has ended. False where the records stopped before.
  bool read() {
    while (!has_ended_) {
      const uint64_t written = ring_.written.load(std::memory_order_acquire);
      if (written == read_) {
        // What was written before the runner ended is seen now, if there is something.
        if (ring_.closed.load(std::memory_order_acquire) && ring_.written.load(std::memory_order_acquire) == read_)
          return false;
        const timespec pause = {0, 50'000};
        nanosleep(&pause, nullptr);
        continue;
      }
      if (written - read_ > kRingRecords) return false;  // the runner claims more than there can be
      for (; read_ != written && !has_ended_; ++read_) take(ring_.records[read_ & (kRingRecords - 1)]);
      ring_.read.store(read_, std::memory_order_release);
    }
    return true;
  }

  void print(bool is_whole) {
    findings_.settle();
    std::printf("launch %d %llu %llu %llu\n", is_whole, u(totals_.blocks), u(totals_.releases),
                u(totals_.global_writes));
    for (size_t i = 0; i < totals_.sites().size(); ++i) print_site(i, totals_.sites()[i]);
    for (const Finding& found : findings_.all()) {
      std::printf("finding %llu", u(found.count));
      for (uint64_t word : found.word) std::printf(" %llu", u(word));
      std::printf("\n");
    }
  }

 private:
  static unsigned long long u(uint64_t value) { return value; }

  static void print_site(size_t number, const Site& site) {
    if (site.line) std::printf("line %zu %llu\n", number, u(site.line));
    if (site.block_steps) std::printf("block %zu %llu %llu\n", number, u(site.block_steps), u(site.block_lanes));
    if (site.barriers) std::printf("barrier %zu %llu %llu\n", number, u(site.barriers), u(site.barrier_lanes));
    if (site.warp_steps) std::printf("warp %zu %llu %llu\n", number, u(site.warp_steps), u(site.warp_lanes));
    for (int space = 0; space < 2; ++space) {
      for (int operation = 0; operation < 3; ++operation) {
        const Access& a = site.access[space][operation];
        if (a.requests)
          std::printf("access %zu %d %d %llu %llu %llu %llu %llu %llu %llu\n", number, space, operation, u(a.requests),
                      u(a.lanes), u(a.bytes), u(a.distinct_bytes), u(a.sectors), u(a.wavefronts),
                      u(a.ideal_wavefronts));
        print_example(number, space, operation, site.example[space][operation]);
      }
    }
  }

  static void print_example(size_t number, int space, int operation, const Example& example) {
    if (example.lanes.empty()) return;
    std::printf("request %zu %d %d %d %llu", number, space, operation, 1 << example.log_size, u(example.cost));
    for (size_t i = 0; i < example.lanes.size(); ++i)
      std::printf(" %llu %llu", u(example.lanes[i]), u(example.addresses[i]));
    std::printf("\n");
  }

  // Whether only a broken runner writes such a record; the totals are sized by what records say.
  bool is_impossible_access(uint64_t word) const {
    return site_of(word) >= launch_.sites || log_size_of(word) > 4 || operation_of(word) > Operation::kAtomic ||
           (space_of(word) == Space::kShared && address_of(word) > kMaxShared);
  }
  bool is_impossible(uint64_t word) const {
    const Kind kind = kind_of(word);
    const bool has_site =
        kind == Kind::kBasicBlock || kind == Kind::kWarpSync || kind == Kind::kBarrier || kind == Kind::kLine;
    return kind > Kind::kEnd || (has_site && site_of(word) >= launch_.sites);
  }
  void end_as_corrupt() {
    findings_.add(Fault::kCorrupt, 0, 0, 0, 0, 0, 0);
    has_ended_ = true;
  }

  void take(uint64_t word) {
    if (finding_words_ > 0) {
      finding_[kFindingWords - finding_words_] = word;
      const uint64_t* f = finding_;
      if (--finding_words_ == 0) findings_.add(static_cast<Fault>(f[0]), f[1], f[2], f[3], f[4], f[5], f[6]);
      return;
    }
    if (is_access(word)) {
      if (is_impossible_access(word)) return end_as_corrupt();
      warp_->append(lane_ % kWarp, word);
      return;
    }
    if (is_impossible(word)) return end_as_corrupt();
    const uint64_t value = value_of(word);
    switch (kind_of(word)) {
      case Kind::kBlock:
        ++totals_.blocks;
        shadow_.begin_block(value);
        global_.begin_block(value);
        lane_ = 0;
        warp_ = warps_.front().get();
        for (size_t w = 0; w < warps_.size(); ++w) {
          const int first = static_cast<int>(w) * kWarp;
          warps_[w]->begin_block(first, threads_ - first < kWarp ? threads_ - first : kWarp);
        }
        break;
      case Kind::kLane:
        lane_ = value < static_cast<uint64_t>(threads_) ? static_cast<int>(value) : 0;
        warp_ = warps_[lane_ / kWarp].get();
        break;
      case Kind::kBarrier:
      case Kind::kExit:
        if (kind_of(word) == Kind::kBarrier)
          warp_->append(lane_ % kWarp, word);
        else
          warp_->end_lane(lane_ % kWarp);
        warp_->close(lane_ % kWarp);
        if (warp_->is_closed()) warp_->merge();
        break;
      case Kind::kBasicBlock:
      case Kind::kWarpSync: warp_->append(lane_ % kWarp, word); break;
      case Kind::kWarpPaused:
        if (value < warps_.size()) warps_[value]->merge();
        break;
      case Kind::kRelease:
        ++totals_.releases;
        shadow_.barrier();
        global_.barrier();
        for (auto& each : warps_) each->reopen();
        break;
      case Kind::kBlockEnd: break;
      case Kind::kLine: totals_[static_cast<uint32_t>(value & (kMaxSites - 1))].line = value >> 32; break;
      case Kind::kFinding: finding_words_ = kFindingWords; break;
      case Kind::kEnd: has_ended_ = true; break;
    }
  }

  Ring& ring_;
  const Launch launch_;
  Guesses guesses_;
  Findings findings_{guesses_};
  Totals totals_;
  SharedShadow shadow_;
  GlobalShadow global_;
  std::vector<std::unique_ptr<WarpMerge>> warps_;
  WarpMerge* warp_;  // of the lane whose records come
  int threads_ = 0, lane_ = 0, finding_words_ = 0;
  uint64_t finding_[kFindingWords], read_ = 0;
  bool has_ended_ = false;
};

}  // namespace
}  // namespace simt

int main(int count, char** values) {
  if (count != 2) return 2;
  void* const made = mmap(nullptr, sizeof(simt::Ring), PROT_READ | PROT_WRITE, MAP_SHARED, std::atoi(values[1]), 0);
  if (made == MAP_FAILED) return 3;
  simt::Accountant accountant(*static_cast<simt::Ring*>(made));
  accountant.print(accountant.read());
  return 0;
}
