// What the runner, which executes a kernel, tells the accountant, which adds it up: 64-bit records in a ring of shared
// memory. The kernel's process never holds a total, so there is none that it could change.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace simt {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;
constexpr int kMaxArguments = 64;
constexpr int kMaxBuffers = 255;
constexpr uint64_t kRingRecords = 1 << 18;

constexpr uint64_t kGranule = 256;  // bytes of the arena, which belong to one buffer

// A record of an access, from the lowest bit: address (34), site (21), size as a power of two (3), operation (2),
// space (1), whether it is volatile or an atomic compare-and-swap (1), and 0 as the highest bit. A site is the number
// of a place in the kernel's assembly, in its order.
enum class Space : uint64_t { kGlobal, kShared };
enum class Operation : uint64_t { kLoad, kStore, kAtomic, kUnknown };  // the last one in findings only

// Other records have 1 as the highest bit, then their kind (7 bits) and a value (56 bits).
enum class Kind : uint64_t {
  kBlock,       // a block begins; value: its number
  kLane,        // what follows was done by this thread of the block
  kBasicBlock,  // the thread enters a basic block; value: site
  kWarpSync,  // it takes part in a warp's operation; value: site, and from bit 21 the lanes that it orders memory with
  kBarrier,   // it waits for the block; value: site
  kExit,      // it has ended
  kWarpPaused,  // no thread of the warp (the value) goes on before others have done more
  kRelease,     // all threads of the block have arrived
  kBlockEnd,
  kLine,     // value: site, and from bit 32 the line of the source that the site belongs to
  kFinding,  // kFindingWords more words follow
  kEnd,      // the launch is over
};

constexpr uint64_t record(Kind kind, uint64_t value) {
  return uint64_t{1} << 63 | static_cast<uint64_t>(kind) << 56 | value;
}
constexpr bool is_access(uint64_t word) { return word >> 63 == 0; }
constexpr Kind kind_of(uint64_t word) { return static_cast<Kind>(word >> 56 & 127); }
constexpr uint64_t value_of(uint64_t word) { return word & ((uint64_t{1} << 56) - 1); }

constexpr int kSiteBits = 21;
constexpr uint64_t kMaxSites = uint64_t{1} << kSiteBits;
constexpr uint64_t access(Space space, Operation operation, int log_size, uint64_t site, uint64_t address,
                          bool is_special) {
  return static_cast<uint64_t>(is_special) << 62 | static_cast<uint64_t>(space) << 61 |
         static_cast<uint64_t>(operation) << 59 | static_cast<uint64_t>(log_size) << 56 | site << 34 | address;
}
constexpr uint64_t address_of(uint64_t word) { return word & ((uint64_t{1} << 34) - 1); }
constexpr int log_size_of(uint64_t word) { return static_cast<int>(word >> 56 & 7); }
constexpr Operation operation_of(uint64_t word) { return static_cast<Operation>(word >> 59 & 3); }
constexpr Space space_of(uint64_t word) { return static_cast<Space>(word >> 61 & 1); }
constexpr bool is_volatile(uint64_t word) { return operation_of(word) != Operation::kAtomic && word >> 62 & 1; }
constexpr bool is_swap(uint64_t word) { return operation_of(word) == Operation::kAtomic && word >> 62 & 1; }
// Where in the kernel an access or a record of a thread stands.
constexpr uint32_t site_of(uint64_t word) {
  return static_cast<uint32_t>((is_access(word) ? word >> 34 : word) & (kMaxSites - 1));
}

// Words of a finding: what (Fault), block, thread, site, and three whose meaning depends on what was found.
constexpr int kFindingWords = 7;
enum class Fault : uint64_t {
  kOutOfBounds,    // address, size, operation
  kMisaligned,     // address, size, operation
  kArrayIndex,     // index, line, column
  kMissedBarrier,  // threads that have ended, threads that wait, 0
  kMixedBarriers,  // site of another barrier, thread there, 0
  kMissedWarp,     // mask, lanes that do not come; 1: they went past and ended, 2: they are in another operation
  kStackOverflow,
  kStackBroken,    // a return address was overwritten
  kCrash,          // signal
  kEndless,        // blocks that were done
  kAssertion,      // line
  kDivision,       // of an integer by zero; 1 where it may be the least integer by -1; line, column
  kNoValue,        // a function that returns a value ended without one; 0, line, column
  kRace,           // site of the other side, thread there, address (from the accountant)
  kUninitialised,  // address, size, 0 (from the accountant)
  kConstant,       // address, size, operation: a store through what was a pointer to const, or to a __constant__
  kCorrupt,        // the records make no sense (from the accountant)
  kShift,          // by a number of bits that the type has not; the number, line, the type's bits
  kConversion,     // of a float to an integer type that cannot hold it; its bits as a double, line, column
  kTrap,           // line
  kOutsideMask,    // a shuffle from a lane that gives nothing; the mask, that lane
  kWidth,          // of a shuffle, no power of two up to 32
  kGlobalRace,     // site of the other side, thread there and from bit 10 its block, address (from the accountant)
};

enum class Mode : uint32_t { kFunctional, kCheck, kCount };
enum class Schedule : uint32_t { kInOrder, kReversed, kSeeded };

// Begins the file of the ring; written by Python before both programs start.
struct Buffer {
  uint64_t begin, bytes;  // in the arena
  uint64_t is_written;    // 0: each parameter that points here points to const
};
struct Launch {
  uint32_t grid[3], block[3];
  uint32_t shared_bytes, sampled;  // sampled: how many blocks are recorded, 0 for all
  Mode mode;
  Schedule schedule;
  uint64_t seed;
  uint64_t arena_bytes;
  uint32_t buffers, arguments;
  uint64_t sites;  // of the kernel
  Buffer buffer[kMaxBuffers];
  uint64_t argument[kMaxArguments];   // numbers; offsets in the arena where is_pointer
  uint8_t is_pointer[kMaxArguments];  // 2: a null pointer
};
struct Ring {
  Launch launch;
  alignas(64) std::atomic<uint64_t> written;  // by the runner
  alignas(64) std::atomic<uint64_t> read;     // by the accountant
  alignas(64) std::atomic<uint32_t> closed;   // by Python, once the runner has ended
  alignas(4096) uint64_t records[kRingRecords];
};

}  // namespace simt
