# SPDX-License-Identifier: BSD-2-Clause
"""The pictures of the experiments: `rings` and `sweep`.

Throughput above, the share of the time at the lock below, over the same axis.
"""

from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

import charts
import results

# Told apart without colours: the mark is the allocator's, too.
LOOKS = {
    "kernel-5.x": ("#d55e00", "s"),
    "legacy": ("#56b4e9", "^"),
    "modern": ("#0072b2", "o"),
}
OTHER_LOOKS = (("#009e73", "D"), ("#cc79a7", "v"), ("#7b4f2c", "P"))


def look(name, names):
    others = [n for n in names if n not in LOOKS]
    if name in LOOKS:
        return LOOKS[name]
    return OTHER_LOOKS[others.index(name) % len(OTHER_LOOKS)]


def distinct(lines, key):
    found = []
    for line in lines:
        if key in line and line[key] not in found:
            found.append(line[key])
    return found


def points(lines, x, y):
    found = sorted(
        (line[x], line[y])
        for line in lines
        if results.is_number(line.get(x)) and results.is_number(line.get(y))
    )
    return tuple(zip(*found)) if found else ((), ())


def share_axis(axes, label):
    axes.set_ylim(0, 1.04)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    axes.set_ylabel(label)


def curve(axes, xy, colour, mark, real, label):
    """A simulated curve is a line; what really ran are large hollow marks."""
    axes.plot(
        *xy,
        color=colour,
        marker=mark,
        linestyle=":" if real else "-",
        linewidth=1.2 if real else 1.8,
        markersize=9 if real else 5,
        markerfacecolor="none" if real else colour,
        markeredgewidth=1.6 if real else 0.8,
        label=label,
        clip_on=False,
        zorder=3,
    )


# ---- rings ----


def rings_rows(lines):
    """What is drawn: (allocator, whether it really ran, its lines)."""
    names = distinct(lines, "allocator")
    for name in names:
        for mode in ("simulated", "real"):
            some = [
                line
                for line in lines
                if line["allocator"] == name and line.get("mode") == mode
            ]
            if some:
                yield name, mode == "real", look(name, names), some


def rings_axis(axes, lines):
    ticks = sorted({line["rings"] for line in lines})
    axes.set_xscale("log", base=2)
    powers = [t for t in ticks if t & (t - 1) == 0 or len(ticks) < 8]
    axes.set_xticks(powers, [str(t) for t in powers])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(min(ticks) / 1.12, max(ticks) * 1.12)
    axes.set_xlabel("receive rings, logarithmic")


def throughput_axis(axes, values):
    """Logarithmic where one curve would flatten the others."""
    log = charts.needs_log(filter(results.is_number, values))
    axes.set_ylabel("Gb/s, logarithmic" if log else "Gb/s")
    if log:
        axes.set_yscale("log")
        charts.axis_log(axes.yaxis)
    else:
        axes.set_ylim(0)
        axes.yaxis.set_major_locator(MaxNLocator(6))


def rings_driver(driver, lines, folder):
    fig, (top, low) = charts.stacked()
    for name, real, (colour, mark), some in rings_rows(lines):
        label = f"{name}, {'real run' if real else 'simulated'}"
        curve(top, points(some, "rings", "gbps"), colour, mark, real, label)
        curve(low, points(some, "rings", "lock_share"), colour, mark, real, label)
    original = points(lines, "rings", "original_gbps")
    if original[0]:
        top.plot(
            *original,
            color="#000000",
            marker="x",
            markersize=8,
            markeredgewidth=2,
            linestyle="none",
            label="the original, its machine",
            zorder=4,
        )
    throughput_axis(top, [line["gbps"] for line in lines if "gbps" in line])
    top.set_title(f"rings, driver {driver}")
    share_axis(low, "time at locks")
    rings_axis(low, lines)
    charts.legend_below(fig, top, columns=2)
    return charts.save(fig, folder, f"rings-driver{driver}")


def rings(lines, folder):
    """A picture a driver; lines without what a point needs are in the table."""
    able = [
        line
        for line in lines
        if "allocator" in line
        and isinstance(line.get("rings"), int)
        and line["rings"] > 0
        and "driver" in line
    ]
    return [
        rings_driver(d, [line for line in able if line["driver"] == d], folder)
        for d in sorted(distinct(able, "driver"), key=str)
    ]


# ---- sweep ----


def sweep_split(lines):
    """Those of a high of six batches, which make a curve, and the others."""
    along, others, seen = [], [], set()
    for line in lines:
        key = line.get("allocator"), line["batch"]
        new = line.get("high") == 6 * line["batch"] and key not in seen
        seen.add(key)
        (along if new else others).append(line)
    return along, others


def sweep(lines, folder):
    lines = [
        s
        for s in lines
        if results.is_number(s.get("batch")) and results.is_number(s.get("ops_per_s"))
    ]
    if not lines:
        return []
    fig, (top, low) = charts.stacked()
    names = distinct(lines, "allocator")
    for name in names:
        colour, mark = look(name, names)
        for real, some in enumerate(sweep_split(lines)):
            some = [s for s in some if s["allocator"] == name]
            if not some:
                continue
            meant = some[0].get("lock_share_is")
            high = ", ".join(str(h) for h in distinct(some, "high")[:3])
            label = f"{name}, high {high}" if real else f"{name}, high 6 x batch"
            x, y = points(some, "batch", "ops_per_s")
            curve(top, (x, [v / 1e6 for v in y]), colour, mark, real, label)
            shares = points(some, "batch", "lock_share")
            label = f"{name}: {meant}" if meant and not real else None
            curve(low, shares, colour, mark, real, label)
    top.set_ylim(0)
    top.set_ylabel("million pages/s")
    top.set_title("sweep: a larger batch")
    share_axis(low, "lock share")
    low.set_xlabel("batch, pages")
    if low.get_legend_handles_labels()[0]:
        low.legend(loc="upper right", fontsize=8)
    charts.legend_below(fig, top, columns=2)
    return [charts.save(fig, folder, "sweep")]
