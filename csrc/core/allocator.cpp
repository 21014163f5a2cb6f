#include "core/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "core/counters.h"
#include "core/cuda_runtime.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/range.h"

namespace rooflab {
namespace {

constexpr int kMaxDevices = 128;  // what Device::index can name
constexpr int64_t kSmallest = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kCheckedOnCpu = int64_t{256} << 20;  // above this, ask Linux first: it grants what it does not have

// Sizes are rounded up to one of four steps in each power of two, so a freed block fits its like.
int64_t round_up(int64_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const int64_t step = std::max<int64_t>(kSmallest, std::bit_floor(static_cast<uint64_t>(bytes - 1)) / 4);
  return (bytes + step - 1) / step * step;
}

int64_t cpu_memory_available() {
  int64_t kilobytes = INT64_MAX / 1024;
  if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
    for (char line[128]; std::fgets(line, sizeof line, file);)
      if (std::sscanf(line, "MemAvailable: %" SCNd64, &kilobytes) == 1) break;
    std::fclose(file);
  }
  return kilobytes * 1024;
}

void* cpu_allocate(int64_t bytes) {
  if (bytes > kCheckedOnCpu && bytes > cpu_memory_available()) return nullptr;
  const int64_t alignment = bytes >= kHugePage ? kHugePage : kSmallest;
  if (bytes > INT64_MAX - alignment) return nullptr;
  const int64_t padded = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, padded);
  if (data && alignment == kHugePage) madvise(data, padded, MADV_HUGEPAGE);
  return data;
}

std::string megabytes(int64_t bytes) { return message(bytes / 1000000, ".", bytes / 100000 % 10, " MB"); }

}  // namespace

class Allocator {
 public:
  static Allocator& of(Device device) {
    // Never destroyed: tensors that Python still holds at exit come back after static objects are gone.
    static Allocator& cpu = *new Allocator;
    static Allocator* const cuda = new Allocator[kMaxDevices];
    return device.is_cpu() ? cpu : cuda[device.index];
  }

  void allocate(Storage& block) {
    std::unique_lock lock(mutex_);
    const int64_t capacity = round_up(block.bytes_);
    block.data_ = take_cached(capacity, block.stream_);
    if (!block.data_) block.data_ = take_from_system(capacity, block.device_);
    if (!block.data_) throw OutOfMemory(describe_shortage(block));
    link(block);
    allocated_ += block.bytes_;
    peak_ = std::max(peak_, allocated_);
  }

  void release(Storage& block) {
    std::unique_lock lock(mutex_);
    unlink(block);
    allocated_ -= block.bytes_;
    cache_[{block.stream_.handle, round_up(block.bytes_)}].push_back(block.data_);
  }

  void empty_cache(Device device) {
    std::unique_lock lock(mutex_);
    drop_cached(device);
  }

  int64_t allocated() const { return allocated_; }
  int64_t peak() const { return peak_; }
  int64_t reserved() const { return reserved_; }
  void reset_peak() { peak_ = allocated_; }

  std::vector<memory::BlockInfo> snapshot() {
    std::unique_lock lock(mutex_);
    std::vector<memory::BlockInfo> blocks;
    for (Storage* block = oldest_; block; block = block->next_) blocks.push_back({block->op_, block->bytes_});
    return blocks;
  }

 private:
  void* take_cached(int64_t capacity, Stream stream) {
    auto found = cache_.find({stream.handle, capacity});
    if (found == cache_.end() || found->second.empty()) return nullptr;
    void* data = found->second.back();
    found->second.pop_back();
    return data;
  }

  void* take_from_system(int64_t capacity, Device device) {
    auto take = [&] { return device.is_cpu() ? cpu_allocate(capacity) : cuda::allocate(capacity, device.index); };
    void* data = take();
    if (!data) {  // what is cached may be all that is missing
      drop_cached(device);
      data = take();
    }
    if (data) reserved_ += capacity;
    return data;
  }

  void drop_cached(Device device) {
    if (device.is_cuda()) cuda::synchronize(device.index);
    for (auto& [key, blocks] : cache_) {
      for (void* data : blocks) {
        if (device.is_cpu())
          std::free(data);
        else
          cuda::release(data, device.index);
        reserved_ -= key.second;
      }
    }
    cache_.clear();
  }

  // "[softmax] out of memory on cpu: asked for 8192.0 MB, tensors hold 100.0 MB (matmul 80.0 MB, ...)"
  std::string describe_shortage(const Storage& block) const {
    std::map<std::string, int64_t> held;
    for (Storage* live = oldest_; live; live = live->next_) held[*live->op_ ? live->op_ : "user"] += live->bytes_;
    std::vector<std::pair<int64_t, std::string>> largest;
    for (auto& [op, bytes] : held) largest.emplace_back(bytes, op);
    std::sort(largest.rbegin(), largest.rend());
    if (largest.size() > 4) largest.resize(4);
    std::string text = message("[", *block.op_ ? block.op_ : "tensor", "] out of memory on ", to_string(block.device_),
                               ": asked for ", megabytes(block.bytes_), ", tensors hold ", megabytes(allocated_));
    for (size_t i = 0; i < largest.size(); ++i)
      text += message(i ? ", " : " (", largest[i].second, " ", megabytes(largest[i].first));
    return text + (largest.empty() ? "" : ")");
  }

  void link(Storage& block) {
    block.previous_ = newest_;
    (newest_ ? newest_->next_ : oldest_) = &block;
    newest_ = &block;
  }

  void unlink(Storage& block) {
    (block.previous_ ? block.previous_->next_ : oldest_) = block.next_;
    (block.next_ ? block.next_->previous_ : newest_) = block.previous_;
  }

  std::mutex mutex_;
  std::map<std::pair<void*, int64_t>, std::vector<void*>> cache_;  // (stream, capacity) -> free blocks
  int64_t allocated_ = 0, peak_ = 0, reserved_ = 0;
  Storage* oldest_ = nullptr;
  Storage* newest_ = nullptr;
};

namespace {
int64_t held_bytes = 0;
std::vector<memory::Listener*> listeners;
}  // namespace

Storage::Storage(int64_t bytes, Device device)
    : bytes_(bytes),
      device_(device),
      stream_(device.is_cuda() ? cuda::current_stream(device.index) : Stream{}),
      op_(current_op()) {
  if (bytes_ == 0) return;
  Allocator::of(device_).allocate(*this);
  held_bytes += bytes_;
  if (detail::observers) count_allocation(bytes_, held_bytes);
  for (memory::Listener* listener : listeners) listener->allocated(*this);
}

Storage::Storage(void* data, Device device, std::function<void()> release)
    : data_(data), device_(device), release_(std::move(release)) {}

Storage::~Storage() {
  if (release_) {
    release_();
  } else if (data_) {
    for (memory::Listener* listener : listeners) listener->freed(*this);
    Allocator::of(device_).release(*this);
    held_bytes -= bytes_;
  }
}

namespace memory {
int64_t held() { return held_bytes; }
int64_t allocated(Device device) { return Allocator::of(device).allocated(); }
int64_t peak(Device device) { return Allocator::of(device).peak(); }
void reset_peak(Device device) { Allocator::of(device).reset_peak(); }
int64_t reserved(Device device) { return Allocator::of(device).reserved(); }
void empty_cache(Device device) { Allocator::of(device).empty_cache(device); }
std::vector<BlockInfo> snapshot(Device device) { return Allocator::of(device).snapshot(); }
void add_listener(Listener* listener) { listeners.push_back(listener); }
void remove_listener(Listener* listener) { std::erase(listeners, listener); }
}  // namespace memory

}  // namespace rooflab
