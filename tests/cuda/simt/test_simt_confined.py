"""What the process of a kernel can do to others, and how much it can say and take."""

import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import rooflab as rl
from rooflab.cuda.simt import toolchain

# Tries what a kernel would if it could make its process do anything at all.
CONFINED = r"""
#include "confine.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

void tell(const char* what, long result) {
  std::printf("%s %s\n", what, result < 0 && errno == EPERM ? "refused" : "done");
}

int main(int, char** values) {
  char memory[64] = "/proc/self/mem";
  simt::confine();
  tell("open", open(values[0], O_RDONLY));
  tell("openat2", syscall(437, AT_FDCWD, values[0], nullptr, 0));
  tell("memory", open(memory, O_RDWR));
  iovec piece = {memory, 8};
  tell("write_other", process_vm_writev(getppid() < 0 ? 1 : 1, &piece, 1, &piece, 1, 0));
  tell("kill", kill(1, 0));
  tell("tgkill", syscall(SYS_tgkill, 1, 1, 0));
  tell("socket", socket(AF_INET, SOCK_STREAM, 0));
  tell("fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  tell("execve", execl("/bin/true", "true", nullptr));
  tell("ptrace", syscall(SYS_ptrace, 0, 0, 0, 0));
  tell("truncate", ftruncate(1, 0));
  tell("seek", lseek(0, 0, SEEK_SET));
  tell("unlink", unlink(values[0]));
  tell("mprotect", mprotect(memory, 1, PROT_READ));
  const timespec pause = {0, 1};
  tell("nanosleep", nanosleep(&pause, nullptr));
  tell("malloc", std::malloc(1 << 26) ? 0 : -1);
  return 0;
}
"""
GRANTED = {"nanosleep", "malloc"}


def test_a_confined_process_reaches_nothing(tmp_path):
    source, program = tmp_path / "tries.cpp", tmp_path / "tries"
    source.write_text(CONFINED, encoding="utf-8")
    sources = [source, toolchain.RUNTIME / "confine.cpp"]
    subprocess.run([toolchain.compiler(), *sources, f"-I{toolchain.RUNTIME}", "-o", program], check=True)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    found = dict(line.split() for line in said.splitlines())
    assert len(found) == 16 and program.exists()
    assert {what for what, how in found.items() if how == "done"} == GRANTED


def runners():
    """The status files of this process's children that run a kernel."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text(encoding="ascii").split():
            if Path(f"/proc/{pid}/comm").read_text(encoding="ascii").startswith("runner"):
                yield Path(f"/proc/{pid}/status")


def test_a_kernels_process_is_confined_while_it_runs(run):
    spins = "__global__ void f(int* x) { while (x[0] == 0); }"
    rl.cuda.compile(spins, backend="simt")
    with ThreadPoolExecutor() as pool:
        launch = pool.submit(run, spins, 1, 1, np.zeros(1, "i4"), seconds=2)
        while not (found := list(runners())):
            time.sleep(0.01)
        time.sleep(0.5)
        lines = found[0].read_text(encoding="ascii").splitlines()
        assert launch.result().findings[0].kind == "endless"
    assert [line for line in lines if line.startswith("Seccomp:")] == ["Seccomp:\t2"]


def test_what_is_printed_has_an_end(run, capsys):
    y = np.zeros(1, np.float32)
    launch = run('__global__ void f(float* y) { while (y[0] == 0) printf("%99999999d|", 5); }', 1, 1, y, seconds=2)
    said = capsys.readouterr().out
    assert launch.findings[0].kind == "endless" and len(said) == 1 << 20
    assert said.split("|")[0] == f"{5:99}"


def test_what_was_printed_before_a_fault_is_not_lost(run, capsys):
    run('__global__ void f(float* y) { printf("at %d", 3); y[1] = 1; }', 1, 1, np.zeros(1, np.float32))
    assert capsys.readouterr().out == "at 3"


def test_a_compiler_that_does_not_end_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(toolchain, "_SECONDS", 1.0)
    grows = """
    template <int n, int m> struct A { static constexpr long v = A<n - 1, 2 * m>::v + A<n - 1, 2 * m + 1>::v; };
    template <int m> struct A<0, m> { static constexpr long v = m; };
    __global__ void f(long* y) { y[0] = A<22, 1>::v; }
    """
    started = tempfile.gettempdir().encode()
    start = time.monotonic()
    with pytest.raises(rl.cuda.CompileError, match="the compiler was not done after 1 s"):
        rl.cuda.compile(grows, backend="simt")
    assert time.monotonic() - start < 10
    left = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [line for line in left if b"cc1plus" in line and started in line]
