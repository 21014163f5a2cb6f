#include <mach/mach.h>
#include <sys/sysctl.h>

#include <algorithm>
#include <thread>

#include "core/platform/map_memory.h"
#include "core/platform/platform.h"

namespace rooflab::platform {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kForTheRest = int64_t{32} << 20;  // what the interpreter and the kernel's tables may grow by

// A number that the kernel knows by name; 0 where it does not. It has 4 or 8 bytes, the low ones first.
int64_t number_of(const char* name) {
  int64_t number = 0;
  size_t bytes = sizeof(number);
  return sysctlbyname(name, &number, &bytes, nullptr, 0) == 0 ? number : 0;
}

// Bytes of this process that are backed by memory or by the compressor, and not by a file.
int64_t written() {
  task_vm_info_data_t info{};
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  const auto result = task_info(mach_task_self(), TASK_VM_INFO, reinterpret_cast<task_info_t>(&info), &count);
  return result == KERN_SUCCESS ? static_cast<int64_t>(info.phys_footprint) : 0;
}

}  // namespace

// No process can be kept from a CPU.
int usable_cpus() {
  const auto active = static_cast<int>(number_of("hw.activecpu"));
  return active > 0 ? active : std::max<int>(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

// Apple's CPUs have no L3: the fast cores (level 0) share an L2, and the cache behind it is not told.
int64_t cache_bytes() {
  for (const char* name : {"hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize"})
    if (const int64_t bytes = number_of(name); bytes > 0) return bytes;
  return 0;
}

// Free pages, and those that have not been used for a while: they cache files, or the compressor takes them.
int64_t memory_left(int64_t reserved) {
  static const mach_port_t host = mach_host_self();  // each call counts one reference more
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const auto result = host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count);
  const int64_t left = result == KERN_SUCCESS ? (int64_t{pages.free_count} + pages.inactive_count) *
                                                    static_cast<int64_t>(vm_kernel_page_size)
                                              : number_of("hw.memsize");
  return left - std::max<int64_t>(reserved - written(), 0) - kForTheRest;
}

// The system chooses its pages itself.
void* take_memory(int64_t bytes) { return map_memory(bytes, kHugePage); }

void give_back_memory(void* data, int64_t bytes) { munmap(data, static_cast<size_t>(bytes)); }

}  // namespace rooflab::platform
