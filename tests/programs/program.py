# SPDX-License-Identifier: BSD-2-Clause
"""What a program of the list is: the base class of all of them.

    package    Debian's, which has it
    touches    how the library is seen to be at work: "served" when it handed out
               mappings, "advised" when it asked for huge pages, "loaded" when the
               program maps nothing that comes to it
    same       whether each run says the same, so that both ways can be compared
    warm_mib   memory that a run touches, at most, about
    prepare()  finds the programs, or says what is Absent; makes the input, of fixed
               seeds, once for all runs, in `input`
    run()      one run in a session: what is measured, and the checks of its output;
               returns what the run said
    compare()  what it said bare and preloaded
"""

import os
import random

from session import Failed

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sources")


class Program:
    name = package = ""
    touches = "loaded"
    same = True
    warm_mib = 256
    about = ""

    def __init__(self, folder, compiler):
        self.input, self.compiler = os.path.join(folder, self.name), compiler

    def make(self):
        os.makedirs(self.input, exist_ok=True)
        os.chmod(self.input, 0o755)
        self.prepare()

    def prepare(self):
        raise NotImplementedError

    def run(self, session):
        raise NotImplementedError

    def compare(self, bare, said):
        if self.same and said != bare:
            raise Failed(f"it says {said[-300:]!r}, and bare {bare[-300:]!r}")

    def path(self, name):
        return os.path.join(self.input, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)


def source(name):
    return os.path.join(SOURCES, name)


def words(seed, number):
    """Text that compresses as text does: words of a small vocabulary."""
    chance = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(4000)]
    return chance.choices(known, k=number)
