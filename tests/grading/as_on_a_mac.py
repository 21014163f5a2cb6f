"""Makes a Python on Linux lack what macOS lacks; `test_mac` has it imported at the start of each interpreter."""

import ctypes
import os
import platform
import sys
import sysconfig
import urllib.request  # noqa: F401  it and the next would look for parts of a Mac

import send2trash  # noqa: F401

LINUX_CALLS = ("prctl", "unshare", "setns", "capset", "syscall")
LINUX_OS = ("sched_getaffinity", "sched_setaffinity", "memfd_create", "pidfd_open", "unshare", "setns")


def _refuse(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(("/proc", "/sys/")):
        raise PermissionError(2, "No such file or directory", arguments[0])  # pathlib passes over folders with this one


def _lookup(library, name):
    if name in LINUX_CALLS:
        raise AttributeError(f"dlsym: symbol not found: {name}")
    return _given(library, name)


sysconfig.get_config_vars()  # it would look for a Mac's
for _name in LINUX_OS:
    if hasattr(os, _name):
        delattr(os, _name)
_given, ctypes.CDLL.__getattr__ = ctypes.CDLL.__getattr__, _lookup
sys.addaudithook(_refuse)
sys.platform = "darwin"
platform.mac_ver = lambda: ("10.8", ("", "", ""), "arm64")  # ipykernel needs no part of a Mac for one so old
