#include "profiler/memory_recorder.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "core/allocator.h"
#include "core/context.h"
#include "core/range.h"
#include "profiler/device_timer.h"

namespace rooflab::profiler {

void MemoryRecorder::start() {
  if (running_) throw std::runtime_error("[memory] this recorder is recording already");
  live_blocks_.clear(), blocks_.clear(), events_.clear();
  live_ = peak_ = duration_ns_ = dropped_ = 0;
  resident_ = device_ ? memory::allocated(*device_) : memory::held();
  start_ns_ = now_ns();
  running_ = true;
  memory::add_listener(this);
}

void MemoryRecorder::stop() {
  if (!running_) return;
  memory::remove_listener(this);
  running_ = false;
  duration_ns_ = now_ns() - start_ns_;
}

bool MemoryRecorder::ignores(const Storage& block) const { return device_ && *device_ != block.device(); }

void MemoryRecorder::allocated(const Storage& block) {
  if (ignores(block)) return;
  std::lock_guard lock(mutex_);
  live_ += block.bytes();
  peak_ = std::max(peak_, live_);
  note(block, false);
}

void MemoryRecorder::freed(const Storage& block) {
  if (ignores(block)) return;
  std::lock_guard lock(mutex_);
  live_ -= block.bytes();
  note(block, true);
}

void MemoryRecorder::note(const Storage& block, bool freed) try {
  const auto [known, is_new] = live_blocks_.try_emplace(&block, blocks_.size());
  const size_t number = known->second;
  if (freed) live_blocks_.erase(known);  // its address may be used again
  if (is_new)
    blocks_.push_back({block.op(), freed ? "" : current_range(), block.device(), block.bytes(), block.is_scratch(),
                       freed ? 0 : context().stack});
  events_.push_back({now_ns() - start_ns_, number, freed});
} catch (const std::bad_alloc&) {
  live_blocks_.erase(&block);
  ++dropped_;
}

}  // namespace rooflab::profiler
