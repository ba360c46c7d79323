# SPDX-License-Identifier: BSD-2-Clause
"""One run of a program in one way: bare, or with a preload library.

A Session starts commands, adds up what they took, and ends what it started.  Wall and
CPU time are those of commands that were started as timed: CPU time is what the kernel
has counted for a process and the children it waited for (wait4), so a server's is known
when it has ended.  Every process has a session of its own, and a limit after which that
is killed, so nothing that a test starts stays.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

LIMIT_S = 120  # for what takes a few: a hang, not a slow machine
NOBODY = 65534


class Failed(Exception):
    """The program, or its output, isn't as it must be."""


class Absent(Exception):
    """The machine lacks what the program needs."""


def found(name, package):
    """The path of a program of a Debian package."""
    places = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    path = shutil.which(name, path=places)
    if not path:
        raise Absent(f"no {name} (Debian's package {package})")
    return os.path.realpath(path) if package == "postgresql" else path


def last_lines(text, number=12):
    return "\n".join(text.decode("utf-8", "replace").splitlines()[-number:])


class Process:
    """What was started, and has to end."""

    def __init__(self, session, argv, stdin=None, timed=False, **options):
        self.session, self.argv, self.timed = session, argv, timed
        self.out = tempfile.TemporaryFile(dir=session.folder)
        self.errors = tempfile.TemporaryFile(dir=session.folder)
        self.begun = time.monotonic()
        self.popen = subprocess.Popen(
            argv,
            stdin=stdin or subprocess.DEVNULL,
            stdout=self.out,
            stderr=self.errors,
            start_new_session=True,
            **options,
        )
        session.processes.append(self)

    def alive(self):
        return self.popen.returncode is None

    def kill(self):
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.popen.pid, signal.SIGKILL)

    def wait(self, limit=LIMIT_S):
        """Its exit status, below 0 a signal's; what it took is added up."""
        late = threading.Timer(limit, self.kill)
        late.daemon = True
        late.start()
        _, status, used = os.wait4(self.popen.pid, 0)
        ended = time.monotonic()
        late.cancel()
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        if self.timed:
            self.session.cpu += used.ru_utime + used.ru_stime
        self.took = ended - self.begun
        return self.popen.returncode

    def said(self, file=None):
        file = file or self.out
        file.seek(0)
        return file.read()

    def why(self, status):
        text = last_lines(self.said() + self.said(self.errors))
        return f"{' '.join(self.argv)[:200]}: exit status {status}\n{text}"

    def finish(self, limit=LIMIT_S):
        """Waits for it, and for a good end."""
        status = self.wait(limit)
        if status:
            raise Failed(self.why(status))
        return self.said()


class Session:
    """folder: of this run alone, for all that the program makes."""

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.wall = self.cpu = 0.0
        self.processes = []

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o755)
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            if process.alive():
                process.wait()
            process.out.close()
            process.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def surroundings(self, more=None, served=True):
        """What a program finds in its environment."""
        names = ("PATH", "HOME", "LANG", "TMPDIR")
        kept = {k: os.environ[k] for k in names if k in os.environ}
        kept.update(LC_ALL="C.UTF-8", TZ="UTC")
        return {**kept, **(self.environment if served else {}), **(more or {})}

    def start(self, argv, timed=False, served=True, nobody=False, env=None, **more):
        options = {"cwd": self.folder, "env": self.surroundings(env, served)}
        if nobody and os.geteuid() == 0:
            options.update(user=NOBODY, group=NOBODY, extra_groups=[])
        return Process(self, argv, timed=timed, **options, **more)

    def run(self, argv, limit=LIMIT_S, **options):
        """The program's output; timed, as what is measured is, unless said."""
        options.setdefault("timed", True)
        process = self.start(argv, **options)
        said = process.finish(limit)
        if options["timed"]:
            self.wall += process.took
        return said

    def aside(self, argv, **options):
        """A command that isn't measured and not preloaded into: a check, a client."""
        return self.run(argv, timed=False, served=False, **options)

    def serve(self, argv, ready, **options):
        """A server, when ready() doesn't fail any more."""
        process = self.start(argv, timed=True, **options)
        until = time.monotonic() + LIMIT_S
        while True:
            try:
                ready()
                return process
            except OSError as error:
                if process.popen.pid and os.waitid(
                    os.P_PID, process.popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
                ):
                    raise Failed(process.why(process.wait())) from error
                if time.monotonic() > until:
                    raise Failed(f"{argv[0]} isn't ready: {error}") from error
                time.sleep(0.005)

    def stop(self, server, number=signal.SIGTERM, good=(0,)):
        """Asks a server to end, and waits for that."""
        os.kill(server.popen.pid, number)
        status = server.wait()
        if status not in good:
            raise Failed(server.why(status))

    @contextlib.contextmanager
    def timing(self):
        begun = time.monotonic()
        yield
        self.wall += time.monotonic() - begun
