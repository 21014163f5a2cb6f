"""Enter a jail from outside: join the namespaces of a process in it, and give up all privileges.

bubblewrap does this for a program that it starts. This is for a process that runs already, such as one that has
imported what it needs. It must have only one thread. As a script, in a jail that root has made, it leaves root and
becomes another command. The kernel's manual pages are namespaces(7), setns(2), capabilities(7) and seccomp(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import sys

# Joining "pid" affects only the children that are forked afterwards.
KINDS = ("cgroup", "ipc", "net", "uts", "pid", "mnt")
NS_GET_USERNS = 0xB701  # linux/nsfs.h
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 22, 24, 38
SECCOMP_MODE_FILTER = 2
LINUX_CAPABILITY_VERSION_3 = 0x20080522
TO_LEAVE_ROOT = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
FILTER_LINE_BYTES = 8  # of a struct sock_filter


@functools.cache
def _libc() -> ctypes.CDLL:
    """Linux's C library: this module is imported elsewhere too."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    return libc


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))  # struct sock_fprog


def enter(pid: int) -> None:
    """Join every namespace of a process that is not this process's own.

    Raises
    ------
    OSError
        The kernel refuses.
    """
    with contextlib.ExitStack() as held:

        def of(process: int | str, kind: str) -> int:
            return opened(os.open(f"/proc/{process}/ns/{kind}", os.O_RDONLY))

        def opened(fd: int) -> int:
            held.callback(os.close, fd)
            return fd

        user, *others = ((kind, of("self", kind), of(pid, kind)) for kind in ("user", *KINDS))
        # Privileges over the others come from the user namespace that owns them. The process may be in one below it.
        owner = opened(fcntl.ioctl(others[-1][2], NS_GET_USERNS))
        for kind, own, wanted in (("user", user[1], owner), *others, ("user", owner, user[2])):
            if not os.path.sameopenfile(own, wanted):
                _check(_libc().setns(wanted, 0), f"the {kind} namespace could not be joined")


def give_up_privileges(system_calls: bytes, user: int) -> None:
    """Be `user` and not root, keep no capability, gain none, and make only the system calls that this filter allows
    (`seccomp.program`).

    Raises
    ------
    OSError
        The kernel refuses. The process then has to end.
    """
    leave_root(user)
    _check(_libc().prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "/proc/self stayed closed")  # normally open
    _check(_libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "privileges may still be gained")
    program = _Program(len(system_calls) // FILTER_LINE_BYTES, system_calls)
    loaded = _libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0)
    _check(loaded, "the filter of system calls was not loaded")


def leave_root(user: int) -> None:
    """If this is root become `user`, and keep no capability, nor one that a program could get.

    Raises
    ------
    OSError
        The kernel refuses. The process then has to end.
    """
    capability = 0
    while _libc().prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    if ctypes.get_errno() != errno.EINVAL:  # the answer to the first number that is not a capability
        _check(-1, "capabilities could not be given up")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc().capset((ctypes.c_uint32 * 2)(LINUX_CAPABILITY_VERSION_3, 0), nothing), "capabilities stayed")


def _check(result: int, otherwise: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{otherwise}: {os.strerror(number)}")


if __name__ == "__main__":
    leave_root(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
