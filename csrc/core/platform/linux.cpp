#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "core/platform/map_memory.h"
#include "core/platform/platform.h"

namespace rooflab::platform {
namespace {

int affinity_cpus() {
  // The kernel rejects a set that is smaller than its own.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int count = set && sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max<int>(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

// Microseconds of CPU time per microsecond; 0 for no limit. Version 2 writes both numbers, or "max", into one file.
double limit_of(const std::string& group) {
  double quota = 0, period = 0;
  if (std::ifstream file(group + "/cpu.max"); file >> quota >> period && period > 0) return quota / period;
  std::ifstream quota_file(group + "/cpu.cfs_quota_us"), period_file(group + "/cpu.cfs_period_us");
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) return quota / period;
  return 0;
}

// How many CPUs' worth of time the control groups grant, rounded up; 0 where there is no limit.
int cgroup_cpus() {
  double least = 0;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_version_1 = !controllers.empty();
    if (is_version_1 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string mount = std::string("/sys/fs/cgroup") + (is_version_1 ? "/" + controllers : "");
    // Parent groups have limits as well. Inside a container only the innermost group may be visible.
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      if (path == "/") path.clear();
      const double limit = limit_of(mount + path);
      if (limit > 0 && (least == 0 || limit < least)) least = limit;
      if (path.empty()) break;
    }
  }
  return static_cast<int>(least + 0.999);
}

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kForTheRest = int64_t{32} << 20;  // what the interpreter and the kernel's tables may grow by

// Calls see(line) for each line; a missing file has no lines.
template <class See>
void read_lines(const std::string& path, See&& see) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return;
  for (char line[4096]; std::fgets(line, sizeof line, file);) see(line);
  std::fclose(file);
}

// The number in the line that `format` describes, or `otherwise` if there is no such line ("max" is not a number).
int64_t read_number(const std::string& path, const char* format, int64_t otherwise) {
  int64_t number = otherwise;
  read_lines(path, [&](const char* line) { std::sscanf(line, format, &number); });
  return number;
}

struct GroupFiles {
  const char *limit, *usage, *droppable;  // the last is a line of memory.stat
};
constexpr GroupFiles kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file %" SCNd64};
constexpr GroupFiles kVersion2{"/memory.max", "/memory.current", "inactive_file %" SCNd64};

// Every group up to the root may set a limit. A container may see its own group as the root, under a path that exists
// only outside; groups that do not exist here are skipped.
int64_t left_in_groups(const std::string& root, std::string path, const GroupFiles& files) {
  int64_t left = INT64_MAX;
  while (true) {
    const std::string group = root + path;
    const int64_t limit = read_number(group + files.limit, "%" SCNd64, INT64_MAX);
    if (limit < INT64_MAX / 2) {
      const int64_t used = read_number(group + files.usage, "%" SCNd64, 0);
      const int64_t droppable = read_number(group + "/memory.stat", files.droppable, 0);  // pages that cache files
      left = std::min(left, limit - used + droppable);
    }
    if (path.empty()) return left;
    path.resize(path.rfind('/'));
  }
}

int64_t left_in_groups() {
  int64_t left = INT64_MAX;
  read_lines("/proc/self/cgroup", [&](std::string line) {  // number:controllers:path
    line.resize(line.find_last_not_of('\n') + 1);
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) return;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers == ",,") left = std::min(left, left_in_groups("/sys/fs/cgroup", path, kVersion2));
    if (controllers.find(",memory,") != controllers.npos)
      left = std::min(left, left_in_groups("/sys/fs/cgroup/memory", path, kVersion1));
  });
  return left;
}

// Bytes of this process that are backed by memory and not by a file.
int64_t written() {
  int64_t resident = 0, shared = 0;
  read_lines("/proc/self/statm",
             [&](const char* line) { std::sscanf(line, "%*d %" SCNd64 " %" SCNd64, &resident, &shared); });
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

}  // namespace

int usable_cpus() {
  const int granted = cgroup_cpus(), cpus = affinity_cpus();
  return granted > 0 ? std::min(granted, cpus) : cpus;
}

int64_t cache_bytes() { return sysconf(_SC_LEVEL3_CACHE_SIZE); }

int64_t memory_left(int64_t reserved) {
  const int64_t kilobytes = read_number("/proc/meminfo", "MemAvailable: %" SCNd64, INT64_MAX / 1024);
  return std::min(kilobytes * 1024, left_in_groups()) - std::max<int64_t>(reserved - written(), 0) - kForTheRest;
}

void* take_memory(int64_t bytes) {
  char* const data = map_memory(bytes, kHugePage);
  if (data) madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return data;
}

void give_back_memory(void* data, int64_t bytes) { munmap(data, static_cast<size_t>(bytes)); }

}  // namespace rooflab::platform
