# SPDX-License-Identifier: BSD-2-Clause
"""stress-ng's stressors of memory, with its own verification on.

PROGRAMS_SECONDS is how long each runs, 3 without it.  What it finds on the bare kernel
isn't the library's.
"""

import os
import re

from program import Program
from session import Failed, found

GOOD, FAILURE = 0, 2


class Stress(Program):
    package = "stress-ng"
    options = ()
    touches = "served"

    def prepare(self):
        self.program = found("stress-ng", self.package)
        self.seconds = int(os.environ.get("PROGRAMS_SECONDS", "3"))

    def run(self, session):
        """What it complains about, in lines without numbers."""
        argv = [self.program, f"--{self.stressor}", "2", "--verify", *self.options]
        argv += ["--timeout", f"{self.seconds}s", "--temp-path", session.folder]
        process = session.start(argv, timed=True, env={"HOME": session.folder})
        status = process.wait(self.seconds + 120)
        said = process.said() + process.said(process.errors)
        if status not in (GOOD, FAILURE):
            raise Failed(process.why(status))
        if f"dispatching hogs: 2 {self.stressor}".encode() not in said:
            raise Failed(f"it doesn't say what it ran: {said[-500:]!r}")
        lines = re.findall(r"fail: *(.*)", said.decode("utf-8", "replace"))
        return {re.sub(r"0x[0-9a-f]+|\d+", "#", line) for line in lines}

    def compare(self, bare, said):
        if bare:
            print(f"{self.name}: on the bare kernel, too: {'; '.join(sorted(bare))}")
        if said - bare:
            raise Failed("\n".join(sorted(said - bare)))


class Mmap(Stress):
    name, stressor = "stress-mmap", "mmap"
    options = ("--mmap-bytes", "128M")


class Mremap(Stress):
    name, stressor = "stress-mremap", "mremap"
    options = ("--mremap-bytes", "64M")


class Mincore(Stress):
    name, stressor, touches = "stress-mincore", "mincore", "loaded"


class Madvise(Stress):
    name, stressor = "stress-madvise", "madvise"


class Fork(Stress):
    name, stressor, touches = "stress-fork", "fork", "loaded"


ALL = (Mmap, Mremap, Mincore, Madvise, Fork)
