"""Processes that begin with torch and attlas loaded: forks of a process that has done nothing else.

Python and torch take seconds to start. Tests of what a process does, and not of how it starts, are
spared them.
"""

import atexit
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from select import select
from subprocess import DEVNULL, PIPE
from types import ModuleType
from typing import IO, Self

NUMBER = 16  # bytes of a number that is handed over


class WarmProcess:
    """`python -m attlas arguments…`, and of `subprocess.Popen` what the tests use of it.

    With `code` it is `python -c code arguments…`; of `loaded` it begins with more modules loaded. A
    standard stream is an open file, `DEVNULL`, or `PIPE`, whose other end is read as text.
    """

    stdin: IO[str]
    stdout: IO[str]
    stderr: IO[str]

    def __init__(
        self,
        *arguments: object,
        code: str | None = None,
        loaded: tuple[str, ...] = (),
        stdin: int = DEVNULL,
        stdout: int = DEVNULL,
        stderr: int = DEVNULL,
        env: Mapping[str, str] = os.environ,
        start_new_session: bool = False,
    ) -> None:
        self.returncode: int | None = None
        given, self._pipes = [], list[IO[str]]()
        for name, file in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
            given.append(self._opened(name, file))
        self.pid, self._status = _started(
            _server(*loaded),
            [*map(str, arguments)],
            code,
            dict(env),
            start_new_session,
            [0, 1, 2],
            given,
        )
        for file in given:
            os.close(file)

    def _opened(self, name: str, file: int) -> int:
        if file == DEVNULL:
            return os.open(os.devnull, os.O_RDWR)
        if file != PIPE:
            return os.dup(file)
        reading, writing = os.pipe()
        ours, theirs = (writing, reading) if name == "stdin" else (reading, writing)
        self._pipes.append(os.fdopen(ours, "w" if name == "stdin" else "r", encoding="utf-8"))
        setattr(self, name, self._pipes[-1])
        return theirs

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

    def communicate(self) -> tuple[str, str]:
        """What comes through its two pipes, which it does not fill; it is waited for."""
        found = self.stdout.read(), self.stderr.read()
        self.wait()
        return found

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`python -c code arguments…`, to its end. No checker of types and shapes is at work there."""
    with WarmProcess(*arguments, code=code, stdout=PIPE, stderr=PIPE) as process:
        out, errors = process.communicate()
    return subprocess.CompletedProcess([], process.wait(), out, errors)


def ranks(count: int, *words: object, code: str | None = None) -> tuple[list[int], str]:
    """The exit codes of so many processes of attlas, or of this code, and what they print.

    They find in their environment what torchrun gives them.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    common = {**os.environ, **address, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+") as output:
        processes = [
            WarmProcess(
                *words, code=code, stdout=output.fileno(), stderr=output.fileno(),
                env={
                    **common, "RANK": str(rank), "LOCAL_RANK": str(rank),
                    "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
                },
            )
            for rank in range(count)
        ]  # fmt: skip
        codes = [process.wait() for process in processes]
        output.seek(0)
        return codes, output.read()


def shell(line: str, text: bytes | None = None, *, cold: bool = False) -> tuple[int, str]:
    """Run a line of bash that calls `attlas`; its exit code and its errors.

    With `cold` Python begins where the command does, and finds the streams as they are there.
    """
    server = _server()
    words = [sys.executable, "-I", "-S", __file__, "command", str(server.fileno())]
    if cold:
        words = [sys.executable, "-m", "attlas"]
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'attlas() {{ {shlex.join(words)} "$@"; }}\n{line}'],
        input=text,
        capture_output=True,
        pass_fds=[server.fileno()],
    )
    return done.returncode, done.stderr.decode()


def _started(
    server: socket.socket,
    arguments: list[str],
    code: str | None,
    environment: dict[str, str],
    new_session: bool,
    numbers: list[int],
    streams: list[int],
) -> tuple[int, int]:
    """The id of a new process with these standard streams, and what tells its exit code."""
    request = [arguments, code, environment, os.getcwd(), new_session, numbers]
    reading, writing = os.pipe()
    socket.send_fds(server, [json.dumps(request).encode()], [*streams, writing])
    os.close(writing)
    return int(os.read(reading, NUMBER)), reading


def _command(server: socket.socket, arguments: list[str]) -> None:
    """Be the command in a shell: with the streams that are open here, to the same end."""
    open_here = [number for number in range(3) if _is_open(number)]
    _, status = _started(server, arguments, None, dict(os.environ), False, open_here, open_here)
    for number in open_here:  # a reader at the other end waits for the process, not for this one
        os.close(number)
    code = int(os.read(status, NUMBER))
    os._exit(code if code >= 0 else 128 - code)  # as a shell tells a signal


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@cache
def _server(*loaded: str) -> socket.socket:
    """Where processes are asked for that begin with these modules loaded, too."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, __file__, "server", str(theirs.fileno()), *loaded],
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


def _served(control: socket.socket) -> str | None:
    """Start a process for each request; return in each of them the code that it runs, and end
    where none can come.
    """
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
    arguments, program, environment, folder, new_session, numbers = json.loads(message)
    for number, stream in zip(numbers, streams, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    _open_streams(numbers)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if new_session:
        os.setsid()
    sys.argv = ["attlas" if program is None else "-c", *arguments]
    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS", "1")))
    return program


def _open_streams(numbers: list[int]) -> None:
    """Make the standard streams anew, as Python does where it begins; the others are closed."""
    for number, (name, mode, buffering, errors) in enumerate(
        (
            ("stdin", "r", -1, "strict"),
            ("stdout", "w", -1, "strict"),
            ("stderr", "w", 1, "backslashreplace"),
        )
    ):
        stream = None
        if number in numbers:
            newline = "\n" if mode == "w" else None
            stream = open(  # noqa: SIM115
                number, mode, buffering, "utf-8", errors, newline, closefd=False
            )
        else:
            os.close(number)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__" and sys.argv[1] == "command":
    _command(socket.socket(fileno=int(sys.argv[2])), sys.argv[3:])
elif __name__ == "__main__":
    sys.path.pop(0)  # this folder, which is none of attlas
    import torch
    import torch.distributed.fsdp
    import torch.distributed.nn

    from attlas.__main__ import main
    from attlas.jobs import translate_files  # noqa: F401
    from attlas.training import trainer  # noqa: F401

    for name in sys.argv[3:]:
        import_module(name)
    code = _served(socket.socket(fileno=int(sys.argv[2])))
    if code is None:
        main()
    else:
        sys.modules["__main__"] = ModuleType("__main__")
        exec(code, vars(sys.modules["__main__"]))
