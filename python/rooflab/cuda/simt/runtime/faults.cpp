// What ends a kernel: it is told as a finding, with the thread and the place, whatever state the process is in.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "runner.h"

namespace simt {
namespace {

void handle(int signal, siginfo_t* info, void*) {
  if (signal == SIGTERM) stop(Fault::kEndless, self.last_site, self.done);
  if (signal == SIGFPE) stop(Fault::kDivision, self.last_site, 1);
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const auto bottom = self.lanes ? reinterpret_cast<uintptr_t>(lane().stack) : 0;
  const bool is_overflow = signal == SIGSEGV && address < bottom && bottom - address <= kStackBytes;
  stop(is_overflow ? Fault::kStackOverflow : Fault::kCrash, self.last_site, signal);
}

}  // namespace

void publish() { self.ring->written.store(self.cursor, std::memory_order_release); }

void wait_for_room() {
  publish();
  // The accountant is told every few thousand records, not of each.
  const uint64_t some = kRingRecords / 64;
  for (int tries = 0;; ++tries) {
    const uint64_t room = self.ring->read.load(std::memory_order_acquire) + kRingRecords - self.cursor;
    if (room >= some) break;
    const timespec pause = {0, 50'000};
    nanosleep(&pause, nullptr);
  }
  self.limit = self.cursor + some;
}

void report(Fault fault, uint64_t site, uint64_t a, uint64_t b, uint64_t c) {
  put(record(Kind::kFinding, 0));
  for (uint64_t word : {static_cast<uint64_t>(fault), self.block, static_cast<uint64_t>(self.current), site, a, b, c})
    put(word);
}

void stop(Fault fault, uint64_t site, uint64_t a, uint64_t b, uint64_t c) {
  report(fault, site, a, b, c);
  put(record(Kind::kEnd, 0));
  publish();
  flush_printed();
  _exit(1);
}

void catch_signals() {
  static char stack[64 << 10];  // a lane that overflows has none
  const stack_t other = {stack, 0, sizeof stack};
  sigaltstack(&other, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGTERM}) sigaction(signal, &action, nullptr);
}

}  // namespace simt
