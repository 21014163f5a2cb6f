"""The filter of system calls, run by a small interpreter of its instructions, for each processor."""

import pytest

from rooflab.grading.jail import seccomp

EPERM, ENOSYS = 1, 38


def interpreted(program, machine, number, argument):
    """What the kernel would answer, by a small interpreter of the filter's instructions."""
    memory = {0: number, 4: seccomp.MACHINES[machine][1], 16: argument, 40: argument}
    lines = [program[at : at + 8] for at in range(0, len(program), 8)]
    place = loaded = 0
    while True:
        code, yes, no = int.from_bytes(lines[place][:2], "little"), lines[place][2], lines[place][3]
        value = int.from_bytes(lines[place][4:], "little")
        place += 1
        if code == 0x06:
            return value
        if code == 0x20:
            loaded = memory[value]
        elif code == 0x54:
            loaded &= value
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            place += yes if holds else no


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_on_each_processor(machine):
    program, column = seccomp.program(machine), seccomp.MACHINES[machine][0]
    allowed, refused, absent = 0x7FFF0000, 0x50000 + EPERM, 0x50000 + ENOSYS
    listed = {both[column] for both in seccomp.REFUSED.values()} - {-1}
    special = {seccomp.CLONE[column], seccomp.CLONE3[column], seccomp.MMAP[column]}
    for number in range(600):
        if number not in special:
            assert interpreted(program, machine, number, 0) == (refused if number in listed else allowed), number
    assert interpreted(program, machine, seccomp.CLONE[column], 0x3D0F00) == allowed, "a thread, as libc starts it"
    assert interpreted(program, machine, seccomp.CLONE[column], 17) == refused, "a process, as libc forks it"
    assert interpreted(program, machine, seccomp.CLONE3[column], 0) == absent
    assert interpreted(program, machine, 0x40000000, 0) == refused, "the other ABI of x86-64"


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_maps_that_no_limit_counts(machine):
    mmap = seccomp.MMAP[seccomp.MACHINES[machine][0]]
    allowed, refused = 0x7FFF0000, 0x50000 | EPERM
    expected = {0x22: allowed, 0x20022: allowed, 0x01: allowed, 0x02: allowed, 0x21: refused, 0x122: refused}
    for flags, verdict in expected.items():
        assert interpreted(seccomp.program(machine), machine, mmap, flags) == verdict, hex(flags)
    assert interpreted(seccomp.program(machine, gpus=True), machine, mmap, 0x21) == allowed


def test_drivers_of_gpus_may_take_files_in_memory():
    number = seccomp.REFUSED["memfd_create"][0]
    assert interpreted(seccomp.program("x86_64", gpus=True), "x86_64", number, 0) == 0x7FFF0000
    assert interpreted(seccomp.program("x86_64", gpus=True), "x86_64", seccomp.REFUSED["ptrace"][0], 0) != 0x7FFF0000


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_processes_and_no_namespaces_where_a_notebook_runs(machine):
    program, clone = seccomp.program(machine, processes=True), seccomp.CLONE[seccomp.MACHINES[machine][0]]
    assert interpreted(program, machine, clone, 17) == 0x7FFF0000, "a process, as libc forks it"
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert interpreted(program, machine, clone, bit | 17) == 0x50000 | EPERM, hex(bit)


def test_numbers_of_calls_agree_as_far_as_they_can():
    assert {name for name, both in seccomp.REFUSED.items() if -1 in both} == {"fork", "vfork"}, "Arm has but clone"
    since_5_1 = [both for both in seccomp.REFUSED.values() if max(both) >= 403]
    assert len(since_5_1) > 12 and all(x86 == arm for x86, arm in since_5_1), "one number everywhere since Linux 5.1"


def test_another_processors_program_is_killed():
    program = bytearray(seccomp.program("x86_64"))
    wrong = program[12:16]
    assert int.from_bytes(wrong, "little") == 0xC000003E
    program[12:16] = (0xC00000B7).to_bytes(4, "little")
    assert interpreted(bytes(program), "x86_64", 0, 0) == 0x80000000


def test_an_unknown_processor():
    with pytest.raises(OSError, match="the system calls of riscv64 are not known"):
        seccomp.program("riscv64")
