// How many CPUs this process may use.
#pragma once

#include <string>

namespace rooflab {

// CPUs that the scheduler lets this process run on, and no more than its control groups grant it time for; at least 1.
int usable_cpus();

// The CPUs' worth of time that the control groups in /proc/self/cgroup grant, rounded up; 0 where there is no limit.
// `root` stands before both /proc and /sys.
int cgroup_cpus(const std::string& root = "");

}  // namespace rooflab
