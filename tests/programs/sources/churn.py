# SPDX-License-Identifier: BSD-2-Clause
"""python3 churn.py ROUNDS: lists of many objects that live for a round, and some that
stay.

Each round reads back what it wrote, and the last line depends on all of it.
"""

import sys
import zlib


def round_do(n):
    """What stays of a table that is read, turned and thrown away."""
    rows = [(i, i + n) for i in range(150000)]
    turned = [[b, a] for a, b in rows]
    for i in range(0, len(rows), 13):
        if rows[i] != (i, i + n) or turned[i] != [i + n, i]:
            sys.exit(f"round {n}: row {i}")
    return [f"{a} {b}" for a, b in turned[::300]]


def main(rounds):
    kept = [round_do(n) for n in range(rounds)]
    for n, texts in enumerate(kept):
        if texts[7] != f"{7 * 300 + n} {7 * 300}" or len(texts) != 500:
            sys.exit(f"what was kept of round {n}")
    total = zlib.crc32(" ".join(map(" ".join, kept)).encode())
    print(f"python3: whole, {rounds} rounds, {total}")


main(int(sys.argv[1]))
