# SPDX-License-Identifier: BSD-2-Clause
"""python3 churn.py ROUNDS: objects that live for a round, and some that stay.

Each round reads back what it wrote, and the last line depends on all of it.
"""

import random
import sys
import zlib


def brief_make(rounds, chance):
    return [(i, "n%d" % chance.randrange(10**6), [i, rounds]) for i in range(40000)]


def main(rounds):
    chance, total, kept = random.Random(20), 0, {}
    for n in range(rounds):
        brief = brief_make(n, chance)
        names = {name: i for i, name, _ in brief}
        for i, name, pair in brief[::13]:
            if pair != [i, n] or brief[names[name]][1] != name:
                sys.exit(f"round {n}: object {i}")
        kept[n] = [float(i) for i in range(2000)]
        total = zlib.crc32(" ".join(names).encode(), total)
    if any(v[7] != 7.0 or len(v) != 2000 for v in kept.values()):
        sys.exit("what was kept")
    print(f"python3: whole, {rounds} rounds, {total}")


main(int(sys.argv[1]))
