// What the compiler calls before each load and store (-fsanitize=thread), at each basic block
// (-fsanitize-coverage=trace-pc) and where an index leaves its array (-fsanitize=bounds). The front end adds the site
// to each call, as the argument behind those that the compiler passes.
#include <cstring>

#include "memory.h"
#include "warp.h"

using namespace simt;

namespace {

// A structure that is copied whole goes in pieces of its alignment, as on a GPU. Where the front end does not know it,
// it is a divisor of the size. Up to 16 bytes, one with the alignment of its size does not come here.
uint64_t piece(uint64_t size, uint32_t alignment) {
  if (alignment != 0) return alignment < 16 ? alignment : 16;
  const uint64_t divisor = size & (~size + 1);
  if (size > 16) return divisor < 8 ? divisor : 8;
  const uint64_t less = divisor == size ? size / 2 : divisor;
  return less < 4 ? less : 4;
}

}  // namespace

#define SIMT_HOOKS(SIZE, LOG)                                                                                \
  void __tsan_read##SIZE(void* p, uint32_t site) { check(p, LOG, Operation::kLoad, site); }                  \
  void __tsan_write##SIZE(void* p, uint32_t site) { check(p, LOG, Operation::kStore, site); }                \
  void __tsan_volatile_read##SIZE(void* p, uint32_t site) { check(p, LOG, Operation::kLoad, site, true); }   \
  void __tsan_volatile_write##SIZE(void* p, uint32_t site) { check(p, LOG, Operation::kStore, site, true); } \
  void __tsan_unaligned_read##SIZE(void* p, uint32_t site) { check(p, LOG, Operation::kLoad, site); }        \
  void __tsan_unaligned_write##SIZE(void* p, uint32_t site) { check(p, LOG, Operation::kStore, site); }

extern "C" {

SIMT_HOOKS(1, 0)
SIMT_HOOKS(2, 1)
SIMT_HOOKS(4, 2)
SIMT_HOOKS(8, 3)
SIMT_HOOKS(16, 4)

void __tsan_read_range(void* p, uint64_t size, uint32_t site, uint32_t alignment) {
  check_range(p, size, piece(size, alignment), Operation::kLoad, site);
}
void __tsan_write_range(void* p, uint64_t size, uint32_t site, uint32_t alignment) {
  check_range(p, size, piece(size, alignment), Operation::kStore, site);
}

void __sanitizer_cov_trace_pc(uint32_t site) {
  self.last_site = site;
  if (site < self.behind) self.behind = 0;
  if (__builtin_expect(--self.patience == 0, 0)) pause_if_tired();
  if (self.is_recording && self.is_counting) put(record(Kind::kBasicBlock, site));
}

// This file is compiled with frame pointers, so the caller's frame is where ours says.
void __tsan_func_entry(void*) {
  auto* const frame = *static_cast<uintptr_t**>(__builtin_frame_address(0));
  Lane& mine = lane();
  if (mine.depth == kMaxDepth) stop(Fault::kStackOverflow, 0);
  mine.frames[mine.depth++] = {frame, frame[0], frame[1]};
}

void __tsan_func_exit() {
  auto* const frame = *static_cast<uintptr_t**>(__builtin_frame_address(0));
  Lane& mine = lane();
  const Frame& began = mine.frames[--mine.depth];
  if (began.place != frame || began.previous != frame[0] || began.return_address != frame[1])
    stop(Fault::kStackBroken, 0);
}

// {file, line, column} is the first member of what the compiler passes.
struct Place {
  const char* file;
  uint32_t line, column;
};
[[noreturn]] void __ubsan_handle_out_of_bounds_abort(const Place* place, uint64_t index) {
  stop(Fault::kArrayIndex, 0, index, place->line, place->column);
}
// An object that is too small, or an address that is no multiple of what the type asks for. The access may stand in a
// header; then the site has the source's line.
struct AccessPlace {
  Place place;
  const void* type;
  uint8_t log_alignment, what;  // 0 for the former; a load, a store, or else
};
[[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(const AccessPlace* at, uintptr_t address, uint32_t site) {
  if (std::strcmp(at->place.file, "source") == 0) tell_line(site, at->place.line);
  if (at->log_alignment == 0) stop(Fault::kArrayIndex, site, ~uint64_t{0});
  const Operation operation = at->what == 0   ? Operation::kLoad
                              : at->what == 1 ? Operation::kStore
                                              : Operation::kUnknown;
  refuse_access(address, uint64_t{1} << at->log_alignment, operation, site);
  __builtin_trap();
}

[[noreturn]] void __ubsan_handle_missing_return(const Place* place) {
  stop(Fault::kNoValue, 0, 0, place->line, place->column);
}
[[noreturn]] void __ubsan_handle_builtin_unreachable(const Place* place) {
  stop(Fault::kNoValue, 0, 0, place->line, place->column);
}

[[noreturn]] void rl_misaligned(uint32_t site, const void* place, uint32_t size, int is_store) {
  refuse_access(reinterpret_cast<uintptr_t>(place), size, is_store ? Operation::kStore : Operation::kLoad, site);
  __builtin_trap();
}

// g++ 11 calls it for the least integer by -1 too.
[[noreturn]] void __ubsan_handle_divrem_overflow_abort(const Place* place, uint64_t, uint64_t divisor) {
  stop(Fault::kDivision, 0, divisor != 0, place->line, place->column);
}

// What follows the place: the types of what is shifted or converted, and of the result.
struct Type {
  uint16_t kind, shape;  // of an integer: from bit 1 the logarithm of its bits; of a float: its bits
};
struct TypedPlace {
  Place place;
  const Type *from, *to;
};
[[noreturn]] void __ubsan_handle_shift_out_of_bounds_abort(const TypedPlace* at, uint64_t, uint64_t count) {
  stop(Fault::kShift, 0, count, at->place.line, uint64_t{1} << (at->from->shape >> 1));
}
[[noreturn]] void __ubsan_handle_float_cast_overflow_abort(const TypedPlace* at, uint64_t value) {
  float narrow;
  std::memcpy(&narrow, &value, sizeof narrow);
  const double wide = narrow;
  if (at->from->shape == 32) std::memcpy(&value, &wide, sizeof value);
  stop(Fault::kConversion, 0, value, at->place.line, at->place.column);
}

// A GPU's compiler knows no alignment of a void*, and copies bytes one by one.
void* rl_memcpy(void* to, const void* from, uint64_t size, uint32_t site) {
  check_range(const_cast<void*>(from), size, 1, Operation::kLoad, site);
  check_range(to, size, 1, Operation::kStore, site);
  return __builtin_memmove(to, from, size);
}
void* rl_memset(void* to, int value, uint64_t size, uint32_t site) {
  check_range(to, size, 1, Operation::kStore, site);
  return __builtin_memset(to, value, size);
}

}  // extern "C"

namespace simt {

void check_range(void* pointer, uint64_t size, uint64_t widest, Operation operation, uint32_t site) {
  auto* at = static_cast<char*>(pointer);
  while (size > 0) {
    int log_size = 4;
    while ((uint64_t{1} << log_size) > (size < widest ? size : widest) ||
           (reinterpret_cast<uintptr_t>(at) & ((1 << log_size) - 1)) != 0)
      --log_size;
    check(at, log_size, operation, site);
    at += 1 << log_size;
    size -= uint64_t{1} << log_size;
  }
}

void refuse_access(uintptr_t address, uint64_t size, Operation operation, uint64_t site) {
  uint64_t counted = 0;
  const bool is_store = operation == Operation::kStore || operation == Operation::kAtomic;
  const Where where = find(address, size, is_store, counted);
  const Fault fault = where == Where::kNowhere    ? Fault::kOutOfBounds
                      : where == Where::kConstant ? Fault::kConstant
                                                  : Fault::kMisaligned;
  // Python knows the arrays by their offset, and nothing else of this process's addresses.
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(self.arena);
  const bool is_dynamic = address >= self.dynamic_begin && address < self.dynamic_end;
  const uint64_t place = offset < self.launch.arena_bytes ? offset
                         : is_dynamic                     ? uint64_t{1} << 62 | (address - self.dynamic_begin)
                                                          : uint64_t{1} << 63 | (address & ~(uint64_t{1} << 63));
  stop(fault, site, place, size, static_cast<uint64_t>(operation));
}

}  // namespace simt
