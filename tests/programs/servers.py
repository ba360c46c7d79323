# SPDX-License-Identifier: BSD-2-Clause
"""Servers, each asked by a client that isn't preloaded into.

They listen on Unix sockets in the session's folder; nginx, whose load comes from wrk,
on a loopback port that was free.  What is timed is the load; the CPU time is the
server's own, from its start to its end.
"""

import glob
import hashlib
import os
import re
import socket
import time
import urllib.request

from program import Program
from session import NOBODY, Absent, Failed, found


def connect(path):
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(60)
    try:
        link.connect(path)
    except OSError:
        link.close()
        raise
    return link


class Client:
    """A connection over which lines and counted bytes go."""

    def __init__(self, path):
        self.link = connect(path)
        self.file = self.link.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.link.close()

    def send(self, data):
        self.link.sendall(data)

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise Failed("the server has closed the connection")
        return line[:-2]

    def bytes(self, number):
        data = self.file.read(number + 2)
        if len(data) != number + 2:
            raise Failed("the server has closed the connection")
        return data[:-2]


# ---- Redis ----


class Redis(Client):
    """Of its protocol what is asked here."""

    def ask(self, *words):
        self.send_only(*words)
        return self.answer()

    def send_only(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        parts = [b"*%d\r\n" % len(words)]
        parts += [b"$%d\r\n%s\r\n" % (len(w), w) for w in words]
        self.send(b"".join(parts))

    def answer(self):
        line = self.line()
        if line[:1] == b"-":
            raise Failed(f"redis: {line.decode()}")
        if line[:1] == b"$":
            return None if line == b"$-1" else self.bytes(int(line[1:]))
        return int(line[1:]) if line[:1] == b":" else line[1:]


class RedisServer(Program):
    package, touches, same = "redis-server", "served", False

    def prepare(self):
        self.server = found("redis-server", self.package)
        self.benchmark = found("redis-benchmark", "redis-tools")
        self.check = found("redis-check-rdb", "redis-tools")

    def start(self, session, more=(), served=True):
        path = session.path("socket")
        argv = [self.server, "--port", "0", "--unixsocket", path, "--save", ""]
        argv += ["--dir", session.folder, "--dbfilename", "dump.rdb", *more]
        return path, session.serve(argv, lambda: connect(path).close(), served=served)

    def end(self, session, path, server):
        with Redis(path) as client:
            client.send_only("SHUTDOWN", "NOSAVE")
            if server.wait():
                raise Failed(server.why(server.popen.returncode))


class RedisSet(RedisServer):
    name = "redis"
    about = "100 KB SET by redis-benchmark, each to a key of its own"
    warm_mib = 768
    bytes, number, keys = 100000, 4000, 10**9

    def run(self, session):
        path, server = self.start(session)
        with session.timing():
            said = session.aside(
                [self.benchmark, "-s", path, "-t", "set", "-c", "8", "--csv"]
                + ["-d", str(self.bytes), "-n", str(self.number), "-r", str(self.keys)]
            )
        if b'"SET","' not in said:
            raise Failed(f"redis-benchmark: {said[-300:]!r}")
        with Redis(path) as client:
            self.look(client)
        self.end(session, path, server)
        return b""

    def look(self, client):
        """redis-benchmark's values are one letter, or one string all the same."""
        size = client.ask("DBSIZE")
        if not 0.98 * self.number <= size <= self.number:
            raise Failed(f"{size} keys after {self.number} SETs")
        first = None
        for _ in range(50):
            value = client.ask("GET", client.ask("RANDOMKEY"))
            first = first or value
            if value is None or len(value) != self.bytes or value != first:
                raise Failed("a value isn't what was set")


class RedisSave(RedisServer):
    name = "redis-save"
    about = "BGSAVE while values are replaced; the dump is loaded again"
    keys, rounds = 600, 3

    def value(self, key, version):
        """100 KB that say themselves whether they are whole."""
        seed = hashlib.sha256(f"{key} {version}".encode()).hexdigest().encode()
        return b"%d %d " % (key, version) + seed * 1562

    def whole(self, key, value):
        numbers = re.match(rb"(\d+) (\d+) ", value or b"")
        if not numbers or int(numbers[1]) != key:
            raise Failed(f"key {key} has another's value: {(value or b'')[:40]!r}")
        if value != self.value(key, int(numbers[2])):
            raise Failed(f"key {key}: the value is torn")
        return int(numbers[2])

    def write_all(self, client, version):
        for key in range(self.keys):
            client.ask("SET", key, self.value(key, version))

    def save_while_writing(self, client):
        """The child saves what was there at one moment: no version is newer."""
        saved = client.ask("LASTSAVE")
        client.ask("BGSAVE")
        version, saving = 0, True
        while saving:
            version += 1
            self.write_all(client, version)
            said = client.ask("INFO", "persistence")
            saving = b"rdb_bgsave_in_progress:1" in said
        if b"rdb_last_bgsave_status:ok" not in client.ask("INFO", "persistence"):
            raise Failed("BGSAVE hasn't succeeded")
        if client.ask("LASTSAVE") < saved:
            raise Failed("nothing was saved")

    def run(self, session):
        path, server = self.start(session)
        with session.timing(), Redis(path) as client:
            for _ in range(self.rounds):
                self.write_all(client, 0)
                self.save_while_writing(client)
        with Redis(path) as client:
            for key in range(self.keys):
                self.whole(key, client.ask("GET", key))
        self.end(session, path, server)
        session.aside([self.check, session.path("dump.rdb")])
        self.load(session)
        return b""

    def load(self, session):
        path, server = self.start(session, served=False)
        with Redis(path) as client:
            while b"loading:1" in client.ask("INFO", "persistence"):
                time.sleep(0.01)
            if client.ask("DBSIZE") != self.keys:
                raise Failed("the dump has not all keys")
            versions = {self.whole(k, client.ask("GET", k)) for k in range(self.keys)}
        if versions != {0}:
            raise Failed(f"the dump has values of later: versions {versions}")
        self.end(session, path, server)


# ---- Memcached ----


class Memcached(Program):
    name = package = "memcached"
    same = False
    about = "values of 1 to 200 KB set and read"
    values, rounds = 500, 6

    def prepare(self):
        self.server = found("memcached", self.package)

    def value(self, key):
        return (b"%d " % key) * (500 + key * 7919 % 30000)

    def run(self, session):
        path = session.path("socket")
        os.chmod(session.folder, 0o777)
        server = session.serve(
            [self.server, "-s", path, "-a", "777", "-m", "512", "-t", "2"],
            lambda: connect(path).close(),
            nobody=True,
        )
        values = [self.value(key) for key in range(self.values)]
        with session.timing(), Client(path) as client:
            for _ in range(self.rounds):
                for key, value in enumerate(values):
                    client.send(b"set %d 0 0 %d\r\n%s\r\n" % (key, len(value), value))
                    if client.line() != b"STORED":
                        raise Failed(f"key {key} isn't stored")
                for key, value in enumerate(values):
                    self.look(client, key, value)
        session.stop(server)
        return b""

    def look(self, client, key, value):
        client.send(b"get %d\r\n" % key)
        if client.line() != b"VALUE %d 0 %d" % (key, len(value)):
            raise Failed(f"key {key} is gone")
        if client.bytes(len(value)) != value or client.line() != b"END":
            raise Failed(f"key {key}: not what was set")


# ---- Nginx ----

NGINX = """daemon off; worker_processes 1; pid {0}/pid; error_log {0}/error warn;
{2}
events {{ worker_connections 256; }}
http {{
    access_log off; sendfile off; keepalive_requests 1000000;
    client_body_temp_path {0}/t1; proxy_temp_path {0}/t2; fastcgi_temp_path {0}/t3;
    uwsgi_temp_path {0}/t4; scgi_temp_path {0}/t5;
    gzip on; gzip_types text/plain; gzip_comp_level 1;
    types {{ text/plain txt; }}
    server {{ listen 127.0.0.1:{1}; root {0}/files; }}
}}
"""


class Nginx(Program):
    name, package, same = "nginx", "nginx", False
    about = "a file of 64 KB, asked for by wrk over 16 connections, compressed"

    def prepare(self):
        self.server, self.wrk = found("nginx", self.package), found("wrk", "wrk")
        self.text = b"".join(b"line %d of a file\n" % n for n in range(3500))

    def get(self, port, name):
        address = f"http://127.0.0.1:{port}/{name}"
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(address, timeout=60) as answer:
            return answer.read()

    def run(self, session):
        os.mkdir(session.path("files"))
        with open(session.path("files/file.txt"), "wb") as file:
            file.write(self.text)
        with socket.socket() as some:
            some.bind(("127.0.0.1", 0))
            port = some.getsockname()[1]
        user = "user nobody nogroup;" if os.geteuid() == 0 else ""
        with open(session.path("conf"), "w", encoding="utf-8") as file:
            file.write(NGINX.format(session.folder, port, user))
        server = session.serve(
            [self.server, "-p", session.folder, "-c", session.path("conf")],
            lambda: socket.create_connection(("127.0.0.1", port)).close(),
        )
        said = session.aside(
            [self.wrk, "-t1", "-c16", "-d1s", "-H", "Accept-Encoding: gzip"]
            + [f"http://127.0.0.1:{port}/file.txt"]
        ).decode()
        answers, seconds = self.counted(said)
        if self.get(port, "file.txt") != self.text:
            raise Failed("the file isn't what is there")
        session.stop(server, good=(0,))
        # As many answers as would come each time, whatever came in this second.
        session.wall += seconds / answers * 10000
        session.cpu *= 10000 / answers
        return b""

    def counted(self, said):
        if "Socket errors" in said or "Non-2xx" in said:
            raise Failed(f"wrk: {said}")
        found_text = re.search(r"(\d+) requests in ([\d.]+)(ms|s)", said)
        if not found_text or int(found_text[1]) < 1:
            raise Failed(f"wrk: {said}")
        unit = 0.001 if found_text[3] == "ms" else 1
        return int(found_text[1]), float(found_text[2]) * unit


# ---- PostgreSQL ----


class Postgres(Program):
    name, package, same = "postgres", "postgresql", False
    about = "initdb, and pgbench with two clients; all as an ordinary user"
    transactions = 400

    def prepare(self):
        places = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=self.version)
        if not places or not os.access(f"{places[-1]}/initdb", os.X_OK):
            raise Absent(f"no initdb (Debian's package {self.package})")
        self.programs = places[-1]

    @staticmethod
    def version(path):
        return [int(n) for n in re.findall(r"\d+", path)]

    def program(self, name):
        return os.path.join(self.programs, name)

    def run(self, session):
        if os.geteuid() == 0:
            os.chown(session.folder, NOBODY, NOBODY)
        data = session.path("data")
        mine = {"nobody": True, "env": {"PGHOST": session.folder, "PGUSER": "tester"}}
        session.run(
            [self.program("initdb"), "-D", data, "-U", "tester", "-A", "trust"]
            + ["--no-sync", "--no-locale", "-E", "UTF8"],
            **mine,
        )
        server = session.serve(
            [self.program("postgres"), "-D", data, "-k", session.folder, "-h", ""]
            + ["-F", "-c", "autovacuum=off", "-c", "shared_buffers=16MB"],
            lambda: self.ready(session, mine),
            **mine,
        )
        pgbench = [self.program("pgbench"), "-d", "postgres"]
        with session.timing():
            session.aside([*pgbench, "-i", "-q", "-s", "1"], **mine)
            said = session.aside(
                [*pgbench, "-c", "2", "-j", "1", "-t", str(self.transactions), "-n"]
                + ["--random-seed=20"],
                **mine,
            ).decode()
        if f"processed: {2 * self.transactions}/{2 * self.transactions}" not in said:
            raise Failed(f"pgbench: {said}")
        self.look(session, mine)
        session.stop(server)
        return b""

    def ready(self, session, mine):
        try:
            self.ask(session, mine, "SELECT 1")
        except Failed as why:
            raise OSError(str(why)) from why

    def ask(self, session, mine, question):
        psql = [self.program("psql"), "-X", "-At", "-d", "postgres", "-c", question]
        return session.aside(psql, **mine).decode().strip()

    def look(self, session, mine):
        """What went to accounts, tellers and branches is what the history says."""
        sums = self.ask(
            session,
            mine,
            "SELECT (SELECT sum(abalance) FROM pgbench_accounts),"
            "(SELECT sum(tbalance) FROM pgbench_tellers),"
            "(SELECT sum(bbalance) FROM pgbench_branches),"
            "(SELECT sum(delta) FROM pgbench_history),"
            "(SELECT count(*) FROM pgbench_history)",
        ).split("|")
        if len(set(sums[:4])) != 1 or sums[4] != str(2 * self.transactions):
            raise Failed(f"the sums differ: {sums}")


ALL = (RedisSet, RedisSave, Memcached, Nginx, Postgres)
