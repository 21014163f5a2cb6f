#include "core/allocator.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/context.h"
#include "core/counters.h"
#include "core/cuda_runtime.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/mutex.h"
#include "core/platform/platform.h"
#include "core/range.h"
#include "core/segments.h"

namespace rooflab {
namespace {

constexpr int kMaxDevices = 128;  // as many as Device::index can name
constexpr int64_t kSlack = int64_t{64} << 20;

// A tensor without memory has addresses that no real memory has: an access faults, but views can compute with them.
constexpr int64_t kFirstFakeAddress = int64_t{1} << 60;
constexpr int64_t kFakeAlignment = 256;

// With one digit after the point.
std::string readable(int64_t bytes) {
  if (bytes < 1000) return message(bytes, " bytes");
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  int64_t unit = 1000;
  int name = 0;
  for (; bytes / unit >= 1000; unit *= 1000) ++name;
  return message(bytes / unit, ".", bytes / (unit / 10) % 10, " ", kUnits[name]);
}

}  // namespace

// The memory of one device.
class Allocator {
 public:
  static Allocator& of(Device device) {
    // Never destroyed: tensors that Python still holds at exit are freed after static objects are gone.
    static Allocator* const cpu = new Allocator;
    static Allocator* const cuda = make_all(Device::Type::kCuda);
    static Allocator* const meta = make_all(Device::Type::kMeta);
    if (device.is_cpu()) return *cpu;
    return (device.is_cuda() ? cuda : meta)[device.index];
  }

  void allocate(Storage& storage) {
    std::lock_guard lock(mutex_);
    if (storage.bytes_ > limit_ - allocated_ || storage.bytes_ > Segments::kLargestRequest)
      throw OutOfMemory(describe_shortage(storage));
    if (device_.is_meta())
      storage.data_ = fake_address(storage.bytes_);
    else
      take_block(storage);
    link(storage);
    allocated_ += storage.bytes_;
    peak_ = std::max(peak_, allocated_);
    highest_ = std::max(highest_, allocated_);
  }

  void* name_address(int64_t bytes) {
    std::lock_guard lock(mutex_);
    return fake_address(bytes);
  }

  void release(Storage& storage) noexcept {
    std::lock_guard lock(mutex_);
    unlink(storage);
    allocated_ -= storage.bytes_;
    if (!storage.block_) return;
    await_uses(storage, storage.block_->segment->arena->stream);
    segments_.give_back(storage.block_);
  }

  void release_wrapped(Storage& storage) noexcept {
    std::lock_guard lock(mutex_);
    await_uses(storage, Stream{});
  }

  void note_use(Storage& storage, Stream stream) {
    std::lock_guard lock(mutex_);
    if (std::find(storage.uses_.begin(), storage.uses_.end(), stream) == storage.uses_.end())
      storage.uses_.push_back(stream);
  }

  void empty_cache(int64_t keep_bytes) {
    std::lock_guard lock(mutex_);
    shrink(keep_bytes);
  }

  void set_limit(int64_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
  }

  int64_t available() {
    std::lock_guard lock(mutex_);
    const int64_t within_limit = std::max<int64_t>(limit_ - allocated_, 0);
    if (device_.is_meta()) return within_limit;
    const int64_t left = device_.is_cpu() ? platform::memory_left(reserved_) : cuda::free_memory(device_.index);
    return std::min(within_limit, left + reserved_ - allocated_);
  }

  int64_t allocated() { return read(allocated_); }
  int64_t peak() { return read(peak_); }
  int64_t reserved() { return read(reserved_); }
  void reset_peak() {
    std::lock_guard lock(mutex_);
    peak_ = allocated_;
  }

  std::vector<memory::BlockInfo> snapshot() {
    std::lock_guard lock(mutex_);
    std::vector<memory::BlockInfo> blocks;
    for (Storage* live = oldest_; live; live = live->next_) blocks.push_back({live->op_, live->bytes_});
    return blocks;
  }

  template <class Gone>
  void adopt(Gone gone) noexcept {
    std::lock_guard lock(mutex_);
    segments_.adopt(gone);
  }

  template <class Visit>
  static void for_each(Visit&& visit) {
    visit(of(Device{}));
    for (int i = 0; i < kMaxDevices; ++i) visit(of({Device::Type::kCuda, static_cast<int8_t>(i)}));
  }

 private:
  static Allocator* make_all(Device::Type type) {
    auto* all = new Allocator[kMaxDevices];
    for (int i = 0; i < kMaxDevices; ++i) all[i].device_ = {type, static_cast<int8_t>(i)};
    return all;
  }

  int64_t read(const int64_t& number) {
    std::lock_guard lock(mutex_);
    return number;
  }

  void take_block(Storage& storage) {
    const Mode& mode = context().mode;
    storage.recording_ = mode.recording;
    Arena& arena = segments_.arena(mode.pool, storage.stream_);
    storage.block_ = segments_.take(arena, storage.bytes_);
    if (!storage.block_) {
      add_segment(arena, storage);
      storage.block_ = segments_.take(arena, storage.bytes_);
    }
    storage.data_ = storage.block_->data;
  }

  void add_segment(Arena& arena, const Storage& storage) {
    int64_t bytes = Segments::segment_bytes(storage.bytes_);
    // When sizes change, old segments may no longer fit any request. They are bounded by the most memory ever needed at
    // once.
    const int64_t needed = std::max(highest_, allocated_ + storage.bytes_);
    shrink(std::min(needed / 2 * 3 + kSlack, limit_) - bytes);
    void* data = take_from_system(bytes);
    if (!data) {  // cached memory, or the rounding, may be all that is missing
      shrink(0);
      data = take_from_system(bytes);
    }
    if (!data) data = take_from_system(bytes = Segments::least_segment_bytes(storage.bytes_));
    if (!data) throw OutOfMemory(describe_shortage(storage));
    try {
      segments_.add(arena, storage.bytes_, data, bytes);
    } catch (...) {
      give_to_system(data, bytes);
      throw;
    }
  }

  void* take_from_system(int64_t bytes) {
    void* data = nullptr;
    if (device_.is_cuda())
      data = cuda::allocate(bytes, device_.index);
    else if (bytes <= platform::memory_left(reserved_))  // Linux grants more than it has, and kills who then uses it
      data = platform::take_memory(bytes);
    if (data) reserved_ += bytes;
    return data;
  }

  void give_to_system(void* data, int64_t bytes) {
    reserved_ -= bytes;
    if (device_.is_cuda())
      cuda::release(data, device_.index);
    else
      platform::give_back_memory(data, bytes);
  }

  // Returns segments that are wholly free to the system while more than `goal` bytes are reserved. Not while a stream
  // of the GPU is captured, by this thread or another: freeing waits for the GPU, which would end the capture.
  void shrink(int64_t goal) {
    std::optional<cuda::NoCapture> none;
    if (device_.is_cuda() && reserved_ > goal && !none.emplace(device_.index).holds()) return;
    for (bool waited = false; reserved_ > goal;) {
      const auto [data, bytes] = segments_.drop_free();
      if (!data) return;
      if (none && !std::exchange(waited, true)) none->synchronize();
      give_to_system(data, bytes);
    }
  }

  // Makes `owner`'s later work wait for everything that other streams do with the block.
  void await_uses(const Storage& storage, Stream owner) noexcept try {
    for (const Stream user : storage.uses_) {
      if (user.id == Stream::kForeign) {
        cuda::synchronize(device_.index);
        return;
      }
      // The work of a destroyed stream is done; the default stream stands in for it.
      if (!cuda::is_alive(owner)) owner = Stream{};
      if (user == owner || !cuda::is_alive(user)) continue;
      const bool owner_captured = cuda::is_capturing(owner), user_captured = cuda::is_capturing(user);
      if (owner_captured == user_captured)
        cuda::wait(owner, user, device_.index);
      else if (owner_captured)  // a captured stream cannot wait for work that is not captured
        cuda::synchronize(user, device_.index);
      // Otherwise the work that uses the block is captured, and does not run now.
    }
  } catch (const std::exception&) {
    // This fails only if the context is lost; then nothing runs any more.
  }

  void* fake_address(int64_t bytes) {
    if (next_fake_address_ > INT64_MAX - kFakeAlignment - bytes) next_fake_address_ = kFirstFakeAddress;
    void* address = reinterpret_cast<void*>(next_fake_address_);
    next_fake_address_ += (bytes + kFakeAlignment - 1) / kFakeAlignment * kFakeAlignment;
    return address;
  }

  // "[softmax] out of memory on cpu: asked for 8.1 GB, tensors hold 100.0 MB (matmul 80.0 MB, ...)"
  std::string describe_shortage(const Storage& storage) const {
    std::map<std::string, int64_t> held;
    for (Storage* live = oldest_; live; live = live->next_) held[*live->op_ ? live->op_ : "user"] += live->bytes_;
    std::vector<std::pair<int64_t, std::string>> largest;
    for (auto& [op, bytes] : held) largest.emplace_back(bytes, op);
    std::sort(largest.rbegin(), largest.rend());
    if (largest.size() > 4) largest.resize(4);
    std::string text = message("[", *storage.op_ ? storage.op_ : "tensor", "] out of memory on ", to_string(device_),
                               ": asked for ", readable(storage.bytes_), ", tensors hold ", readable(allocated_));
    for (size_t i = 0; i < largest.size(); ++i)
      text += message(i ? ", " : " (", largest[i].second, " ", readable(largest[i].first));
    if (!largest.empty()) text += ")";
    return limit_ == INT64_MAX ? text : text + message(", the limit is ", readable(limit_));
  }

  void link(Storage& storage) {
    storage.previous_ = newest_;
    (newest_ ? newest_->next_ : oldest_) = &storage;
    newest_ = &storage;
  }

  void unlink(Storage& storage) {
    (storage.previous_ ? storage.previous_->next_ : oldest_) = storage.next_;
    (storage.next_ ? storage.next_->previous_ : newest_) = storage.previous_;
  }

  Mutex mutex_{LockOrder::kAllocators};
  Device device_;
  Segments segments_;
  int64_t allocated_ = 0, peak_ = 0, reserved_ = 0;
  int64_t highest_ = 0;  // the maximum of allocated_ so far
  int64_t limit_ = INT64_MAX;
  int64_t next_fake_address_ = kFirstFakeAddress;
  Storage* oldest_ = nullptr;
  Storage* newest_ = nullptr;
};

namespace {

// Made before there is a second thread, which might be making them when the first one forks.
[[maybe_unused]] const Allocator& made_at_load = Allocator::of(Device{});

std::atomic<int64_t> held_bytes{0};

Mutex listeners_mutex(LockOrder::kListeners);
std::vector<memory::Listener*> listeners;
std::atomic<bool> is_heard{false};

void tell(void (memory::Listener::*event)(const Storage&), const Storage& storage) {
  if (!is_heard) return;
  std::lock_guard lock(listeners_mutex);
  for (memory::Listener* listener : listeners) (listener->*event)(storage);
}

}  // namespace

Storage::Storage(int64_t bytes, Device device, Kind kind)
    : bytes_(bytes),
      device_(device),
      stream_(device.is_cuda() ? cuda::current_stream(device.index) : Stream{}),
      kind_(kind),
      op_(current_op()) {
  if (bytes_ == 0) return;
  is_counted_ = !(device.is_meta() && context().mode.is_uncounted);
  if (!is_counted_) {
    data_ = Allocator::of(device_).name_address(bytes_);
    return;
  }
  Allocator::of(device_).allocate(*this);
  const int64_t held = held_bytes += bytes_;
  try {
    if (detail::observers) count_allocation(bytes_, held);
    tell(&memory::Listener::allocated, *this);
  } catch (...) {
    held_bytes -= bytes_;
    Allocator::of(device_).release(*this);
    throw;
  }
}

Storage::Storage(void* data, Device device, std::function<void()> release)
    : data_(data), device_(device), release_(std::move(release)) {}

Storage::~Storage() {
  if (release_) {
    if (!uses_.empty()) Allocator::of(device_).release_wrapped(*this);
    release_();
  } else if (data_ && is_counted_) {
    tell(&memory::Listener::freed, *this);
    Allocator::of(device_).release(*this);
    held_bytes -= bytes_;
  }
}

Version Storage::version() const {
  return {writes_.load(std::memory_order_relaxed), context().mode.recording ? Version::kAnyReplays : replays()};
}

void Storage::note_use(Stream stream) { Allocator::of(device_).note_use(*this, stream); }

namespace memory {

int64_t held() { return held_bytes; }
int64_t allocated(Device device) { return Allocator::of(device).allocated(); }
int64_t peak(Device device) { return Allocator::of(device).peak(); }
void reset_peak(Device device) { Allocator::of(device).reset_peak(); }
int64_t reserved(Device device) { return Allocator::of(device).reserved(); }
int64_t available(Device device) { return Allocator::of(device).available(); }
void empty_cache(Device device, int64_t keep_bytes) { Allocator::of(device).empty_cache(keep_bytes); }
std::vector<BlockInfo> snapshot(Device device) { return Allocator::of(device).snapshot(); }
void adopt(Stream gone, Device device) noexcept { Allocator::of(device).adopt(gone); }

void set_limit(std::optional<int64_t> bytes, Device device) {
  RL_CHECK(!bytes || *bytes >= 0, "set_limit", "bytes: expected >= 0 or None, got ", bytes.value_or(0));
  Allocator::of(device).set_limit(bytes.value_or(INT64_MAX));
}

void add_listener(Listener* listener) {
  std::lock_guard lock(listeners_mutex);
  listeners.push_back(listener);
  is_heard = true;
}

void remove_listener(Listener* listener) {
  std::lock_guard lock(listeners_mutex);
  std::erase(listeners, listener);
  is_heard = !listeners.empty();
}

Pool::~Pool() {
  Allocator::for_each([this](Allocator& allocator) { allocator.adopt(this); });
}

}  // namespace memory

}  // namespace rooflab
