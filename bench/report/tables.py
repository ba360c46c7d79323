# SPDX-License-Identifier: BSD-2-Clause
"""The tables of a report, as rows of plain text: for the page and for a terminal.

A table is (heads, rows); a row is a list of cells, a cell a text or, in the
summary, a Mark.
"""

from collections import namedtuple

import results
import words

# ratio: to pcpalloc, as text.  kind: best, ahead (of pcpalloc, by more than the
# spread), reference, or "".
SUMMARY_COLUMNS = 12

Mark = namedtuple("Mark", "median ratio spread kind")


def spread(cell):
    """Half of the distance of the quartiles, in per cent of the median."""
    low, high = words.quartiles(cell)
    if "p25" not in cell or not cell["median"]:
        return ""
    return f"±{50 * (high - low) / abs(cell['median']):.0f} %"


def ratio_text(cell, base):
    value = words.ratio(cell, base)
    return "-" if value is None else f"×{words.short(value)}"


def mark(cell, base, best):
    kind = ""
    if cell["allocator"] in words.REFERENCES:
        kind = "reference"
    elif cell is best:
        kind = "best"
    elif not words.is_own(cell["allocator"]) and words.better(cell, base):
        kind = "ahead"
    return Mark(
        words.short(cell["median"]), ratio_text(cell, base), spread(cell), kind
    )


def summary_parts(r):
    """The allocators in tables that fit a page: those of pages and what none can beat,
    and the general ones beside pcpalloc."""
    pages = [n for n in r.allocators if not words.is_general(n)]
    general = [n for n in r.allocators if words.is_general(n)]
    if len(r.allocators) <= SUMMARY_COLUMNS or not general or not pages:
        return [r.allocators]
    return [pages, [n for n in r.allocators if n == words.OWN] + general]


def summary(r, names=None):
    """A row a workload, a column an allocator."""
    names = names or r.allocators
    rows = []
    for workload in r.workloads:
        cells = r.of(workload)
        base, best = words.base_of(cells), words.best(cells)
        found = {c["allocator"]: mark(c, base, best) for c in cells}
        unit = words.unit_text(cells[0])
        rows.append([(workload, unit)] + [found.get(name) for name in names])
    return ["workload"] + names, rows


def workload(cells):
    """All figures of one workload, the best first."""
    base = words.base_of(cells)
    least = words.lower_is_better(cells[0])
    heads = [
        "allocator", "median", "min", "p25", "p75", "p99",
        f"× {base['allocator']}", "repetitions", "discarded", "disturbed", "memory",
    ]  # fmt: skip
    second = next((c["second"] for c in cells if "second" in c), None)
    heads += [second.replace("_", " ")] if second else []
    rows = []
    for c in sorted(cells, key=lambda c: c["median"] * (1 if least else -1)):
        numbers = [
            words.number(c[k]) if k in c else "-"
            for k in ("median", "min", "p25", "p75", "p99")
        ]
        counts = [str(c.get(k, "-")) for k in ("reps", "discarded", "disturbed")]
        rows.append(
            [c["allocator"]]
            + numbers
            + [ratio_text(c, base)[1:] or "-"]
            + counts
            + [str(c.get("backing", "-"))]
        )
        if second:
            rows[-1].append(words.number(c[second]) if second in c else "-")
    return heads, rows


def latency(cells):
    names = ("p50", "p99", "p99.9", "p99.99", "max")
    heads = ["allocator"] + [f"{k} {n}" for k in ("alloc", "free") for n in names]
    rows = []
    for c in cells:
        sides = [c.get("alloc", {}), c.get("free", {})]
        rows.append(
            [c["allocator"]]
            + [words.number(s[n]) if n in s else "-" for s in sides for n in names]
        )
    return heads, rows


def round_trips(r):
    rows = []
    for name in r.workloads:
        c = next((c for c in r.of(name) if "rtt_before_ns" in c), None)
        if c:
            rows.append(
                [name]
                + [
                    f"{words.number(c[k])} ns"
                    for k in ("rtt_before_ns", "rtt_after_ns")
                ]
            )
    return ["workload", "round trip before", "after"], rows


def discards(r):
    rows = []
    for name in r.workloads:
        cells = r.of(name)
        lost = {k: sum(c.get(k, 0) for c in cells) for k in ("discarded", "disturbed")}
        reps = sum(c.get("reps", 0) for c in cells)
        rows.append([name] + [f"{v:,}" for v in (reps, *lost.values())])
    return ["workload", "repetitions", "discarded", "disturbed"], rows


def fact_text(name, values):
    """Some change during a run: the time, and how many pages are free."""
    texts = [value_text(v) for v in values]
    if name == "date" and len(texts) > 1:
        return f"{min(texts)} to {max(texts)}"
    if len(texts) > 3:
        texts = texts[:2] + [f"{len(texts) - 2} other values"]
    return " / ".join(texts)


def meanings(r):
    """What the names of this run stand for."""
    return [(n, words.meaning(n)) for n in r.allocators if words.meaning(n)]


def facts(r):
    return [(f, fact_text(f, r.facts[f])) for f in results.FACTS if r.facts.get(f)]


# ---- Experiments ----

UNITS = (("_per_s", " a second"), ("_ns", ", ns"), ("_percent", ", %"), ("gbps", "Gb/s"))


def head_text(key):
    for end, unit in UNITS:
        if key.endswith(end):
            key = key[: -len(end)] + unit
            break
    return key.replace("_", " ").strip()


def value_text(value):
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return words.number(value)
    if isinstance(value, list):
        return ", ".join(value_text(v) for v in value)
    if isinstance(value, dict):
        return ", ".join(f"{k} {value_text(v)}" for k, v in value.items())
    return str(value)


def cell_text(key, value):
    if key.endswith("share") and results.is_number(value):
        return f"{100 * value:.1f} %"
    if key.endswith("_per_s") and results.is_number(value):
        return words.short(value)
    return "" if value is None else value_text(value)


def experiment(name, lines):
    """A column a field, those of the original last; a row a line."""
    if name == "rings":
        return rings(lines)
    keys = []
    for line in lines:
        keys += [
            k
            for k in line
            if k not in keys and k != "experiment" and k not in results.FACTS
        ]
    keys.sort(key=lambda k: k.startswith("original"))
    rows = [
        [cell_text(k, line[k]) if k in line else "" for k in keys] for line in lines
    ]
    return [head_text(k) for k in keys], rows


def rings_key(line):
    """All that a row of rings() has in common."""
    keys = ("mode", "driver", "costs", "wire_gbps", "per_waiter_ns", "allocator")
    return tuple(line.get(k) for k in keys)


def rings(lines):
    """A row an allocator and way of running, a column a number of rings."""
    lines = [line for line in lines if isinstance(line.get("rings"), int)]
    numbers = sorted({line["rings"] for line in lines})
    rows, originals = {}, {}
    for line in lines:
        share = line.get("lock_share")
        text = value_text(line.get("gbps"))
        if results.is_number(share):
            text += f" ({100 * share:.0f} %)"
        rows.setdefault(rings_key(line), {})[line["rings"]] = text
        if results.is_number(line.get("original_gbps")):
            found = originals.setdefault(line.get("driver"), {})
            found[line["rings"]] = value_text(line["original_gbps"])
    for driver, found in originals.items():
        rows["original", driver, None, 1, None, ""] = found
    heads = ["driver", "what", "allocator", "costs", "wire", "a waiter"]
    return heads + [str(n) for n in numbers], [
        rings_row(key) + [rows[key].get(n, "") for n in numbers]
        for key in sorted(rows, key=lambda k: (str(k[1]), str(k[2] or ""), k[3] is None))
    ]


def rings_row(key):
    mode, driver, costs, wire, waiter, allocator = key
    bound = "none" if mode == "simulated" and costs and wire is None else ""
    price = f"{waiter:.0f} ns" if results.is_number(waiter) else ""
    return [value_text(driver), str(mode), str(allocator), costs or "", bound, price]


# ---- Replay ----

REPLAY_ROWS = (
    ("mpps", "Mpps", 1),
    ("gbps", "Gb/s", 1),
    ("ns_per_packet", "ns per packet", 1),
    ("cpu_ns_per_packet", "CPU ns per packet, all threads", 1),
    ("spread", "spread of the rounds, %", 100),
    ("cache_hit_percent", "cache hits, %", 1),
    ("zone_locks_per_million", "zone locks per million packets", 1),
    ("stalls", "waits for memory", 1),
    ("memory_bytes", "memory, MiB", 1 / (1 << 20)),
)


def replay(line):
    backends = line["backends"]
    rows = []
    for key, name, factor in REPLAY_ROWS:
        if any(key in b for b in backends):
            rows.append(
                [name]
                + [
                    words.number(b[key] * factor) if results.is_number(b.get(key)) else "-"
                    for b in backends
                ]
            )
    return [""] + [b["backend"] for b in backends], rows


# ---- Terminal ----


def text(heads, rows):
    """Columns of a fixed width; the first to the left."""
    cells = [heads] + rows
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = []
    for row in cells:
        parts = [
            c.ljust(w) if i == 0 else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines) + "\n"
