"""The system calls that student code may not make, as a filter for the kernel (seccomp, in classic BPF).

The worker of one question starts no programs, so it may start threads but no processes. The other refused calls reach
into other processes or into the kernel's keys and programs, make namespaces and mounts, take memory that no limit of a
process counts (memfd, SysV's shared memory, semaphores and messages, large buffers of sockets, maps that are anonymous
and shared or that grow like a stack), or go around the filter (io_uring). A refused call fails with EPERM, and clone3
with ENOSYS.
"""

from __future__ import annotations

import errno
import platform
import struct

# The numbers on x86-64 and on 64-bit Arm; -1 where there is no such call.
REFUSED = {
    "fork": (57, -1),
    "vfork": (58, -1),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kcmp": (312, 272),
    "process_madvise": (440, 440),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "personality": (135, 92),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "setsockopt": (54, 208),
}
# The GPU's driver may make such a call; a control group counts what it takes.
FOR_GPUS = frozenset(["memfd_create", "setsockopt"])
FOR_PROCESSES = frozenset(["fork", "vfork", "setsockopt"])  # a notebook's kernel talks over sockets
CLONE, CLONE3, MMAP = (56, 220), (435, 435), (9, 222)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, AUDIT_ARCH of linux/audit.h
CLONE_THREAD = 0x00010000
CLONE_NAMESPACES = 0x7E020000  # each CLONE_NEW... of linux/sched.h that clone takes
MAP_SHARED_ANONYMOUS, MAP_GROWSDOWN = 0x01 | 0x20, 0x100
X32 = 0x40000000  # numbers from here on are calls of x86-64's other ABI

# Operations of linux/bpf_common.h, places in struct seccomp_data, verdicts of linux/seccomp.h.
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _FOURTH_ARGUMENT = 0, 4, 16, 40
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000


def program(machine: str | None = None, gpus: bool = False, processes: bool = False) -> bytes:
    """The filter for this machine, or another ("x86_64", "aarch64"), as an array of `struct sock_filter`. With `gpus`
    it allows what their driver may need, and with `processes` that processes are started.

    Raises
    ------
    OSError
        The system calls of this processor are not listed here.
    """
    machine = machine or platform.machine()
    if machine not in MACHINES:
        raise OSError(f"the system calls of {machine} are not known")
    column, architecture = MACHINES[machine]
    allowed = (FOR_GPUS if gpus else frozenset()) | (FOR_PROCESSES if processes else frozenset())
    refused = [both[column] for name, both in REFUSED.items() if name not in allowed and both[column] >= 0]
    clone = [(_IF_ANY_BIT, 1, 0, CLONE_THREAD), (_RETURN, 0, 0, _FAIL | errno.EPERM)]
    if processes:
        clone = _unless(_IF_ANY_BIT, CLONE_NAMESPACES, _FAIL | errno.EPERM)
    mmap = [
        (_LOAD, 0, 0, _FOURTH_ARGUMENT),
        *_unless(_IF_ANY_BIT, MAP_GROWSDOWN, _FAIL | errno.EPERM),
        (_AND, 0, 0, MAP_SHARED_ANONYMOUS),
        *([] if gpus else _unless(_IF_EQUAL, MAP_SHARED_ANONYMOUS, _FAIL | errno.EPERM)),
        (_RETURN, 0, 0, _ALLOW),
    ]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        *_unless(_IF_AT_LEAST, X32, _FAIL | errno.EPERM),
        *_unless(_IF_EQUAL, CLONE3[column], _FAIL | errno.ENOSYS),  # its flags lie in memory; libraries then use clone
    ]
    for number in refused:
        lines += _unless(_IF_EQUAL, number, _FAIL | errno.EPERM)
    lines += [
        (_IF_EQUAL, 0, len(mmap), MMAP[column]),
        *mmap,
        (_IF_EQUAL, 1, 0, CLONE[column]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *clone,
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _unless(test: int, value: int, verdict: int) -> list[tuple[int, int, int, int]]:
    """Lines that end with this verdict if the test holds for the value, and go on otherwise."""
    return [(test, 0, 1, value), (_RETURN, 0, 0, verdict)]
