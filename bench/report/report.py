# SPDX-License-Identifier: BSD-2-Clause
"""Makes the report of a run: report.html, pictures and tables.txt.

    /usr/bin/python3 bench/report/report.py DIR

DIR has results.jsonl, and what bench/run leaves beside it: steps.tsv, compare.txt.
The summary goes to standard output.  Without matplotlib the page has no pictures.
Exit status: 0; 1 when something could not be reported, which is named on standard
error and on the page (the rest is there); 2 for a folder that can't be read.
"""

import os
import sys

import page
import preload
import results
import tables
import words


class Drawing:
    """Draws, and keeps what went wrong; one picture must not cost the others."""

    def __init__(self, folder):
        self.folder = folder
        self.shown = {}  # workload, experiment or `replay`: paths
        self.notes = []

    def draw(self, name, make, *arguments):
        try:
            made = make(*arguments, self.folder)
        except Exception as error:  # whatever a line had in it
            self.notes.append(f"picture of {name}: {type(error).__name__}: {error}")
            return
        made = made if isinstance(made, list) else [made]
        self.shown.setdefault(name, []).extend(made)


def pictures(r, folder):
    d = Drawing(folder)
    try:
        import charts
        import curves
    except ImportError as error:
        d.notes.append(
            f"pictures: {error}; Debian's package is python3-matplotlib, seen by "
            "/usr/bin/python3"
        )
        return d
    style = words.styles(r.allocators)
    for name in r.workloads:
        cells = r.of(name)
        d.draw(name, charts.workload, cells, style)
        for side in ("alloc", "free"):
            if any(side in c for c in cells):
                d.draw(name, charts.latency, cells, side, style)
    for name in ("rings", "sweep"):
        if name in r.experiments:
            d.draw(name, getattr(curves, name), r.experiments[name])
    if preload.measured(r.preload):
        d.draw("preload", preload.pictures, preload.measured(r.preload))
    if r.replay:
        backends = r.replay["backends"]
        style = words.styles(b["backend"] for b in backends)
        d.draw("replay", charts.replay, backends, style)
    return d


def summary_text(r):
    """A row an allocator, a block of columns that fits a terminal."""
    heads, rows = tables.summary(r)
    out, at_once = [], 6
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        body = []
        for i, name in enumerate(heads[1:], 1):
            marks = [row[i] for row in some]
            if any(marks):
                body.append([name] + [mark_text(m) for m in marks])
        out.append(tables.text([""] + [row[0][0] for row in some], body))
    signs = "* best of the allocators, ^ ahead of pcpalloc by more than the spread"
    return "\n".join(out) + (signs + "\n" if rows else "")


def mark_text(mark):
    if mark is None:
        return "-"
    sign = {"best": "*", "ahead": "^"}.get(mark.kind, " ")
    return f"{mark.median} {mark.ratio}{sign}"


def state_text(r, notes):
    out = []
    if not r.complete:
        out.append("INCOMPLETE: the run was ended before everything was measured")
    out += [page.step_text(s) for s in r.steps if s[1] != "done"]
    out += r.bad + notes
    out += [f"missing: {page.missing_text(*m)}" for m in r.missing.items()]
    return "".join(f"{line}\n" for line in out)


def all_text(r, notes):
    parts = [state_text(r, notes)]
    parts.append("".join(f"{k}: {v}\n" for k, v in tables.facts(r)))
    if r.workloads:
        parts.append(summary_text(r))
    for name in r.workloads:
        cells = r.of(name)
        head = f"{name}, {cells[0]['unit']}\n"
        parts.append(head + tables.text(*tables.workload(cells)))
        if any("alloc" in c for c in cells):
            parts.append(f"{name}, ns\n" + tables.text(*tables.latency(cells)))
    for name, lines in r.experiments.items():
        parts.append(f"{name}\n" + tables.text(*tables.experiment(name, lines)))
    if r.replay:
        parts.append("replay\n" + tables.text(*tables.replay(r.replay)))
    if r.preload:
        parts.append("preload library\n" + tables.text(*preload.table(r.preload)))
        parts += [f"absent: {text}\n" for text in preload.absent(r.preload)]
    trips = tables.round_trips(r)
    if trips[1]:
        parts.append(tables.text(*trips))
    return "\n".join(p for p in parts if p)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def compare_read(folder):
    try:
        with open(os.path.join(folder, "compare.txt"), encoding="utf-8") as f:
            return f.read()
    except OSError:
        return ""


def main(arguments):
    if len(arguments) != 1 or not os.path.isdir(arguments[0]):
        print(f"usage: report.py DIR: no folder: {arguments}", file=sys.stderr)
        return 2
    folder = arguments[0]
    r = results.read(folder)
    drawn = pictures(r, folder)
    write(folder, "report.html", page.html(r, drawn.shown, drawn.notes, compare_read(folder)))
    write(folder, "tables.txt", all_text(r, drawn.notes))
    if preload.measured(r.preload):
        write(folder, "preload.md", preload.markdown(r.preload))
        sys.stdout.write(tables.text(*preload.table(r.preload)))
    sys.stdout.write(summary_text(r))
    for message in r.bad + drawn.notes:
        print(f"report: {message}", file=sys.stderr)
    return 1 if r.bad or drawn.notes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
