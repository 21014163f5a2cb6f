#include "core/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace rooflab {
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

}  // namespace

int cgroup_cpus(const std::string& root) {
  double least = 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_version_1 = !controllers.empty();
    if (is_version_1 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (is_version_1 ? "/" + controllers : "");
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

int usable_cpus() {
  const int granted = cgroup_cpus(), cpus = affinity_cpus();
  return granted > 0 ? std::min(granted, cpus) : cpus;
}

}  // namespace rooflab
