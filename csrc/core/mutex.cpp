#include "core/mutex.h"

#include <pthread.h>

#include <algorithm>
#include <vector>

namespace rooflab {
namespace {

struct All {
  std::mutex mutex;
  std::vector<Mutex*> ordered;
};

// Never destroyed, because mutexes of objects that Python holds may outlive static objects.
All& all();

void lock_all() {
  all().mutex.lock();
  for (Mutex* each : all().ordered) each->lock();
}

void unlock_all() {
  for (auto each = all().ordered.rbegin(); each != all().ordered.rend(); ++each) (*each)->unlock();
  all().mutex.unlock();
}

All& all() {
  static All& made = [&]() -> All& {
    pthread_atfork(lock_all, unlock_all, unlock_all);
    return *new All;
  }();
  return made;
}

}  // namespace

Mutex::Mutex(LockOrder order) : order_(order) {
  std::lock_guard lock(all().mutex);
  std::vector<Mutex*>& ordered = all().ordered;
  const auto comes_later = [](LockOrder order, const Mutex* other) { return order < other->order(); };
  ordered.insert(std::upper_bound(ordered.begin(), ordered.end(), order, comes_later), this);
}

Mutex::~Mutex() {
  std::lock_guard lock(all().mutex);
  std::erase(all().ordered, this);
}

}  // namespace rooflab
