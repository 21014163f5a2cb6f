#include "kernels/common/scratch.h"

#include <cstdlib>

#include "core/error.h"

namespace rooflab::kernels {
namespace {

struct Scratch {
  void* data = nullptr;
  int64_t size = 0;
  ~Scratch() { std::free(data); }
};

}  // namespace

void* cpu_scratch(int64_t bytes) {
  thread_local Scratch scratch;
  if (scratch.size < bytes) {
    std::free(scratch.data);
    scratch.size = 0;
    const int64_t size = (bytes + 4095) / 4096 * 4096;
    scratch.data = std::aligned_alloc(4096, static_cast<size_t>(size));
    if (!scratch.data)
      throw OutOfMemory(message("[scratch] no memory for ", size, " bytes that a CPU kernel works in"));
    scratch.size = size;
  }
  return scratch.data;
}

}  // namespace rooflab::kernels
