# SPDX-License-Identifier: BSD-2-Clause
"""How long programs take under the preload library.

    /usr/bin/python3 bench/preload/measure.py --shim LIBRARY [OPTION ...] [NAME ...]

    --shim LIBRARY   libpcpalloc-preload.so
    --bench PROGRAM  pcpbench, for its workloads of mappings
    --compiler CC    for the programs that are built (cc)
    --runs N         so many in each way: 9
    --list           the names, and nothing else

The ways take turns, and the order in which they do changes from round to round:

    kernel   as it is, without huge pages unless the program asks for them
    always   the same with THP=always, which needs root; put back at the end, whatever
             that is (machine.py)
    preload  the library, with what is the default

and for some programs more, each a line of its own: `redis-populated`, `php-hugetlb`.
Before each run as much memory as it touches is made huge pages and freed: what was idle
for seconds may have to come from the hypervisor, at ten times the price.  One round more
comes first, and isn't counted.  What a run's time is, and what is checked, is
tests/programs' business.

A line of JSON for each name: medians and quartiles of wall and CPU time, ms, and for
each way that isn't `kernel` the ratio to that: the median of the rounds' own ratios and
its interval (interval()), above 1 is faster.  Names that are workloads of pcpbench have
ns a round instead, and no CPU time.

Exit status: 0; 1 for a program that fails, which ends it; 2 for a command line that
can't be.
"""

import argparse
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(ROOT, "tests", "programs"))

import catalog
import machine
from session import Absent, Failed, Session

WORKLOADS = (
    "fault4k", "fault64k", "fault2m", "fault128m", "map4k", "map2m", "map128m",
    "dontneed",
)  # fmt: skip
WAYS = ("kernel", "always", "preload")
ALLOCATORS = {"kernel": "system", "always": "system-huge", "preload": "preload"}

# More ways of some programs: name of the line, and what it sets.
MORE = {
    "redis": ("redis-populated", {"PCPA_PRELOAD_POPULATE": "128M"}),
    "php": ("php-hugetlb", {"PCPA_PRELOAD_HUGETLB": "1"}),
}
HUGETLB_PAGES = 128


# ---- Statistics ----


def interval(values):
    """The median's 95 % interval by order statistics: whatever the distribution, the
    median is between the k-th from either end as often as no k-1 of n coins agree."""
    values, n = sorted(values), len(values)
    low, outside = 0, 2 * 0.5**n
    while 2 * (low + 1) < n:
        outside += 2 * math.comb(n, low + 1) * 0.5**n
        if outside > 0.05:
            break
        low += 1
    return [values[low], values[n - 1 - low]]


def quartiles(values):
    if len(values) < 2:
        return [values[0]] * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def rounded(value):
    return float(f"{value:.5g}")


def spread(values):
    low, median, high = quartiles(values)
    return {"median": rounded(median), "p25": rounded(low), "p75": rounded(high)}


def ratio(base, values):
    ratios = [b / v for b, v in zip(base, values) if v > 0]
    if not ratios:
        return None
    low, high = interval(ratios)
    return {
        "median": rounded(statistics.median(ratios)),
        "low": rounded(low),
        "high": rounded(high),
    }


def line_of(name, unit, runs, taken):
    """taken: way: kind of time: a value a round."""
    ways = {}
    for way, kinds in taken.items():
        ways[way] = {kind: spread(values) for kind, values in kinds.items()}
        if way != "kernel":
            for kind, values in kinds.items():
                ways[way][kind]["ratio"] = ratio(taken["kernel"][kind], values)
    return {"preload": name, "unit": unit, "runs": runs, "ways": ways}


def say(line):
    print(json.dumps({**line, **machine.facts()}, separators=(",", ":")), flush=True)


# ---- Programs ----


class Timing:
    """A program in all of its ways."""

    def __init__(self, name, options, folder):
        self.name, self.options, self.folder = name, options, folder
        self.program = catalog.make(name, folder, options.compiler)
        self.taken = {}

    def ways(self):
        ways = [way for way in WAYS if way != "always" or machine.thp_settable()]
        more, environment = MORE.get(self.name, (None, {}))
        if more and not ("PCPA_PRELOAD_HUGETLB" in environment and not self.hugetlb()):
            ways.append(more)
        return ways

    def hugetlb(self):
        """Whether the library knows the word, and the machine lets us have pages."""
        with open(self.options.shim, "rb") as file:
            return b"HUGETLB" in file.read() and machine.pages_settable()

    def environment(self, way):
        if way in ("kernel", "always"):
            return {}
        more = MORE[self.name][1] if way not in WAYS else {}
        return {"LD_PRELOAD": self.options.shim, **more}

    def run(self, way, count):
        with machine.warm(self.program.warm_mib), machine.state(
            thp="always" if way == "always" else "madvise",
            pages=HUGETLB_PAGES if way.endswith("-hugetlb") else 0,
        ), Session(os.path.join(self.folder, "run"), self.environment(way)) as session:
            self.program.run(session)
        if count:
            kinds = self.taken.setdefault(way, {"wall": [], "cpu": []})
            kinds["wall"].append(1000 * session.wall)
            kinds["cpu"].append(1000 * session.cpu)

    def measure(self):
        self.program.make()
        ways = self.ways()
        for turn in range(self.options.runs + 1):
            at = turn % len(ways)
            for way in ways[at:] + ways[:at]:
                self.run(way, count=turn > 0)

    def lines(self):
        plain = {way: self.taken[way] for way in WAYS if way in self.taken}
        yield line_of(self.name, "ms", self.options.runs, plain)
        for way in self.taken:
            if way not in WAYS:
                some = {w: k for w, k in plain.items() if w != "preload"}
                some["preload"] = self.taken[way]
                yield line_of(way, "ms", self.options.runs, some)


def program_measure(name, options, folder):
    timing = Timing(name, options, folder)
    try:
        timing.measure()
    except Absent as why:
        say({"preload": name, "absent": str(why)})
        return
    for line in timing.lines():
        say(line)


# ---- Workloads ----


def workload_measure(name, options):
    with machine.state(thp="madvise", pages=0):
        made = subprocess.run(
            [options.bench, "--json", "--reps", str(max(options.runs, 21)), name],
            capture_output=True,
            text=True,
            check=False,
        )
    if made.returncode:
        raise Failed(f"pcpbench {name}: {made.stderr[-300:]}")
    cells = {}
    for text in made.stdout.splitlines():
        cell = json.loads(text)
        cells[cell.get("allocator")] = cell.get("values", [])
    taken = {
        way: {"wall": cells[allocator]}
        for way, allocator in ALLOCATORS.items()
        if cells.get(allocator)
    }
    if not {"kernel", "preload"} <= set(taken):
        raise Failed(f"pcpbench {name}: no result of {set(ALLOCATORS) - set(taken)}")
    runs = min(len(kinds["wall"]) for kinds in taken.values())
    say(line_of(name, "ns/round", runs, taken))


# ---- The command line ----


def options_read(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--shim")
    parser.add_argument("--bench")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {*WORKLOADS, *catalog.TIMED}
    if unknown:
        parser.error(f"no such name: {' '.join(sorted(unknown))}")
    if not options.list and not (options.shim and os.path.isfile(options.shim)):
        parser.error(f"no library: {options.shim}")
    if options.runs < 6:
        parser.error("fewer than 6 runs have no interval")
    return options


def all_measure(options, folder):
    shim = os.path.join(folder, os.path.basename(options.shim))
    shutil.copy(options.shim, shim)
    os.chmod(shim, 0o755)
    options.shim = shim
    for name in options.names or [*WORKLOADS, *catalog.TIMED]:
        if name in WORKLOADS:
            workload_measure(name, options)
        else:
            program_measure(name, options, folder)


def interrupted(number, _):
    sys.exit(128 + number)


def main(arguments):
    options = options_read(arguments)
    if options.list:
        print("\n".join((*WORKLOADS, *catalog.TIMED)))
        return 0
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    folder = tempfile.mkdtemp(prefix="pcpa-preload.")
    os.chmod(folder, 0o755)
    try:
        with machine.guard():
            all_measure(options, folder)
    except Failed as why:
        print(f"measure: {' '.join(str(why).split())}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
