// What CUDA's built-in functions call (device/*.h). The front end sets each argument `site`.
#include <cmath>
#include <cstring>

#include "device/codes.h"
#include "half_bits.h"
#include "memory.h"
#include "warp.h"

namespace simt {

namespace {

constexpr int kMaxLines = 1 << 12;
uint16_t told[kMaxLines];                       // sites whose line the accountant knows
constexpr uint64_t kWild = 0xfefefefefefefefe;  // as in local variables that nobody set

}  // namespace

void tell_line(uint32_t site, uint32_t line) {
  if (site >= kMaxLines || told[site] == line) return;
  told[site] = static_cast<uint16_t>(line);
  if (self.is_recording) put(record(Kind::kLine, site | uint64_t{line} << 32));
}

void wait_for_warp(uint32_t mask) {
  lane().mask = mask;
  wait(State::kWarpSync);
}

void meet(uint32_t site, uint32_t line, uint32_t mask, uint64_t value, uint32_t operation) {
  tell_line(site, line);
  Lane& mine = lane();
  const int own = self.current % kWarp, exist = self.threads - self.current / kWarp * kWarp;
  if (exist < kWarp) mask &= (uint32_t{1} << exist) - 1;
  if (!(mask >> own & 1)) stop(Fault::kMissedWarp, site, mask, uint64_t{1} << own);
  mine.site = site;
  mine.given = value;
  mine.operation = operation;
  mine.took_part |= uint64_t{1} << site % 64;
  self.behind = site;
  if (self.is_recording)
    put(record(Kind::kWarpSync, site | uint64_t{operation == rl_warp_sync ? mask : 0} << kSiteBits));
  wait_for_warp(mask);
}

}  // namespace simt

using namespace simt;

namespace {

float as_float(uint64_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
double as_double(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, 8);
  return value;
}
template <class T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
T changed(rl_atomic what, T old, T value, T compare) {
  switch (what) {
    case rl_atomic_add: return old + value;
    case rl_atomic_subtract: return old - value;
    case rl_atomic_min: return value < old ? value : old;
    case rl_atomic_max: return old < value ? value : old;
    case rl_atomic_exchange: return value;
    case rl_atomic_compare: return old == compare ? value : old;
    case rl_atomic_and: return old & value;
    case rl_atomic_or: return old | value;
    case rl_atomic_xor: return old ^ value;
    case rl_atomic_increment: return old >= value ? 0 : old + 1;
    case rl_atomic_decrement: return old == 0 || old > value ? value : old - 1;
    default: __builtin_trap();
  }
}

uint64_t added(rl_type type, uint64_t old, uint64_t value) {
  switch (type) {
    case rl_type_float: return bits_of(as_float(old) + as_float(value));
    case rl_type_double: return bits_of(as_double(old) + as_double(value));
    case rl_type_half: return to_half(from_half(old) + from_half(value));
    case rl_type_bfloat16: return to_bfloat16(from_bfloat16(old) + from_bfloat16(value));
    case rl_type_half2:
      return added(rl_type_half, old & 0xffff, value & 0xffff) | added(rl_type_half, old >> 16, value >> 16) << 16;
    case rl_type_bfloat162:
      return added(rl_type_bfloat16, old & 0xffff, value & 0xffff) | added(rl_type_bfloat16, old >> 16, value >> 16)
                                                                         << 16;
    default: __builtin_trap();
  }
}

void check_width(uint32_t site, uint32_t line, uint32_t width) {
  if (width - 1 < kWarp && !(width & (width - 1))) return;
  tell_line(site, line);
  stop(Fault::kWidth, site, width);
}

// Of 32-bit integers, over the lanes that came.
uint64_t reduced(const Lane& mine, rl_warp kind, bool is_signed) {
  uint32_t total = kind == rl_warp_and ? ~0u : 0;
  bool is_first = true;
  for (int i = 0; i < kWarp; ++i) {
    if (!(mine.taken_from >> i & 1)) continue;
    const auto value = static_cast<uint32_t>(mine.taken[i]);
    const bool less = is_signed ? static_cast<int32_t>(value) < static_cast<int32_t>(total) : value < total;
    if (kind == rl_warp_add) total += value;
    if (kind == rl_warp_and) total &= value;
    if (kind == rl_warp_or) total |= value;
    if (kind == rl_warp_xor) total ^= value;
    if ((kind == rl_warp_min && (is_first || less)) || (kind == rl_warp_max && (is_first || !less))) total = value;
    is_first = false;
  }
  return total;
}

}  // namespace

extern "C" {

uint32_t rl_thread_x() { return lane().x; }
uint32_t rl_thread_y() { return lane().y; }
uint32_t rl_thread_z() { return lane().z; }
uint32_t rl_block_x() { return self.block_x; }
uint32_t rl_block_y() { return self.block_y; }
uint32_t rl_block_z() { return self.block_z; }
uint32_t rl_block_size(int axis) { return self.launch.block[axis]; }
uint32_t rl_grid_size(int axis) { return self.launch.grid[axis]; }

float rl_from_half(uint16_t bits) { return from_half(bits); }
uint16_t rl_to_half(float value) { return to_half(value); }
float rl_from_bfloat16(uint16_t bits) { return from_bfloat16(bits); }
uint16_t rl_to_bfloat16(float value) { return to_bfloat16(value); }

// What rounds to fewer bits as `value` itself does: where it is no float, the neighbour whose last bit is 1.
float rl_to_odd(double value) {
  const auto near = static_cast<float>(value);
  if (near == value || value != value || (bits_of(near) & 1)) return near;
  return std::nextafter(near, near < value ? INFINITY : -INFINITY);
}
// x y + z of 16-bit floats, rounded to odd. The product is exact as a double. The sum is made odd where its error,
// which is exact too, is not 0.
float rl_fused(float x, float y, float z) {
  const double product = static_cast<double>(x) * y, sum = product + z;
  const double added = sum - product, error = (product - (sum - added)) + (z - added);
  const bool is_even = !(bits_of(sum) & 1);
  return rl_to_odd(is_even && error > 0   ? std::nextafter(sum, INFINITY)
                   : is_even && error < 0 ? std::nextafter(sum, -INFINITY)
                                          : sum);
}
// Functions that compute: within the kernel their arithmetic would be counted.
float rl_normcdf(float value) { return 0.5f * std::erfc(value * -0.70710678f); }
float rl_fraction(float value) { return std::copysign(std::isinf(value) ? 0 : value - std::trunc(value), value); }

uint64_t rl_to_integer(double value, int bits, int is_signed, uint64_t of_nan) {
  const double end = std::ldexp(1.0, bits - is_signed);
  const uint64_t most = ~uint64_t{0} >> (64 - bits + is_signed);
  if (value != value) return of_nan;
  if (value >= end) return most;
  if (!is_signed) return value > 0 ? static_cast<uint64_t>(value) : 0;
  return value < -end ? ~most : static_cast<uint64_t>(static_cast<int64_t>(value));
}

[[noreturn]] void rl_exit() {
  if (self.is_recording) put(record(Kind::kExit, 0));
  wait(State::kExited);
  __builtin_trap();
}

int rl_barrier(uint32_t site, uint32_t line, int predicate, rl_vote what) {
  tell_line(site, line);
  Lane& mine = lane();
  mine.site = site;
  mine.line = line;
  mine.given = predicate != 0;
  if (self.is_recording) put(record(Kind::kBarrier, site));
  wait(State::kBarrier);
  return what == rl_vote_all   ? self.barrier_true == self.barrier_arrived
         : what == rl_vote_any ? self.barrier_true > 0
                               : self.barrier_true;
}

// A shuffle, a vote or __syncwarp: waits for the lanes of `mask`. `what` is an rl_warp, and from bit 8 the width of a
// shuffle; `operand` its lane, its distance or its mask.
uint64_t rl_warp_operation(uint32_t site, uint32_t line, uint32_t mask, uint64_t value, int what, uint32_t operand) {
  const auto kind = static_cast<rl_warp>(what & 0xff);
  if (kind >= rl_warp_shuffle && kind <= rl_warp_shuffle_xor) check_width(site, line, what >> 8);
  meet(site, line, mask, value, kind);
  const Lane& mine = lane();
  const uint32_t own = self.current % kWarp;
  const uint32_t came = mine.taken_from, width = what >> 8, begin = width ? own & ~(width - 1) : 0;
  const uint32_t distance = operand % kWarp;  // a GPU takes five bits of it
  uint32_t from = own, set = 0, equal = 0;
  for (uint32_t i = 0; i < kWarp; ++i) {
    if (!(came >> i & 1)) continue;
    set |= uint32_t{mine.taken[i] != 0} << i;
    equal |= uint32_t{mine.taken[i] == value} << i;
  }
  switch (kind) {
    case rl_warp_sync: return 0;
    case rl_warp_shuffle: from = begin + operand % width; break;
    case rl_warp_shuffle_up: from = own - begin >= distance ? own - distance : own; break;
    case rl_warp_shuffle_down: from = own - begin + distance < width ? own + distance : own; break;
    case rl_warp_shuffle_xor: from = (own ^ distance) < begin + width ? own ^ distance : own; break;
    case rl_warp_ballot: return set;
    case rl_warp_all: return set == came;
    case rl_warp_any: return set != 0;
    case rl_warp_match_any: return equal;
    case rl_warp_match_all: return equal == came ? came : 0;
    case rl_warp_add:
    case rl_warp_min:
    case rl_warp_max:
    case rl_warp_and:
    case rl_warp_or:
    case rl_warp_xor: return reduced(mine, kind, operand != 0);
  }
  if (came >> from & 1) return mine.taken[from];
  // Undefined. In a sum by halves the last lanes shift such values down or up, and nobody looks at what they make; who
  // does sees a wild value.
  const bool is_last = (kind == rl_warp_shuffle_down && own - begin >= distance) ||
                       (kind == rl_warp_shuffle_up && own - begin + distance < width);
  if (!is_last) report(Fault::kOutsideMask, site, came, from);
  return kWild;
}

uint32_t rl_lane() { return self.current % kWarp; }

// Of some lanes of a warp, the one that has so many others before it.
int rl_lane_of_rank(uint32_t lanes, uint32_t rank) {
  for (; rank > 0; --rank) lanes &= lanes - 1;
  return lanes ? __builtin_ctz(lanes) : 0;
}

// The bits of some lanes, side by side.
uint32_t rl_by_rank(uint32_t lanes, uint32_t bits) {
  uint32_t made = 0;
  for (int rank = 0; lanes; ++rank, lanes &= lanes - 1) made |= (bits >> __builtin_ctz(lanes) & 1) << rank;
  return made;
}

// Which lanes are at this place together.
uint32_t rl_active(uint32_t site, uint32_t line) {
  tell_line(site, line);
  Lane& mine = lane();
  mine.site = site;
  mine.mask = 0;
  mine.operation = kWhoIsActive;
  wait(State::kWarpSync);
  return mine.taken_from;
}

uint64_t rl_at_atomic(uint32_t site, uint32_t line, void* pointer, int what_type, uint64_t value, uint64_t compare) {
  tell_line(site, line);
  const auto what = static_cast<rl_atomic>(what_type & 0xff);
  const auto type = static_cast<rl_type>(what_type >> 8);
  const int log_size = rl_log_size(type);
  check(pointer, log_size, Operation::kAtomic, site, what == rl_atomic_compare);
  uint64_t old = 0;
  std::memcpy(&old, pointer, 1 << log_size);
  uint64_t made = 0;
  if (what == rl_atomic_add && type >= rl_type_float)
    made = added(type, old, value);
  else if (type == rl_type_int)
    made = bits_of(
        changed<int32_t>(what, static_cast<int32_t>(old), static_cast<int32_t>(value), static_cast<int32_t>(compare)));
  else if (type == rl_type_long)
    made = bits_of(
        changed<int64_t>(what, static_cast<int64_t>(old), static_cast<int64_t>(value), static_cast<int64_t>(compare)));
  else if (log_size == 2)
    made = changed<uint32_t>(what, static_cast<uint32_t>(old), static_cast<uint32_t>(value),
                             static_cast<uint32_t>(compare));
  else
    made = changed<uint64_t>(what, old, value, compare);
  std::memcpy(pointer, &made, 1 << log_size);
  return old;
}

[[noreturn]] void rl_assertion_failed(uint32_t site, uint32_t line) {
  tell_line(site, line);
  stop(Fault::kAssertion, site, line);
}

[[noreturn]] void rl_trap(uint32_t site, uint32_t line) {
  tell_line(site, line);
  stop(Fault::kTrap, site, line);
}

}  // extern "C"
