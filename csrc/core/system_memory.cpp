#include "core/system_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>

namespace rooflab::system_memory {
namespace {

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

int64_t left(int64_t reserved) {
  const int64_t kilobytes = read_number("/proc/meminfo", "MemAvailable: %" SCNd64, INT64_MAX / 1024);
  return std::min(kilobytes * 1024, left_in_groups()) - std::max<int64_t>(reserved - written(), 0) - kForTheRest;
}

void* take(int64_t bytes) {
  if (bytes > INT64_MAX - kHugePage) return nullptr;
  void* mapped =
      mmap(nullptr, static_cast<size_t>(bytes + kHugePage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  const auto below = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(begin) % kHugePage);
  char* const data = begin + below;
  if (below > 0) munmap(begin, static_cast<size_t>(below));
  munmap(data + bytes, static_cast<size_t>(kHugePage - below));
  madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return data;
}

void give_back(void* data, int64_t bytes) { munmap(data, static_cast<size_t>(bytes)); }

}  // namespace rooflab::system_memory
