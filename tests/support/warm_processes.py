"""Processes that begin with torch and attlas loaded: forks of a process that has done nothing else.

Python and torch take seconds to start. Tests of what a process does, and not of how it starts, are
spared them.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from select import select
from subprocess import DEVNULL, PIPE
from typing import IO, Self

NUMBER = 16  # bytes of a number that is handed over


class WarmProcess:
    """`python -m attlas arguments…`, and of `subprocess.Popen` what the tests use of it.

    A standard stream is an open file, `DEVNULL`, or `PIPE`, whose other end is read as text.
    """

    def __init__(
        self,
        *arguments: object,
        stdin: int = DEVNULL,
        stdout: int = DEVNULL,
        stderr: int = DEVNULL,
        env: Mapping[str, str] = os.environ,
        start_new_session: bool = False,
    ) -> None:
        self.returncode: int | None = None
        self._pipes: list[IO[str]] = []
        request = [[*map(str, arguments)], dict(env), os.getcwd(), start_new_session]
        reading, writing = os.pipe()
        given = [self._opened(file) for file in (stdin, stdout, stderr)]
        socket.send_fds(_server(), [json.dumps(request).encode()], [*given, writing])
        for file in (*given, writing):
            os.close(file)
        self._status = reading
        self.pid = int(os.read(reading, NUMBER))

    def _opened(self, file: int) -> int:
        if file == DEVNULL:
            return os.open(os.devnull, os.O_RDWR)
        if file == PIPE:
            reading, writing = os.pipe()
            self._pipes.append(os.fdopen(reading, encoding="utf-8"))
            return writing
        return os.dup(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        for pipe in self._pipes:
            pipe.close()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self.returncode is None and not select([self._status], [], [], 0)[0]:
            return None
        return self.wait()

    def wait(self, timeout: float = 600) -> int:
        """The exit code, negative for a signal."""
        if self.returncode is None:
            if not select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("attlas", timeout)
            self.returncode = int(os.read(self._status, NUMBER))
            os.close(self._status)
        return self.returncode

    def printed(self) -> str:
        """What comes through its only pipe; it is waited for."""
        (pipe,) = self._pipes
        with pipe:
            text = pipe.read()
        self.wait()
        return text

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _server() -> socket.socket:
    """Where processes are asked for."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, __file__, str(theirs.fileno())],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=DEVNULL,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _served(control: socket.socket) -> None:
    """Start a process for each request; return in each of them, and end where none can come."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those in between
    while True:
        message, files, *_ = socket.recv_fds(control, 2**20, 4)
        if not message:
            sys.exit()
        if not os.fork():
            break
        for file in files:
            os.close(file)
    # In between: it tells how the process ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    control.close()
    *streams, status = files
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        os.write(status, b"%*d" % (NUMBER, child))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(status, b"%*d" % (NUMBER, code))
        os._exit(0)
    os.close(status)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    arguments, environment, folder, new_session = json.loads(message)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if new_session:
        os.setsid()
    sys.argv = ["attlas", *arguments]
    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS", "1")))


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, which is none of attlas
    import torch
    import torch.distributed.fsdp
    import torch.distributed.nn

    from attlas.__main__ import main
    from attlas.jobs import translate_files  # noqa: F401
    from attlas.training import trainer  # noqa: F401

    _served(socket.socket(fileno=int(sys.argv[1])))
    main()
