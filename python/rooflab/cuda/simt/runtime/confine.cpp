// Takes the kernel's process all system calls that a kernel needs none of: it can neither open a file nor reach another
// process, whatever it makes this process do. The front end and the checks keep it from making it do anything; this is
// for what they miss.
#include "confine.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

namespace simt {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// Writing what is printed, waiting for the accountant, memory, the end of a signal's handler, and the end.
constexpr unsigned kAllowed[] = {
    __NR_write,  __NR_nanosleep, __NR_clock_nanosleep, __NR_restart_syscall, __NR_brk,  __NR_mmap,
    __NR_munmap, __NR_mremap,    __NR_madvise,         __NR_rt_sigreturn,    __NR_exit, __NR_exit_group,
};

constexpr unsigned kRefused = SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA);

sock_filter load(size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)); }

}  // namespace

void confine() {
  std::vector<sock_filter> lines = {
      load(offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      load(offsetof(seccomp_data, nr)),
  };
  for (unsigned number : kAllowed) {
    lines.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    lines.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  lines.push_back(BPF_STMT(BPF_RET | BPF_K, kRefused));
  const sock_fprog program = {static_cast<unsigned short>(lines.size()), lines.data()};
  // Where a kernel of Linux has no filters, such as an emulated one, the process goes on without.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

}  // namespace simt
