# SPDX-License-Identifier: BSD-2-Clause
"""The pictures of the experiments: `rings` and `sweep`.

Throughput above, the share of the time at the lock below, over the same axis.
"""

from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

import charts
import results

# Told apart without colours: the mark is the allocator's, too.  Those that are
# drawn first are larger, to be seen under others.
LOOKS = {
    "kernel-5.x": ("#d55e00", "s"),
    "legacy": ("#56b4e9", "^"),
    "modern": ("#0072b2", "o"),
}
SIZES = {"s": 6, "^": 9, "o": 4.5}
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


def curve(axes, xy, colour, mark, real, label, dash="-"):
    """A simulated curve is a line; what really ran are large hollow marks."""
    axes.plot(
        *xy,
        color=colour,
        marker=mark,
        linestyle=":" if real else dash,
        linewidth=1.2 if real else 1.8,
        markersize=10 if real else SIZES.get(mark, 5),
        markerfacecolor="none" if real else colour,
        markeredgewidth=1.6 if real else 0.8,
        label=label,
        clip_on=False,
        zorder=3,
    )


# ---- rings ----

SIMULATED_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))


def rings_rows(lines):
    """What is drawn: (label, whether it really ran, allocator, dash, lines)."""
    prices = sorted(distinct(lines, "per_waiter_ns"), reverse=True)
    for name in distinct(lines, "allocator"):
        mine = [line for line in lines if line["allocator"] == name]
        for i, price in enumerate(prices or [None]):
            some = [
                line
                for line in mine
                if line["mode"] == "simulated" and line.get("per_waiter_ns") == price
            ]
            label = f"{name}, simulated"
            if len(prices) > 1:
                label = f"{name}, {price:.0f} ns a waiter"
            yield label, False, name, SIMULATED_DASHES[i % 3], some
        real = [line for line in mine if line["mode"] == "real"]
        yield f"{name}, real run", True, name, ":", real


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


def original_marks(axes, lines):
    axes.plot(
        *points(lines, "rings", "original_gbps"),
        color="#000000",
        marker="x",
        markersize=8,
        markeredgewidth=2,
        linestyle="none",
        label="the original, its machine",
        zorder=4,
    )


def rings_picture(title, lines, folder, name):
    fig, (top, low) = charts.stacked()
    names = distinct(lines, "allocator")
    for label, real, allocator, dash, some in rings_rows(lines):
        colour, mark = look(allocator, names)
        shape = (colour, mark, real, label, dash)
        if some:
            curve(top, points(some, "rings", "gbps"), *shape)
            curve(low, points(some, "rings", "lock_share"), *shape)
    if any(results.is_number(line.get("original_gbps")) for line in lines):
        original_marks(top, lines)
    throughput_axis(top, [line["gbps"] for line in lines])
    top.set_title(title)
    share_axis(low, "time at locks")
    rings_axis(low, lines)
    charts.legend_below(fig, top, columns=2)
    return charts.save(fig, folder, name)


def rings_groups(lines):
    """Lines of one picture: (driver, costs, whether a wire bounds them).  What
    really ran belongs to the costs of this machine, where there are any."""
    simulated = [line for line in lines if line["mode"] == "simulated"]
    sets = distinct(simulated, "costs") or [None]
    here = "here" if "here" in sets else sets[-1]
    groups = {}
    for line in lines:
        bound = line.get("wire_gbps", 1) is not None
        costs = line.get("costs") if line["mode"] == "simulated" else here
        groups.setdefault((line["driver"], costs, bound), []).append(line)
    return sorted(groups.items(), key=lambda g: (sets.index(g[0][1]), not g[0][2]))


def rings_able(line):
    return (
        line.get("mode") in ("real", "simulated")
        and isinstance(line.get("allocator"), str)
        and isinstance(line.get("driver"), int)
        and isinstance(line.get("rings"), int)
        and line["rings"] > 0
        and results.is_number(line.get("gbps"))
    )


def rings(lines, folder):
    """Lines without what a point needs are in the table only."""
    made = []
    for (driver, costs, bound), some in rings_groups(list(filter(rings_able, lines))):
        name, title = f"rings-driver{driver}", f"rings, driver {driver}"
        if not bound:
            name, title = name + "-unbound", title + ", no wire"
        if costs:
            name, title = f"{name}-{costs}", f"{title}, costs: {costs}"
        made.append(rings_picture(title, some, folder, name))
    return made


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
