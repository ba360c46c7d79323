# SPDX-License-Identifier: BSD-2-Clause
"""The pictures: bars of a workload, latencies over percentiles.

Each is small enough to be read on a phone, and one file.  A scale is
logarithmic where the values span more than a factor of LOG_SPAN: mmap would
flatten all others.  curves.py has those of the experiments.
"""

import io
import math
import os

import matplotlib
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

import words

WIDTH = 5.2  # inches
LEGEND_WIDTH = 6.4  # where three columns of names are below
DPI = 160  # twice what a page shows it at: sharp on all screens
LOG_SPAN = 20

plt.rcParams.update(
    {
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e0e0e0",
        "hatch.linewidth": 0.6,
        "hatch.color": "#ffffff",
        "legend.frameon": False,
        "legend.fontsize": 9.5,
        "text.parse_math": False,
    }
)


def figure(height, width=WIDTH):
    return plt.subplots(figsize=(width, height))


def stacked():
    """Two over the same x axis, the upper one higher."""
    return plt.subplots(
        2,
        1,
        figsize=(WIDTH, 5.0),
        sharex=True,
        gridspec_kw={"height_ratios": (3, 2), "hspace": 0.12},
    )


def save(fig, folder, name):
    """A picture of few colours is a third as large with a palette."""
    path = os.path.join(folder, name + ".png")
    drawn = io.BytesIO()
    fig.savefig(drawn, format="png", dpi=DPI, bbox_inches="tight", pad_inches=0.08)
    plt.close(fig)
    image = Image.open(drawn).convert("RGB")
    image.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def needs_log(values):
    values = [v for v in values if v > 0]
    return bool(values) and max(values) / min(values) > LOG_SPAN


def axis_log(axis):
    """Decades written out: 0.1, 1, 10, 1,000."""
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_minor_formatter(NullFormatter())


def nanoseconds(value, _=None):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} ns"


def legend_below(fig, axes, columns=3):
    """Below the picture, whatever their number."""
    handles, labels = axes.get_legend_handles_labels()
    fig.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncol=columns,
        handlelength=2.8,
        columnspacing=1.0,
    )


# ---- Bars ----


def bar_limits(axes, tops, lows, log):
    """Room for the number behind the longest bar."""
    if not log:
        axes.set_xlim(0, max(tops) * 1.18 or 1)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
        return
    least = min(v for v in lows if v > 0)
    left = 10 ** math.floor(math.log10(least) - 0.05)
    axes.set_xscale("log")
    axes.set_xlim(left, max(tops) * (max(tops) / left) ** 0.2)
    axis_log(axes.xaxis)


def bar_texts(axes, values, tops):
    for y, (value, top) in enumerate(zip(values, tops)):
        axes.annotate(
            words.number(value),
            (max(top, axes.get_xlim()[0]), y),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
        )


def bars(rows, style, title, label, folder, name):
    """Rows of (allocator, median, p25, p75), the best first."""
    fig, axes = figure(1.0 + 0.27 * len(rows))
    values = [r[1] for r in rows]
    tops = [max(r[1], r[3]) for r in rows]
    log = needs_log(values)
    bar_limits(axes, tops, [min(r[1], r[2]) for r in rows], log)
    left = axes.get_xlim()[0]
    for y, (allocator, value, p25, p75) in enumerate(rows):
        s = style[allocator]
        axes.barh(
            y,
            max(value - left, 0),
            left=left,
            height=0.72,
            color=s["colour"],
            hatch=s["hatch"],
        )
        axes.errorbar(
            value,
            y,
            xerr=[[max(value - p25, 0)], [max(p75 - value, 0)]],
            color="#000000",
            elinewidth=1,
            capsize=2.5,
            capthick=1,
        )
    bar_texts(axes, values, tops)
    axes.set_yticks(range(len(rows)), [r[0] for r in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_xlabel(label + (", logarithmic" if log else ""))
    axes.set_title(title, x=0, ha="left")
    return save(fig, folder, name)


def workload(cells, style, folder):
    name = cells[0]["workload"]
    least = words.lower_is_better(cells[0])
    rows = sorted(
        ((c["allocator"], c["median"], *words.quartiles(c)) for c in cells),
        key=lambda r: r[1] if least else -r[1],
    )
    label = words.unit_text(cells[0])
    label += f" ({'less' if least else 'more'} is better)"
    return bars(rows, style, name, label, folder, name)


def replay(backends, style, folder):
    rows = sorted(
        ((b["backend"],) + (b["ns_per_packet"],) * 3 for b in backends),
        key=lambda r: r[1],
    )
    label = "ns/packet (less is better)"
    return bars(rows, style, "packet replay", label, folder, "replay")


# ---- Latencies ----

PERCENTILES = (0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999, 99.99999)
NAMED = (("p50", 50), ("p99", 99), ("p99.9", 99.9), ("p99.99", 99.99))


def nines(percentile):
    return -math.log10(max(1 - percentile / 100, 1e-12))


def curve(side):
    """Points of (nines, ns); the longest call is the last, one in so many."""
    points = side.get("curve") or [[p, side[n]] for n, p in NAMED if n in side]
    points = [(nines(p), ns) for p, ns in points if p < 100 and ns > 0]
    if side.get("max", 0) > 0 and side.get("calls", 0) > 1:
        last = math.log10(side["calls"])
        points = [p for p in points if p[0] < last] + [(last, side["max"])]
    return points


def latency(cells, key, style, folder):
    """One picture of `alloc` or `free`."""
    fig, axes = figure(4.2, LEGEND_WIDTH)
    most = 1
    for cell in cells:
        points = curve(cell[key]) if key in cell else []
        if not points:
            continue
        s = style[cell["allocator"]]
        plain = s["dash"] == "-"
        axes.plot(
            *zip(*points),
            color=s["colour"],
            linestyle=s["dash"],
            linewidth=2.0 if plain else 1.4,
            label=cell["allocator"],
            zorder=4 if cell["allocator"] == words.OWN else 3 if plain else 2,
        )
        most = max(most, points[-1][0])
    ticks = [p for p in PERCENTILES if nines(p) <= most + 0.05]
    axes.set_xticks([nines(p) for p in ticks], [f"{p:g}" for p in ticks])
    axes.set_xlim(0, most * 1.02)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(nanoseconds))
    axes.yaxis.set_major_locator(LogLocator(numticks=12))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("percentile of the calls; the end of a line: the longest call")
    axes.set_title(f"{cells[0]['workload']}: {key}")
    legend_below(fig, axes)
    return save(fig, folder, f"{cells[0]['workload']}-{key}")
