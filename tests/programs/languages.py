# SPDX-License-Identifier: BSD-2-Clause
"""Programs that run a script of ours, which checks what it does and says `whole`."""

import os
import subprocess

from program import Program, source
from session import Absent, Failed, found


class Script(Program):
    rounds = 0
    command = ()

    def whole(self, said):
        if f"{self.name.split('-')[0]}: whole, {self.rounds} rounds".encode() not in said:
            raise Failed(f"it doesn't say that all was whole: {said[-200:]!r}")
        return said

    def run(self, session):
        return self.whole(session.run([*self.argv, str(self.rounds)]))


class Php(Script):
    name, package, touches = "php", "php-cli", "served"
    rounds = 15
    about = "large arrays and strings that live for some milliseconds"

    def prepare(self):
        php = found("php", self.package)
        self.argv = [php, "-n", "-d", "memory_limit=-1", source("churn.php")]


class Java(Script):
    package, touches = "openjdk-17-jdk-headless", "advised"
    rounds = 20
    about = "byte arrays that live for a round, and a map that grows"

    def prepare(self):
        java, javac = found("java", self.package), found("javac", self.package)
        made = subprocess.run(
            [javac, "-d", self.input, source("Churn.java")],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise Absent(f"javac doesn't work here: {(made.stdout + made.stderr)[-300:]}")
        # Its statistics file in /tmp is the only trace outside of the folder.
        self.argv = [
            java, f"-XX:+Use{self.collector}GC", "-Xmx512m", "-XX:-UsePerfData",
            "-cp", self.input, "Churn",
        ]  # fmt: skip


class JavaSerial(Java):
    name, collector = "java-serial", "Serial"


class JavaG1(Java):
    name, collector = "java-g1", "G1"


class Node(Script):
    name, package, touches = "node", "nodejs", "advised"
    rounds = 5
    about = "objects, JSON, large arrays"

    def prepare(self):
        self.argv = [found("node", self.package), source("churn.js")]


class Python(Script):
    name, package, touches = "python3", "python3", "served"
    rounds = 5
    about = "lists of many objects"

    def prepare(self):
        path = "/usr/bin/python3"
        self.argv = [path if os.access(path, os.X_OK) else found("python3", self.package)]
        self.argv += ["-I", source("churn.py")]


class Ruby(Script):
    name, package, touches = "ruby", "ruby", "served"
    rounds = 4
    about = "arrays, hashes, strings"

    def prepare(self):
        self.argv = [found("ruby", self.package), "--disable=gems", source("churn.rb")]


class Jemalloc(Program):
    name, package, touches = "jemalloc", "libjemalloc2", "served"
    operations = 4000
    about = "four threads that allocate, write, check and free, linked with jemalloc"

    def prepare(self):
        made = subprocess.run(
            [
                self.compiler, "-O2", "-o", self.path("stress"),
                source("jemalloc.c"), "-l:libjemalloc.so.2", "-lpthread",
            ],  # fmt: skip
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            if "libjemalloc.so.2" in made.stderr:
                raise Absent(f"no libjemalloc.so.2 (Debian's package {self.package})")
            raise Failed(made.stderr)

    def run(self, session):
        said = session.run([self.path("stress"), str(self.operations)])
        if f"whole, {self.operations} operations".encode() not in said:
            raise Failed(f"it doesn't say that all was whole: {said[-200:]!r}")
        return said


ALL = (Php, Jemalloc, JavaSerial, JavaG1, Node, Python, Ruby)
