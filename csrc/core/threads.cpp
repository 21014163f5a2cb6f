#include "core/threads.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "core/platform/platform.h"

namespace rooflab {
namespace {

using threads::Run;

constexpr int kMostThreads = 1024;
constexpr int64_t kPiecesOfShare = 16;
// Waking a thread takes about 100 us. A worker that finds nothing to do spins for as long as that. Then it keeps
// looking for a while, but yields its core to others.
constexpr std::chrono::microseconds kSpin{100}, kLookOut{2000};

// Whether `done` becomes true soon. A thread that loses its core meanwhile finds that its time is over when it resumes.
template <class Done>
bool spin_until(Done done, std::chrono::microseconds limit) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      platform::pause();
    }
    const auto spent = std::chrono::steady_clock::now() - begin;
    if (spent > limit) return false;
    if (spent > kSpin) std::this_thread::yield();
  }
}

// A job is cut into pieces, and each worker of the team has a share of them. A worker first claims pieces of its own
// share, whose data may be in its caches from the previous job, then pieces of the others' shares. Nobody waits for a
// worker that has claimed no piece, so a worker that the system schedules late costs nothing but its help.
class Pool {
 public:
  // False if another thread is using the pool.
  bool enter() { return !entered_.exchange(true, std::memory_order_acquire); }
  void leave() { entered_.store(false, std::memory_order_release); }

  // Starts workers until there are `wanted`, including the caller; returns how many there are.
  int start(int wanted) {
    if (started_ >= wanted) return started_;
    sigset_t all, old;  // signals are for the program's own threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    try {
      for (; started_ < wanted; ++started_) std::thread([this, worker = started_] { serve(worker); }).detach();
    } catch (const std::exception&) {  // the system gives no more
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return started_;
  }

  void run(int64_t count, int64_t grain, int team, Run run, void* body) {
    const int64_t share = std::min(count / grain / team, kPiecesOfShare), pieces = share * team;
    job_ = {run, body, count, share, pieces, count / pieces >= 1024 ? 64 : 1};
    unfinished_.store(pieces, std::memory_order_relaxed);
    for (int i = 0; i < team; ++i) workers_[i].share.store(pack(team, share), std::memory_order_release);
    for (int i = 1; i < team; ++i) workers_[i].call.ring();
    work(0, team);
    if (spin_until([&] { return unfinished_.load(std::memory_order_acquire) == 0; }, kSpin)) return;
    finished_.wait_until([&] { return unfinished_.load() == 0; });
  }

 private:
  struct Job {
    Run run;
    void* body;
    int64_t count, share, pieces;
    int64_t step;  // pieces begin at multiples of it; long ones begin on a cache line

    int64_t begin_of(int64_t piece) const { return piece == pieces ? count : count * piece / pieces / step * step; }
  };

  // What a thread sleeps on. Ringing costs a system call only if a thread sleeps.
  class Bell {
   public:
    void ring() {
      rings_.fetch_add(1);
      if (asleep_.load()) rings_.notify_one();
    }
    uint32_t rings() const { return rings_.load(std::memory_order_acquire); }
    template <class Done>
    void wait_until(Done done) {
      asleep_.store(true);
      for (uint32_t seen; seen = rings_.load(), !done();) rings_.wait(seen);
      asleep_.store(false);
    }

   private:
    std::atomic<uint32_t> rings_{0};
    std::atomic<bool> asleep_{false};
  };

  // The unclaimed pieces of a worker's share, and the size of the team, which only workers below it may join. Both are
  // in one number, so that a claim is valid for the job that is then current.
  static constexpr uint64_t pack(int team, int64_t left) { return static_cast<uint64_t>(team) << 32 | left; }
  struct alignas(64) Worker {
    std::atomic<uint64_t> share{0};
    Bell call;
  };

  [[noreturn]] void serve(int worker) {
    Bell& call = workers_[worker].call;
    for (;;) {
      const uint32_t seen = call.rings();
      work(worker, static_cast<int>(workers_[worker].share.load(std::memory_order_acquire) >> 32));
      const auto called = [&] { return call.rings() != seen; };
      if (!spin_until(called, kLookOut)) call.wait_until(called);
    }
  }

  // Runs pieces until none is left. The job may be replaced as soon as no piece is unfinished.
  void work(int worker, int team) {
    for (int i = 0; i < team; ++i) {
      const int owner = (worker + i) % team;
      std::atomic<uint64_t>& share = workers_[owner].share;
      int64_t done = 0;
      for (uint64_t seen = share.load(std::memory_order_acquire);;) {
        const int64_t left = static_cast<uint32_t>(seen);
        if (left == 0 || static_cast<int>(seen >> 32) <= worker) break;
        if (!share.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire)) continue;
        const int64_t piece = job_.share * (owner + 1) - left;
        job_.run(job_.body, job_.begin_of(piece), job_.begin_of(piece + 1), worker);
        ++done;
        seen = share.load(std::memory_order_acquire);
      }
      if (done > 0 && unfinished_.fetch_sub(done) == done && worker > 0) finished_.ring();
    }
  }

  std::atomic<bool> entered_{false};
  int started_ = 1;
  Job job_{};
  Worker workers_[kMostThreads];
  alignas(64) std::atomic<int64_t> unfinished_{0};  // pieces
  Bell finished_;
};

// Never destroyed: its threads end with the process. A forked child has none of these threads and starts anew.
std::atomic<Pool*> pool{nullptr};

Pool& the_pool() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { pool.store(nullptr, std::memory_order_relaxed); });
  Pool* found = pool.load(std::memory_order_acquire);
  if (found) return *found;
  Pool* made = new Pool;
  if (pool.compare_exchange_strong(found, made)) return *made;
  delete made;
  return *found;
}

int default_threads() {
  const char* set = std::getenv("OMP_NUM_THREADS");
  const int wanted = set ? std::atoi(set) : 0;
  return std::clamp(wanted > 0 ? wanted : platform::usable_cpus(), 1, kMostThreads);
}

std::atomic<int>& setting() {
  static std::atomic<int> threads{default_threads()};
  return threads;
}

}  // namespace

int num_threads() { return setting().load(std::memory_order_relaxed); }
void set_num_threads(int threads) { setting().store(std::clamp(threads, 1, kMostThreads)); }

void threads::parallel(int64_t count, int64_t grain, int64_t workers, Run run, void* body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int team = static_cast<int>(std::clamp<int64_t>(std::min(workers, count / grain), 1, num_threads()));
  if (team == 1) return run(body, 0, count, 0);
  Pool& pool = the_pool();
  if (!pool.enter()) return run(body, 0, count, 0);
  if (const int started = pool.start(team); started < team) set_num_threads(team = started);
  pool.run(count, grain, team, run, body);
  pool.leave();
}

}  // namespace rooflab
