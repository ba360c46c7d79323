# SPDX-License-Identifier: BSD-2-Clause
"""Reads a run's folder: results.jsonl, one JSON object a line, and steps.tsv.

Knows the kinds of lines there are and what each must have.  A line that can't
be used is kept as a message that names file and line; the others count.
"""

import json
import math
import os

import words

FACTS = (
    "cpu",
    "cpus",
    "kernel",
    "hugepages",
    "governor",
    "commit",
    "version",
    "date",
)


class BadLine(Exception):
    pass


class Results:
    def __init__(self):
        self.cells = {}  # (workload, allocator): line
        self.workloads = []  # in the order in which they were measured
        self.allocators = []
        self.missing = {}  # allocator: line
        self.experiments = {}  # name: lines
        self.replay = None
        self.preload = []  # lines
        self.facts = {}  # name: the different values found
        self.bad = []  # messages
        self.steps = []  # (name, status, seconds, message)
        self.complete = False

    def of(self, workload):
        """The cells of a workload, in the order of the allocators."""
        return [
            self.cells[workload, a]
            for a in self.allocators
            if (workload, a) in self.cells
        ]


def is_number(value):
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def text_of(line, key):
    if not isinstance(line.get(key), str) or not line[key]:
        raise BadLine(f'"{key}" is no text: {json.dumps(line.get(key))}')
    return line[key]


def number_of(line, key):
    if not is_number(line.get(key)):
        raise BadLine(f'"{key}" is no number: {json.dumps(line.get(key))}')
    return line[key]


def side_check(line, key):
    """Latencies of one kind of call: percentiles, and a curve if there is one."""
    side = line[key]
    if not isinstance(side, dict):
        raise BadLine(f'"{key}" is no object: {json.dumps(side)}')
    for name, value in side.items():
        if name != "curve" and not is_number(value):
            raise BadLine(f'"{key}": "{name}" is no number: {json.dumps(value)}')
    for point in side.get("curve", []):
        if not (
            isinstance(point, list) and len(point) == 2 and all(map(is_number, point))
        ):
            raise BadLine(f'"{key}": no point of a curve: {json.dumps(point)}')


def cell_add(r, line):
    key = text_of(line, "workload"), text_of(line, "allocator")
    text_of(line, "unit")
    number_of(line, "median")
    for name in ("min", "p25", "p75", "p99", "reps", "discarded", "disturbed"):
        if name in line:
            number_of(line, name)
    for name in ("alloc", "free"):
        if name in line:
            side_check(line, name)
    if not isinstance(line.get("ratio_to", {}), dict):
        raise BadLine('"ratio_to" is no object')
    if key[0] not in r.workloads:
        r.workloads.append(key[0])
    if key[1] not in r.allocators:
        r.allocators.append(key[1])
    r.cells[key] = line


def replay_add(r, line):
    replay = line["replay"]
    if not isinstance(replay, dict) or not isinstance(replay.get("backends"), list):
        raise BadLine('"replay" has no "backends"')
    for backend in replay["backends"]:
        if not isinstance(backend, dict):
            raise BadLine(f"no object: {json.dumps(backend)}")
        text_of(backend, "backend")
        for key in ("mpps", "ns_per_packet"):
            number_of(backend, key)
    r.replay = replay


def experiment_add(r, line):
    r.experiments.setdefault(text_of(line, "experiment"), []).append(line)


def preload_add(r, line):
    """A program that is absent, or what it took in each way."""
    text_of(line, "preload")
    if "absent" in line:
        text_of(line, "absent")
        r.preload.append(line)
        return
    text_of(line, "unit")
    ways = line.get("ways")
    if not isinstance(ways, dict) or not {"kernel", "preload"} <= set(ways):
        raise BadLine('"ways" has no "kernel" and "preload"')
    for way, kinds in ways.items():
        if not isinstance(kinds, dict) or "wall" not in kinds:
            raise BadLine(f'"{way}" has no "wall"')
        for kind, times in kinds.items():
            if not isinstance(times, dict):
                raise BadLine(f'"{way}": "{kind}" is no object: {json.dumps(times)}')
            number_of(times, "median")
            if times.get("ratio") is not None:
                for key in ("median", "low", "high"):
                    number_of(times["ratio"], key)
    r.preload.append(line)


def missing_add(r, line):
    r.missing[text_of(line, "missing")] = line


KINDS = {
    "workload": cell_add,
    "experiment": experiment_add,
    "missing": missing_add,
    "replay": replay_add,
    "preload": preload_add,
}


def constant_refuse(name):
    raise BadLine(f"{name} is no number of JSON")


def line_add(r, text):
    try:
        line = json.loads(text, parse_constant=constant_refuse)
    except ValueError as error:
        raise BadLine(f"not JSON: {error}") from None
    if not isinstance(line, dict):
        raise BadLine("not a JSON object")
    kinds = [kind for kind in KINDS if line.get(kind) is not None]
    if len(kinds) != 1:
        raise BadLine("must have exactly one of " + ", ".join(KINDS))
    KINDS[kinds[0]](r, line)
    for fact in FACTS:
        if line.get(fact) not in (None, ""):
            values = r.facts.setdefault(fact, [])
            if line[fact] not in values:
                values.append(line[fact])


def lines_read(r, path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            for number, text in enumerate(f, 1):
                if not text.strip():
                    continue
                try:
                    line_add(r, text)
                except BadLine as error:
                    r.bad.append(f"{os.path.basename(path)}:{number}: {error}")
    except OSError as error:
        r.bad.append(f"{path}: {error.strerror}")


def steps_read(r, path):
    """Name, status, seconds and message, tabs between; `run complete` at the end."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            for text in f:
                field = text.rstrip("\n").split("\t") + ["", "", ""]
                if field[:2] == ["run", "complete"]:
                    r.complete = True
                elif field[0] != "run":
                    r.steps.append(tuple(field[:4]))
    except OSError:
        r.complete = True  # lines of pcpbench alone, without bench/run


def read(folder):
    r = Results()
    lines_read(r, os.path.join(folder, "results.jsonl"))
    steps_read(r, os.path.join(folder, "steps.tsv"))
    r.allocators = words.ordered(r.allocators)
    return r
