# SPDX-License-Identifier: BSD-2-Clause
"""The preload library's part of a report: lines of bench/preload/measure.py.

Tables are rows of plain text, as in tables.py; markdown() is the same for a document.
"""

import words

HOW_TO_READ = (
    "How many times as fast as on the bare kernel, THP=madvise; above 1 is faster. The "
    "ways took turns; a ratio is the median of the turns' own, and in parentheses is its "
    "95 % interval. always: the bare kernel with THP=always; for the workloads of "
    "mappings, advice for huge pages. Wall and CPU time are of what is measured, not of "
    "its clients; a server's CPU time is from its start to its end."
)
WAYS = ("always", "preload")
LOOKS = (
    ("preload", "wall", "#0072b2", "o", True, "preload library, wall"),
    ("preload", "cpu", "#0072b2", "o", False, "preload library, CPU"),
    ("always", "wall", "#d55e00", "D", True, "THP=always, wall"),
)
SLOWER = 0.97  # what counts as slower, if the whole interval is below


def time_text(line):
    value = line["ways"]["kernel"]["wall"]["median"]
    if line["unit"] != "ns/round":
        return f"{words.number(value)} {line['unit']}"
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{words.number(value / size)} {unit}"
    return f"{words.number(value)} ns"


def ratio_of(line, way, kind):
    return (line["ways"].get(way, {}).get(kind) or {}).get("ratio")


def ratio_text(line, way, kind):
    found = ratio_of(line, way, kind)
    if not found:
        return "-"
    low, high = words.number(found["low"]), words.number(found["high"])
    return f"×{words.number(found['median'])} ({low}-{high})"


def slower(lines):
    """Whose whole interval is below, in wall or CPU time."""
    return [
        line["preload"]
        for line in measured(lines)
        if any(
            ratio_of(line, "preload", kind)
            and ratio_of(line, "preload", kind)["high"] < SLOWER
            for kind in ("wall", "cpu")
        )
    ]


def measured(lines):
    return [line for line in lines if "ways" in line]


def table(lines):
    heads = ["", "kernel", "turns", "THP=always", "its CPU", "preload library", "its CPU"]
    rows = [
        [line["preload"], time_text(line), str(line.get("runs", "-"))]
        + [ratio_text(line, way, kind) for way in WAYS for kind in ("wall", "cpu")]
        for line in measured(lines)
    ]
    return heads, rows


def absent(lines):
    return [f"{line['preload']}: {line['absent']}" for line in lines if "absent" in line]


def markdown(lines):
    heads, rows = table(lines)
    heads[0] = "what"
    out = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        out.append("| " + " | ".join([f"`{row[0]}`", *row[1:]]) + " |")
    return "\n".join(out) + "\n"


def workload_is(line):
    return line["unit"] == "ns/round"


def pictures(lines, folder):
    """Two: their ratios are of different sizes."""
    made = []
    for name, title, some in (
        ("preload-mappings", "mappings", [x for x in lines if workload_is(x)]),
        ("preload-programs", "programs", [x for x in lines if not workload_is(x)]),
    ):
        if some:
            made.append(picture(some, title, name, folder))
    return made


def picture(lines, title, name, folder):
    import charts

    height = 1.3 + 0.34 * len(lines)
    fig, axes = charts.figure(height, charts.LEGEND_WIDTH)
    for place, (way, kind, colour, mark, full, label) in enumerate(LOOKS):
        points = [
            (y + 0.22 * (place - 1), ratio_of(line, way, kind))
            for y, line in enumerate(lines)
            if ratio_of(line, way, kind)
        ]
        if points:
            dots(axes, points, colour, mark, full, label)
    axes.axvline(1, color="#000000", linewidth=1)
    axes.set_xscale("log")
    ticks_set(axes)
    axes.set_yticks(range(len(lines)), [line["preload"] for line in lines])
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_xlabel("times as fast as the kernel, with its 95 % interval; logarithmic")
    axes.set_title(f"preload library: {title}", x=0, ha="left")
    # Half an inch below the axes, which are three quarters of the height.
    below = -0.5 / (0.75 * height)
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, below), ncol=len(LOOKS))
    return charts.save(fig, folder, name)


def dots(axes, points, colour, mark, full, label):
    medians = [r["median"] for _, r in points]
    axes.errorbar(
        medians,
        [y for y, _ in points],
        xerr=[
            [max(r["median"] - r["low"], 0) for _, r in points],
            [max(r["high"] - r["median"], 0) for _, r in points],
        ],
        fmt=mark,
        color=colour,
        markerfacecolor=colour if full else "#ffffff",
        markersize=5,
        elinewidth=1.2,
        label=label,
    )


def ticks_set(axes):
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    low, high = axes.get_xlim()
    steps = [0.25, 0.35, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15]
    if high / low > 30:
        steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200]
    axes.xaxis.set_major_locator(FixedLocator([s for s in steps if low <= s <= high]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"×{v:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
