// Runs one launch of one kernel: runner KERNEL.so SYMBOL RING ARENA, the last two being open files.
#include "runner.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "confine.h"

namespace simt {

Runner self;

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  _exit(3);
}

uintptr_t symbol(void* library, const char* name) { return reinterpret_cast<uintptr_t>(dlsym(library, name)); }

// The segments of the kernel's library: what may be read, and what is its own to write.
int find_segments(dl_phdr_info* info, size_t, void* wanted) {
  if (!info->dlpi_name || std::strcmp(info->dlpi_name, static_cast<const char*>(wanted)) != 0) return 0;
  uintptr_t relocated = 0;
  self.text_begin = ~uintptr_t{0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr, end = begin + header.p_memsz;
    if (header.p_type == PT_GNU_RELRO) relocated = end;
    if (header.p_type != PT_LOAD) continue;
    if (header.p_flags & PF_W) {
      self.shared_begin = begin;
      self.shared_end = end;
    } else {
      if (begin < self.text_begin) self.text_begin = begin;
      if (end > self.text_end) self.text_end = end;
    }
  }
  if (relocated > self.shared_begin && relocated <= self.shared_end) self.shared_begin = relocated;
  return 1;
}

void load(const char* path, const char* name) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(dlerror());
  dl_iterate_phdr(find_segments, const_cast<char*>(path));
  self.kernel = reinterpret_cast<void (*)(void**)>(dlsym(library, name));
  if (!self.kernel || !self.shared_end) fail("the library has no such kernel");
  self.dynamic_begin = symbol(library, "rl_dynamic_shared");
  self.dynamic_end = self.dynamic_begin + (256 << 10);
  // __device__ and __constant__ variables lie in sections of their own.
  if (const auto* sections = reinterpret_cast<const uintptr_t*>(symbol(library, "rl_sections"))) {
    self.device_begin = sections[0];
    self.device_end = sections[1];
    self.constant_begin = sections[2];
    self.constant_end = sections[3];
  }
}

void* map_file(int file, size_t bytes) {
  void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (made == MAP_FAILED) fail("no memory");
  return made;
}

void take_launch() {
  self.launch = self.ring->launch;
  Launch& launch = self.launch;
  self.threads = launch.block[0] * launch.block[1] * launch.block[2];
  if (self.threads < 1 || self.threads > kMaxThreads || launch.buffers > kMaxBuffers ||
      launch.arguments > kMaxArguments)
    fail("the launch makes no sense");
  self.granules = static_cast<uint8_t*>(std::calloc(launch.arena_bytes / kGranule + 1, 1));
  if (!self.granules) fail("no memory");
  for (uint32_t i = 0; i < launch.buffers; ++i) {
    const Buffer& buffer = launch.buffer[i];
    if (buffer.bytes == 0) continue;
    if (buffer.begin + buffer.bytes > launch.arena_bytes) fail("the launch makes no sense");
    for (uint64_t g = buffer.begin / kGranule; g <= (buffer.begin + buffer.bytes - 1) / kGranule; ++g)
      self.granules[g] = static_cast<uint8_t>(i + 1);
  }
  for (uint32_t i = 0; i < launch.arguments; ++i) {
    const auto arena = reinterpret_cast<uint64_t>(self.arena);
    self.argument_words[i] = launch.argument[i] + (launch.is_pointer[i] == 1 ? arena : 0);
    self.arguments[i] = &self.argument_words[i];
  }
  self.stack_argument_bytes = launch.arguments > 6 ? 8 * launch.arguments : 0;
  self.is_counting = launch.mode == Mode::kCount;
}

void run() {
  const Launch& launch = self.launch;
  const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  uint64_t random = launch.seed;
  uint64_t step = 1, at = 0;  // a seeded order of blocks: a stride that has no factor in common with their number
  if (launch.schedule == Schedule::kSeeded && blocks > 1) {
    at = random % blocks;
    const auto common = [](uint64_t a, uint64_t b) {
      while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
      }
      return a;
    };
    step = 1 + random * 7919 % blocks;
    while (common(step, blocks) != 1) ++step;
  }
  for (uint64_t i = 0; i < blocks; ++i, at += step) {
    self.block = launch.schedule == Schedule::kReversed ? blocks - 1 - i : at % blocks;
    self.block_x = static_cast<uint32_t>(self.block % launch.grid[0]);
    self.block_y = static_cast<uint32_t>(self.block / launch.grid[0] % launch.grid[1]);
    self.block_z = static_cast<uint32_t>(self.block / launch.grid[0] / launch.grid[1]);
    self.is_recording = launch.mode != Mode::kFunctional &&
                        (launch.sampled == 0 || self.block * launch.sampled % blocks < launch.sampled);
    run_block();
    ++self.done;
  }
}

}  // namespace
}  // namespace simt

int main(int count, char** values) {
  using namespace simt;
  if (count != 5) return 2;
  self.ring = static_cast<Ring*>(map_file(std::atoi(values[3]), sizeof(Ring)));
  const uint64_t bytes = self.ring->launch.arena_bytes;
  self.arena = bytes ? static_cast<char*>(map_file(std::atoi(values[4]), bytes)) : nullptr;
  load(values[1], values[2]);
  take_launch();
  make_lanes();
  catch_signals();
  wait_for_room();
  confine();
  run();
  flush_printed();
  put(record(Kind::kEnd, 0));
  publish();
  return 0;
}
