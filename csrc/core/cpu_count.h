// How many CPUs this process may use.
#pragma once

#include <string>

namespace rooflab {

// The CPUs that the scheduler lets this process run on, at most as many as its control groups grant time for; at least
// 1.
int usable_cpus();

// How many CPUs' worth of time the control groups in /proc/self/cgroup grant, rounded up; 0 where there is no limit.
// `root` is put before both /proc and /sys.
int cgroup_cpus(const std::string& root = "");

}  // namespace rooflab
