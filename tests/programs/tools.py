# SPDX-License-Identifier: BSD-2-Clause
"""Programs that make a file of a file: compilers, compressors, sort and their like."""

import hashlib
import os
import random

from program import Program, words
from session import Failed, found


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest().encode()


def c_function(number, chance):
    """A function that the optimizer has something to do with."""
    a, b, c = (chance.randrange(1, 1000) for _ in range(3))
    return f"""
struct s{number} {{ long a; int b[{a % 13 + 2}]; struct s{number} *next; }};
static long f{number}(struct s{number} *s, long n)
{{
	long sum = {a};
	for (long i = 0; i < n % {b}; i++) {{
		if (s && s->b[i % {a % 13 + 2}] > {c})
			sum += s->a * i + f{max(number - 1, 0) if number else 0}_step(i, {c});
		else
			sum ^= i << {a % 31};
		switch (sum % 7) {{
		case {a % 7}: sum += {b}; break;
		case {(a + 1) % 7}: sum *= {c}; break;
		default: sum -= i;
		}}
	}}
	return sum;
}}
static long f{number}_step(long i, long n)
{{
	return f{number}(0, i) + n;
}}
"""


def c_source(functions, numbers):
    """Functions, and a table as other generators write them."""
    chance = random.Random(20)
    rows = (
        ", ".join(str(chance.randrange(1 << 30)) for _ in range(8))
        for _ in range(numbers // 8)
    )
    parts = ["static const int table[] = {", ",\n".join(rows), "};"]
    parts += [f"static long f{n}_step(long i, long n);" for n in range(functions)]
    parts += [c_function(n, chance) for n in range(functions)]
    calls = " + ".join(f"f{n}_step(argc, {n})" for n in range(functions))
    parts.append(f"int main(int argc, char **argv)\n{{\n\treturn (table[argc] + {calls}) % 64;\n}}\n")
    return "\n".join(parts)


class Compiler(Program):
    functions, numbers = 40, 240000
    about = "a generated file of C: a large table, and functions"

    def prepare(self):
        self.compile = found(self.name, self.package)
        self.source = self.write("large.c", c_source(self.functions, self.numbers))

    def run(self, session):
        made, program = session.path("large.o"), session.path("large")
        session.run([self.compile, "-O1", "-w", "-c", "-o", made, self.source])
        session.aside([self.compile, "-o", program, made])
        ran = session.start([program], served=False)
        return digest(made) + b" %d" % ran.wait()


class Gcc(Compiler):
    name = package = "gcc"
    touches = "served"


class Clang(Compiler):
    name = package = "clang"


class Sqlite(Program):
    name = package = "sqlite3"
    rows = 60000
    about = "rows, an index, joins; the file's own check"

    def prepare(self):
        self.sqlite = found("sqlite3", self.package)
        chance = random.Random(20)
        rows = ",".join(
            f"({i},{chance.randrange(10**6)},'{word}')"
            for i, word in enumerate(words(21, self.rows))
        )
        self.script = self.write(
            "script.sql",
            "PRAGMA page_size=4096; PRAGMA synchronous=off;\n"
            "CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER, w TEXT);\n"
            f"INSERT INTO t VALUES {rows};\n"
            "CREATE INDEX w_of ON t(w, n);\n"
            "CREATE TABLE u AS SELECT w, sum(n) AS s, count(*) AS c FROM t GROUP BY w;\n"
            "DELETE FROM t WHERE id % 3 = 0;\n"
            "SELECT count(*), sum(t.n), sum(u.s) FROM t JOIN u ON t.w = u.w;\n"
            "SELECT w, s FROM u ORDER BY s DESC, w LIMIT 100;\n"
            "PRAGMA integrity_check;\n",
        )

    def run(self, session):
        with open(self.script, "rb") as script:
            said = session.run([self.sqlite, "-batch", "file.db"], stdin=script)
        if not said.endswith(b"\nok\n"):
            raise Failed(f"integrity_check: {said[-200:]!r}")
        return said


class Sort(Program):
    name, package = "sort", "coreutils"
    lines = 600000
    about = "600,000 lines, in two threads, with part of them in files"

    def prepare(self):
        self.sort = found("sort", self.package)
        lines = words(22, self.lines)
        chance = random.Random(23)
        lines = [f"{line}{chance.randrange(1000)}" for line in lines]
        self.unsorted = self.write("lines", "\n".join(lines) + "\n")
        self.sorted = hashlib.sha256(
            ("\n".join(sorted(lines)) + "\n").encode()
        ).hexdigest().encode()  # fmt: skip

    def run(self, session):
        made = session.path("sorted")
        session.run(
            [self.sort, "--parallel=2", "-S", "16M", "-T", session.folder]
            + ["-o", made, self.unsorted],
            env={"LC_ALL": "C"},
        )
        if digest(made) != self.sorted:
            raise Failed("the lines aren't sorted")
        return self.sorted


class Compressor(Program):
    about = "text, there and back"

    def prepare(self):
        self.program = found(self.name, self.package)
        self.text = self.write("text", " ".join(words(24, self.number)))
        self.digest = digest(self.text)

    def run(self, session):
        packed, back = session.path("packed"), session.path("back")
        for argv, source, made in (
            (self.pack, self.text, packed),
            (self.unpack, packed, back),
        ):
            with open(source, "rb") as file:
                said = session.run([self.program, *argv], stdin=file)
            with open(made, "wb") as file:
                file.write(said)
        if digest(back) != self.digest:
            raise Failed("what was unpacked isn't what was packed")
        return digest(packed)


class Xz(Compressor):
    name, package = "xz", "xz-utils"
    number = 500000
    pack = ("-T2", "-2", "--block-size=1MiB", "-c")
    unpack = ("-T2", "-d", "-c")


class Zstd(Compressor):
    name = package = "zstd"
    touches = "loaded"
    number = 2500000
    pack = ("-T2", "-7", "-q", "-c")
    unpack = ("-d", "-q", "-c")


class Ffmpeg(Program):
    name = package = "ffmpeg"
    about = "a made-up film, encoded and decoded in two threads"

    def prepare(self):
        self.ffmpeg = found("ffmpeg", self.package)

    def run(self, session):
        exact = ["-flags", "bitexact", "-fflags", "bitexact"]
        quiet = [self.ffmpeg, "-nostdin", "-v", "error", "-threads", "2"]
        film = session.path("film.avi")
        session.run(
            quiet
            + ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25:duration=2"]
            + ["-c:v", "mpeg4", "-q:v", "4", *exact, "-y", film]
        )
        frames = session.run(quiet + ["-i", film, *exact, "-f", "framemd5", "-"])
        if sum(not line.startswith(b"#") for line in frames.splitlines()) != 50:
            raise Failed(f"not 50 frames: {frames[-300:]!r}")
        return digest(film) + frames


class Git(Program):
    name = package = "git"
    files = 60
    about = "a repository: commits, a branch merged, repacked, checked"

    def prepare(self):
        self.git = found("git", self.package)

    def write_files(self, folder, seed):
        for n in range(self.files):
            name = os.path.join(folder, f"d{n % 17}", f"f{n}")
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "w", encoding="utf-8") as file:
                file.write("\n".join(words(seed * 1000 + n % 50, 400 + n)))

    def run(self, session):
        folder = session.path("repository")
        who = {
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": session.folder,
            "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
            "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
        }
        for role in ("AUTHOR", "COMMITTER"):
            who.update({f"GIT_{role}_NAME": "A", f"GIT_{role}_EMAIL": "a@b"})

        def git(*arguments):
            return session.run([self.git, "-C", folder, *arguments], env=who)

        session.aside([self.git, "init", "-q", "-b", "main", folder], env=who)
        for seed in (1, 2):
            self.write_files(folder, seed)
            git("add", ".")
            git("commit", "-q", "-m", f"commit {seed}")
        git("-c", "pack.threads=2", "repack", "-adfq")
        git("fsck", "--full", "--strict")
        if git("status", "--porcelain"):
            raise Failed("the repository isn't what was committed")
        return git("rev-parse", "HEAD") + git("log", "--stat", "--oneline")


ALL = (Gcc, Clang, Sqlite, Sort, Xz, Zstd, Ffmpeg, Git)
