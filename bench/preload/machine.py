# SPDX-License-Identifier: BSD-2-Clause
"""The machine's state while something is measured, and what is put back.

    guard()   for the whole measuring: a process of its own holds what
              /sys/kernel/mm/transparent_hugepage/enabled and nr_hugepages were.  It
              reads from a pipe, whose other end closes when this process ends, however
              that is, and puts both back then.
    state()   for one run: both as asked
    warm()    before one run: huge pages that are free and not the hypervisor's
"""

import contextlib
import datetime
import mmap
import os
import platform
import signal
import subprocess
import time

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
PAGES = "/proc/sys/vm/nr_hugepages"
MADV_POPULATE_WRITE = 23  # not in the mmap module


def text_of(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


def thp_now():
    """The word in brackets."""
    return text_of(THP).partition("[")[2].partition("]")[0]


def thp_settable():
    return bool(thp_now()) and os.access(THP, os.W_OK)


def pages_settable():
    return os.access(PAGES, os.W_OK)


def restore(thp, pages):
    if thp and thp_now() != thp:
        write(THP, thp)
    if pages and text_of(PAGES) != pages:
        write(PAGES, pages)


@contextlib.contextmanager
def guard():
    thp = thp_now() if thp_settable() else ""
    pages = text_of(PAGES) if pages_settable() else ""
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        guard_wait(ear, mouth, thp, pages)
    os.close(ear)
    try:
        yield
    finally:
        os.close(mouth)
        os.waitpid(child, 0)


def guard_wait(ear, mouth, thp, pages):
    """In a session of its own: what ends the others isn't for it."""
    status = 1
    try:
        os.setsid()
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        os.close(mouth)
        os.read(ear, 1)
        restore(thp, pages)
        status = 0
    finally:
        os._exit(status)


@contextlib.contextmanager
def state(thp, pages):
    if thp_settable() and thp_now() != thp:
        write(THP, thp)
    before = text_of(PAGES)
    if pages and pages_settable():
        write(PAGES, int(before) + pages)
    try:
        yield
    finally:
        if pages and pages_settable():
            write(PAGES, before)


def warm(mib):
    """As a context, so that it can stand before the run in one statement."""
    if mib:
        with mmap.mmap(-1, mib << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            with contextlib.suppress(OSError):
                memory.madvise(mmap.MADV_HUGEPAGE)
                memory.madvise(MADV_POPULATE_WRITE)
    return contextlib.nullcontext()


def commit():
    made = subprocess.run(
        ["git", "-C", os.path.dirname(os.path.abspath(__file__))]
        + ["rev-parse", "--short=12", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return made.stdout.strip()


def facts():
    model = ""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    now = datetime.datetime.fromtimestamp(time.time(), datetime.timezone.utc)
    return {
        "cpu": model or platform.machine(),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "hugepages": f"THP {thp_now() or 'none'}",
        "commit": commit(),
        "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
