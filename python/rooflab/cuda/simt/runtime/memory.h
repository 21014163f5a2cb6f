// Every access of a kernel comes here before it happens.
#pragma once

#include "runner.h"

namespace simt {

// Whether the bytes lie where frames keep what a return needs: a store there could send the thread anywhere.
inline bool touches_frame(const Lane& lane, uintptr_t address, uint64_t size) {
  for (uint32_t i = lane.depth; i-- > 0;) {
    const auto place = reinterpret_cast<uintptr_t>(lane.frames[i].place);
    if (address < place + 2 * sizeof(uintptr_t) && place < address + size) return true;
  }
  return false;
}

// Whether bytes lie within a range, even if they would go beyond the last address.
inline bool lie_within(uintptr_t address, uint64_t size, uintptr_t begin, uintptr_t end) {
  return address >= begin && address < end && size <= end - address;
}

enum class Where { kNowhere, kConstant, kUncounted, kGlobal, kShared };

// Classifies an address; `counted` becomes its place in its space.
inline Where find(uintptr_t address, uint64_t size, bool is_store, uint64_t& counted) {
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(self.arena);
  if (offset < self.launch.arena_bytes) {
    const uint8_t buffer = self.granules[offset / kGranule];
    counted = offset;
    if (!buffer) return Where::kNowhere;
    const Buffer& found = self.launch.buffer[buffer - 1];
    if (offset < found.begin || offset + size > found.begin + found.bytes) return Where::kNowhere;
    return is_store && !found.is_written ? Where::kConstant : Where::kGlobal;
  }
  if (lie_within(address, size, self.shared_begin, self.shared_end)) {
    if (address >= self.dynamic_begin && address < self.dynamic_end) {
      counted = address - self.dynamic_begin;
      return counted + size <= self.launch.shared_bytes ? Where::kShared : Where::kNowhere;
    }
    if (lie_within(address, size, self.constant_begin, self.constant_end))
      return is_store ? Where::kConstant : Where::kUncounted;
    if (lie_within(address, size, self.device_begin, self.device_end)) {
      counted = self.launch.arena_bytes + kGranule + (address - self.device_begin);
      return Where::kGlobal;
    }
    if (address + size > self.dynamic_begin && address < self.dynamic_begin) return Where::kNowhere;
    // Behind the dynamic array, which begins on a multiple of 256 bytes as every variable here may.
    counted = (self.dynamic_end - self.dynamic_begin) + (address - self.shared_begin);
    return Where::kShared;
  }
  // The thread's own stack. Frames' addresses are not to be read either, because they tell where code lies. On x86-64
  // what is above the kernel's frame is the runner's, but for arguments that are passed there; on others a function's
  // variables are above its frame's addresses.
  const Lane& mine = lane();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  auto top = reinterpret_cast<uintptr_t>(mine.stack + kStackBytes);
#ifdef __x86_64__
  if (mine.depth > 0)  // a functional launch keeps no frames
    top = reinterpret_cast<uintptr_t>(mine.frames[0].place + 2) + self.stack_argument_bytes;
#endif
  const auto bottom = reinterpret_cast<uintptr_t>(mine.stack);
  if (address >= here && address >= bottom && address + size <= top && address + size > address)
    return touches_frame(mine, address, size) ? Where::kNowhere : Where::kUncounted;
  if (!is_store && lie_within(address, size, self.text_begin, self.text_end)) return Where::kUncounted;
  return Where::kNowhere;
}

inline void check(void* pointer, int log_size, Operation operation, uint32_t site, bool is_special = false) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const uint64_t size = uint64_t{1} << log_size;
  uint64_t counted = 0;
  self.behind = site;
  const Where where = find(address, size, operation != Operation::kLoad, counted);
  if (__builtin_expect(where <= Where::kConstant || (address & (size - 1)) != 0, 0))
    refuse_access(address, size, operation, site);
  if (where == Where::kUncounted || !self.is_recording) return;
  if (__builtin_expect(--self.patience == 0, 0)) pause_if_tired();
  const Space space = where == Where::kGlobal ? Space::kGlobal : Space::kShared;
  put(access(space, operation, log_size, site, counted, is_special));
}

// Of any size, in pieces of at most `widest` bytes, as wide as its address and its size allow.
void check_range(void* pointer, uint64_t size, uint64_t widest, Operation operation, uint32_t site);

}  // namespace simt
