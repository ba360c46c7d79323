# SPDX-License-Identifier: BSD-2-Clause
"""Allocators' order and colours, and how numbers are written.

One colour a family, of the palette by Okabe and Ito that colour-blind readers
tell apart; the members of a family differ in lightness, hatching and dashes.
"""

OWN = "pcpalloc"
REFERENCES = ("limit", "calls", "none")  # no allocators: what none can beat

FAMILIES = (
    ("pcpalloc", "#0072b2"),
    ("mempool", "#d55e00"),
    ("tcmalloc", "#009e73"),
    ("jemalloc", "#cc79a7"),
    ("mimalloc", "#e69f00"),
    ("glibc", "#7b4f2c"),
    ("kernel", "#56b4e9"),
    ("mmap", "#333333"),
    ("limit", "#999999"),
    ("calls", "#bbbbbb"),
    ("none", "#bbbbbb"),
)
MEMPOOL = "DPDK's rte_mempool, objects of one size and fixed number: {}, {}"

# What the names stand for, by their beginning; of two the longer one.
MEANINGS = (
    ("pcpalloc", "this library, called through its shared object"),
    ("pcpalloc-static", "the same, linked statically"),
    ("pcpalloc-sized", "the same as pcpalloc, frees told the block's order"),
    ("pcpalloc-inline", "hits compiled into the program (pcpalloc/inline.h)"),
    ("mempool-ring", MEMPOOL.format("ring_mp_mc", "a cache of 512 a thread")),
    ("mempool-stack", MEMPOOL.format("stack", "a cache of 512 a thread")),
    ("mempool-ring-nocache", MEMPOOL.format("ring_mp_mc", "no cache")),
    ("mempool-stack-nocache", MEMPOOL.format("stack", "no cache")),
    ("tcmalloc", "gperftools' tcmalloc_minimal"),
    ("jemalloc", "jemalloc"),
    ("mimalloc", "mimalloc"),
    ("glibc", "the C library's malloc"),
    (
        "kernel",
        "a list buddy like that of a kernel: a free list an order, one lock, no caches",
    ),
    ("mmap", "a mapping for each block"),
    ("limit", "no allocator: an array of pointers and nothing else"),
    ("calls", "no allocator: two calls into a shared library that do nothing"),
    ("none", "no allocator"),
)
TUNED = "with the settings its documentation has for speed"

OTHERS = ("#8a7f00", "#5d3a9b", "#1f6f6f", "#a0522d")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++")
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1)))


def family(name):
    """Index in FAMILIES, or behind them."""
    for i, (prefix, _) in enumerate(FAMILIES):
        if name == prefix or name.startswith(prefix + "-"):
            return i
    return len(FAMILIES)


def meaning(name):
    """What a name stands for, or ""."""
    able = [m for m in MEANINGS if name == m[0] or name.startswith(m[0] + "-")]
    text = max(able, key=lambda m: len(m[0]))[1] if able else ""
    return f"{text}, {TUNED}" if text and name.endswith("-tuned") else text


def is_general(name):
    """An allocator of any size, as malloc."""
    return name.startswith(("tcmalloc", "jemalloc", "mimalloc", "glibc"))


def is_own(name):
    return name == OWN or name.startswith(OWN + "-")


def ordered(names):
    """By family, and in each the plain one first, else as they came."""
    names = list(names)
    plain = {prefix for prefix, _ in FAMILIES}
    return sorted(names, key=lambda n: (family(n), n not in plain, names.index(n)))


def lighter(colour, part):
    rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(c + (255 - c) * part):02x}" for c in rgb)


def styles(names):
    """Colour, hatch and dashes of each; the same for all pictures of a run."""
    count, style, other = {}, {}, 0
    for name in ordered(names):
        i = family(name)
        if i < len(FAMILIES):
            colour = FAMILIES[i][1]
        else:
            colour = OTHERS[other % len(OTHERS)]
            other += 1
            i += other
        nth = count[i] = count.get(i, -1) + 1
        style[name] = {
            "colour": lighter(colour, min(0.2 * nth, 0.6)),
            "hatch": HATCHES[nth % len(HATCHES)],
            "dash": DASHES[nth % len(DASHES)],
        }
    return style


def number(value):
    """Three digits, or all before the point; thousands with commas."""
    size = abs(value)
    if size >= 99.95 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def short(value):
    """The same in few characters, for a table with many columns."""
    if abs(value) >= 999.5e3:
        return f"{value / 1e6:.3g} M"
    return f"{value / 1e3:.0f} k" if abs(value) >= 99950 else number(value)


def lower_is_better(cell):
    """Times and costs: everything but counts of blocks, shares and rates; a line
    may say it ("better": "more" or "less")."""
    if "better" in cell:
        return cell["better"] != "more"
    unit = cell["unit"]
    return not (unit.startswith(("blocks", "%", "share")) or unit.endswith("/s"))


def unit_text(cell):
    """Where single calls are timed the figure is one of their percentiles."""
    return "p99.9 of alloc in a turn, ns" if "alloc" in cell else cell["unit"]


def quartiles(cell):
    return cell.get("p25", cell["median"]), cell.get("p75", cell["median"])


def base_of(cells):
    """The one that ratios are against: pcpalloc, else the first."""
    for cell in cells:
        if cell["allocator"] == OWN:
            return cell
    return cells[0]


def ratio(cell, base):
    """To the base, turn by turn where the line says so."""
    if cell is base:
        return 1.0
    told = cell.get("ratio_to", {}).get(base["allocator"])
    if isinstance(told, (int, float)) and told > 0:
        return told
    return cell["median"] / base["median"] if base["median"] else None


def better(cell, than):
    """Whether it is better by more than the spread: the quartiles don't meet."""
    (low, high), (than_low, than_high) = quartiles(cell), quartiles(than)
    if lower_is_better(cell):
        return high < than_low
    return low > than_high


def best(cells):
    """Of the allocators that aren't references; None of none."""
    able = [c for c in cells if c["allocator"] not in REFERENCES]
    if not able:
        return None
    pick = min if lower_is_better(able[0]) else max
    return pick(able, key=lambda c: c["median"])
