"""How much memory this machine has left, as far as the system tells."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

MEMORY_INFO = Path("/proc/meminfo")
"""Linux: what the kernel tells about memory, in KiB."""

CONTROL_GROUP = Path("/sys/fs/cgroup")
"""Linux: the limits of a container."""


def free_memory() -> int | None:
    """Return how many bytes a process can still take without swapping; None if unknown.

    On macOS this is all memory of the machine, which frees what other programs can do without.
    """
    with suppress(OSError, ValueError, AttributeError):
        if sys.platform == "win32":
            return _free_of_windows()
        if MEMORY_INFO.is_file():
            return _free_of_linux()
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_of_linux() -> int | None:
    """Return what the machine has available, or less if a container may not take as much."""
    lines = MEMORY_INFO.read_text().splitlines()
    available = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    bounds = [1024 * int(kib) for kib in available]
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):  # no container, or no limit: "max"
            most = int((CONTROL_GROUP / limit).read_text())
            bounds.append(most - int((CONTROL_GROUP / used).read_text()))
    return min(bounds) if bounds else None


def _free_of_windows() -> int:
    """Return `ullAvailPhys` of `GlobalMemoryStatusEx`."""

    class MemoryStatus(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("total", ctypes.c_uint64),
            ("available", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 5),
        ]

    status = MemoryStatus()
    status.length = ctypes.sizeof(status)
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    if not kernel.GlobalMemoryStatusEx(ctypes.byref(status)):
        raise OSError("GlobalMemoryStatusEx failed")
    return int(status.available)
