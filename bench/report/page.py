# SPDX-License-Identifier: BSD-2-Clause
"""The page: one file of HTML that needs nothing else; pictures are in it."""

import base64
import os
from html import escape

import preload
import tables
import words

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  color: #1b1b1b; background: #fff; margin: 0 auto; padding: 1rem .8rem 4rem;
  max-width: 1250px; }
h1 { font-size: 1.7rem; margin: .3rem 0; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; border-bottom: 2px solid #ddd; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
a { color: #004f80; }
nav a { margin-right: 1rem; white-space: nowrap; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: .4rem 0;
  font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .5rem; border-bottom: 1px solid #ddd; text-align: right;
  vertical-align: top; }
th { text-align: right; background: #f4f4f4; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: #f4f4f4; }
td { white-space: nowrap; }
th.text, td.text { text-align: left; }
td.long { white-space: normal; min-width: 16rem; }
table.summary { font-size: 12px; }
table.summary th, table.summary td { padding: .2rem .22rem; }
table.summary th, table.summary td { white-space: normal; }
table.summary th { font-size: 11px; }
table.summary small { color: #555; display: block; font-size: 11px;
  white-space: nowrap; }
td.best { background: #d8ecf8; font-weight: bold; }
td.ahead { background: #ffe3b8; }
td.reference { color: #666; }
.warn { border-left: 6px solid #d55e00; background: #fff4ea; padding: .5rem .9rem;
  margin: .8rem 0; }
.pictures > * { min-width: 0; }
.pictures { display: grid; gap: 1rem 1.6rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 500px), 1fr)); }
figure { margin: 0; max-width: 590px; }
img { width: 100%; height: auto; }
details { margin: .2rem 0 .8rem; }
summary { cursor: pointer; color: #004f80; }
pre { overflow-x: auto; background: #f6f6f6; padding: .7rem; font-size: 12.5px; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
dl.facts dt { color: #555; }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
"""

HOW_TO_READ = """
<ul>
<li>Within a workload the allocators took turns of about a millisecond, so whatever
the machine did meanwhile it did to all of them. Compare within one workload of one
run; a figure alone depends on the machine and its other work.</li>
<li>A figure is the median of the repetitions. <b>±</b> is half of the distance
between the quartiles, and so are the black lines at the bars. <b>×</b> is the
median of the ratios to {base} within each turn: below ×1 it costs less (where the
unit is a cost).</li>
<li><span style="background:#d8ecf8;font-weight:bold">&#9733; Best</span> of the
allocators; <span style="background:#ffe3b8">&#9650; ahead</span> of {base} by
more than the spread: the quartiles of the two don't meet. <i>limit</i> and
<i>calls</i> are no allocators but what none can beat: a bare array of pointers, and
two empty calls into a shared library.</li>
<li>Where single calls are timed, the summary and the bars have the median of the
turns, of each of which the 99.9th percentile of its allocations was taken. The tables
and curves of single calls are of all calls of the run together: one bad turn lifts
their p99.9 and not the median.</li>
<li>Figures of two processors move with the time that a cache line takes from one to
the other; it is given below, before and after.</li>
</ul>
"""

EXPERIMENTS = {
    "rings": "Throughput over the number of receive rings, Gb/s (in the table with "
    "the share of the time at locks). Driver 1 puts two packets into a page, driver 2 "
    "one, driver 3 has a huge cache of its own. Lines are simulated: the project's "
    "policy code, with the costs of the original's machines or with those measured "
    "here. Large hollow marks really ran here; crosses are the original's figures on "
    "its machine.",
    "rings-costs": "What the simulation is given, ns. xeon: the original's machines. "
    "here, packets too: all of it measured on this machine, for the check below; for "
    "each line of that the packets' costs are measured again. here: memory as here, "
    "packets and wire as in the original.",
    "rings-check": "The simulation against the real run, with the costs of this "
    "machine. Each row is of several turns, a real run and a simulated one each; "
    "all figures are medians of the turns. The error is the median of the turns' own "
    "errors, so it is not the error of the two medians beside it; least and most leave "
    "out one turn of seven each way.",
    "sweep": "Pages taken and given back, with a larger and larger batch. Large "
    "hollow marks: the two batches at one high mark.",
    "unmap": "Pages that each drain of a cache gives back while a process only "
    "frees.",
    "orders": "Blocks of order 3, with a cache for them and without.",
    "lazy": "Merging free blocks at once against merging them later.",
    "events": "What happens how often, while a processor allocates and while it "
    "frees.",
}

BULK = (
    "{} pages of order 0 taken by one bulk call and given back by one; for each page, "
    "both calls."
)
BURST = "{} pages taken one by one, then given back one by one in that order."
MIXED = (
    "{} in a circle, orders 0 to 3 mixed: half of the bursts are freed by the next "
    "thread. Each call timed."
)

WORKLOADS = {
    "pair": "One page taken and given back at once: the shortest way through each "
    "allocator.",
    "bulk8": BULK.format(8),
    "bulk32": BULK.format(32),
    "bulk64": BULK.format(64),
    "burst64": BURST.format(64),
    "burst4096": BURST.format("4,096") + " More than most caches hold.",
    "churn": "2,048 blocks of orders 0 to 3 live; a random one is given back and a new "
    "one taken.",
    "remote": "One thread takes pages, another gives them back: bursts of 32 go "
    "through a ring between two processors.",
    "remote-touch": "The same, and the one thread writes 64 bytes into each page that "
    "the other reads, as packets are.",
    "parallel": "burst64 on two processors at the same time; each thread's own time.",
    "coalesce": "A heap of 64 MiB taken page by page and given back in random order: "
    "how many blocks of order 3 it has then, of 2,048.",
    "latency-pair": "pair, each call timed.",
    "latency-churn": "churn, each call timed.",
    "latency-remote2": "remote with two threads, each call timed.",
    "latency-remote8": "Eight threads in pairs on the processors there are, one of each "
    "pair takes and the other frees. Each call timed.",
    "latency-mixed2": MIXED.format("Two threads"),
    "latency-mixed8": MIXED.format("Eight threads"),
    "start": "A new process from main() to its first block, written; the second "
    "figure begins before the process does, and so has what libraries do before main().",
    "start-heap": "One heap or pool more in a process.",
    "grow": "32 MiB more than the first block in a new process, page by page, each "
    "written. Memory that the hypervisor has taken back costs 11 to 14 us a page, so "
    "the figures can have two heights.",
    "trim": "A new process frees 32 MiB and asks its allocator to give what is free to "
    "the system; for each page that went in that call.",
    "fragment": "What a day of mixed lifetimes leaves: the share of the free memory "
    "that blocks of order 3 get, and in the second figure of order 9.",
    "threads": "The first 64 pairs of each of 1,000 threads that live at once: CPU "
    "time of the threads, not their waiting.",
    "threads-short": "A thread started, 64 pairs, its end; one after another.",
}

TEXT = ' class="text"'
NUMERIC = set("0123456789.,-+×±% kM")


def is_text(column):
    return any(c and not set(c) <= NUMERIC for c in column)


def cell_html(text, words_in_it):
    """A long text is broken, so that the table stays on the page."""
    if not words_in_it:
        return f"<td>{escape(text)}</td>"
    kind = "text long" if len(text) > 44 else "text"
    return f'<td class="{kind}">{escape(text)}</td>'


def table(heads, rows):
    """Columns of text begin at the left, of numbers end at the right."""
    texts = [is_text([row[i] for row in rows]) for i in range(len(heads))]
    out = ['<div class="wide"><table><tr>']
    for head, text in zip(heads, texts):
        out.append(f"<th{TEXT if text else ''}>{escape(head)}</th>")
    out.append("</tr>\n")
    for row in rows:
        cells = "".join(cell_html(c, text) for c, text in zip(row, texts))
        out.append(f"<tr>{cells}</tr>\n")
    out.append("</table></div>\n")
    return "".join(out)


SIGNS = {"best": "&#9733;&nbsp;", "ahead": "&#9650;&nbsp;"}


def summary_cell(mark):
    if mark is None:
        return "<td>-</td>"
    return (
        f'<td class="{mark.kind}">{SIGNS.get(mark.kind, "")}{escape(mark.median)}'
        f"<small>{escape(mark.ratio)}</small><small>{escape(mark.spread)}</small></td>"
    )


def head_break(name):
    """Long names may be broken behind a hyphen."""
    return escape(name).replace("-", "-<wbr>")


def summary(r):
    return "".join(summary_part(r, names) for names in tables.summary_parts(r))


def summary_part(r, names):
    heads, rows = tables.summary(r, names)
    # pcpalloc is in each part.
    others = [i for i, name in enumerate(names, 1) if name != words.OWN]
    rows = [row for row in rows if not others or any(row[i] for i in others)]
    out = ['<div class="wide"><table class="summary"><tr>']
    out += [f"<th>{head_break(h)}</th>" for h in heads]
    out.append("</tr>\n")
    for (name, unit), *marks in rows:
        out.append(
            f'<tr><td><a href="#{escape(name)}">{escape(name)}</a>'
            f"<small>{escape(unit)}</small></td>"
        )
        out += [summary_cell(m) for m in marks]
        out.append("</tr>\n")
    out.append("</table></div>\n")
    return "".join(out)


def picture(path):
    with open(path, "rb") as f:
        data = base64.b64encode(f.read()).decode("ascii")
    name = escape(os.path.basename(path)[: -len(".png")])
    return (
        f'<figure><img alt="{name}" title="{name}" '
        f'src="data:image/png;base64,{data}"></figure>\n'
    )


def pictures(paths):
    if not paths:
        return ""
    return '<div class="pictures">' + "".join(map(picture, paths)) + "</div>\n"


def warn(title, messages):
    items = "".join(f"<li>{escape(m)}</li>" for m in messages)
    return f'<div class="warn"><b>{escape(title)}</b><ul>{items}</ul></div>\n'


def step_text(step):
    name, status, seconds, message = step
    text = f"{name}: {status}"
    if seconds and status != "left out":
        text += f" after {seconds} s"
    return text + (f": {message}" if message else "")


def state(r, notes):
    """What a reader must know before the figures."""
    out = ""
    undone = [s for s in r.steps if s[1] != "done"]
    if not r.complete:
        out += warn(
            "Incomplete: the run was ended before everything was measured.",
            [step_text(s) for s in undone if s[1] != "failed"],
        )
    failed = [step_text(s) for s in undone if s[1] == "failed"]
    if failed:
        out += warn("Steps that failed:", failed)
    if r.bad:
        out += warn("Lines of the results that could not be used:", r.bad)
    if notes:
        out += warn("Not in this report:", notes)
    if r.missing:
        out += warn(
            "Allocators that are missing:",
            [missing_text(name, line) for name, line in r.missing.items()],
        )
    return out


def missing_text(name, line):
    text = f"{name}: {line.get('why') or 'not there'}"
    return text + (f"; to get it: {line['install']}" if line.get("install") else "")


def caption(name):
    return f"<p>{escape(WORKLOADS[name])}</p>\n" if name in WORKLOADS else ""


def workload_section(r, name, shown):
    cells = r.of(name)
    out = f'<section id="{escape(name)}"><h3>{escape(name)}</h3>\n{caption(name)}'
    out += pictures(shown)
    if any("alloc" in c for c in cells):
        out += "<p>All calls of the run, ns; the longest of all at last.</p>"
        out += table(*tables.latency(cells))
    out += "<details><summary>all figures</summary>"
    out += table(*tables.workload(cells)) + "</details></section>\n"
    return out


def bars_section(r, shown):
    """All bars beside each other, each with its figures."""
    out = ['<div class="pictures">']
    for name in r.workloads:
        if any("alloc" in c for c in r.of(name)):
            continue
        out.append(f'<section id="{escape(name)}">')
        out += [picture(p) for p in shown.get(name, [])]
        out.append(caption(name))
        out.append("<details><summary>all figures</summary>")
        out.append(table(*tables.workload(r.of(name))) + "</details></section>\n")
    out.append("</div>\n")
    return "".join(out)


def experiments(r, shown):
    out = ""
    for name, lines in r.experiments.items():
        out += f'<section id="{escape(name)}"><h3>{escape(name)}</h3>\n'
        if name in EXPERIMENTS:
            out += f"<p>{escape(EXPERIMENTS[name])}</p>\n"
        out += pictures(shown.get(name, []))
        body = table(*tables.experiment(name, lines))
        if len(lines) > 24:
            body = f"<details><summary>all figures</summary>{body}</details>"
        out += body + "</section>\n"
    return out


def preload_section(r, shown):
    out = f"<p>{escape(preload.HOW_TO_READ)}</p>\n" + pictures(shown.get("preload", []))
    out += table(*preload.table(r.preload))
    slower = ", ".join(preload.slower(r.preload))
    out += f"<p>Slower than ×{preload.SLOWER}, interval and all: {escape(slower or 'none')}."
    out += "</p>\n"
    missing = preload.absent(r.preload)
    return out + (warn("Programs that are absent:", missing) if missing else "")


def definitions(pairs):
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in pairs)
    return f'<dl class="facts">{items}</dl>\n'


def sections(r, shown, compare):
    """(id, title, body) of those that there is something for."""
    latencies = [w for w in r.workloads if any("alloc" in c for c in r.of(w))]
    base = words.OWN
    if r.workloads:
        base = words.base_of(r.of(r.workloads[0]))["allocator"]
    yield "machine", "The machine", definitions(tables.facts(r))
    if r.workloads:
        yield "summary", "Summary", summary(r)
        yield "read", "How to read it", HOW_TO_READ.format(base=escape(base))
        yield "names", "The allocators", definitions(tables.meanings(r))
    if compare:
        yield "compare", "What moved", f"<pre>{escape(compare)}</pre>\n"
    if len(latencies) < len(r.workloads):
        yield "workloads", "Workloads", bars_section(r, shown)
    if latencies:
        body = "".join(workload_section(r, w, shown.get(w, [])) for w in latencies)
        yield "latency", "Single calls", body
    if r.experiments:
        yield "experiments", "Experiments", experiments(r, shown)
    if r.replay:
        body = pictures(shown.get("replay", [])) + table(*tables.replay(r.replay))
        yield "replay", "Packet replay", body
    if r.preload:
        yield "preload", "The preload library", preload_section(r, shown)
    if r.workloads:
        body = table(*tables.discards(r))
        trips = tables.round_trips(r)
        if trips[1]:
            body += table(*trips)
        yield "clean", "How clean the run was", body


def html(r, shown, notes, compare):
    parts = list(sections(r, shown, compare))
    nav = " ".join(f'<a href="#{i}">{escape(t)}</a>' for i, t, _ in parts)
    title = "pcpalloc: benchmarks" + ("" if r.complete else " (incomplete)")
    body = "".join(
        f'<section id="{i}"><h2>{escape(t)}</h2>\n{b}</section>\n' for i, t, b in parts
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        f"<h1>{title}</h1>\n<nav>{nav}</nav>\n{state(r, notes)}{body}"
        "</body></html>\n"
    )
