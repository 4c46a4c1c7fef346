"""The server, asked over sockets of its own: by who is slow, has gone, or asks for too much."""

import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn

from attlas.explorer import backends as translating
from attlas.explorer import cancellation as listening
from attlas.explorer import serve, server
from attlas.inference import Translator
from support.backwards import Backwards, Watched
from support.small_translators import small_translator

HEAD = b"Host: localhost\r\n"


@dataclass
class Served:
    """A server that runs, and where."""

    port: int
    connections: set[Any]

    def open(self) -> socket.socket:
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        opened.settimeout(30)
        return opened

    def ask(self, raw: bytes) -> tuple[int, dict[str, Any]]:
        """The status and the JSON that come for these bytes."""
        with self.open() as opened:
            opened.sendall(raw)
            return answer(opened)


def question(text: str, rest: bytes = b"Connection: close\r\n") -> bytes:
    body = json.dumps({"text": text}).encode()
    kind = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    return b"POST /api/translate HTTP/1.1\r\n" + HEAD + kind + rest + b"\r\n" + body


def answer(opened: socket.socket) -> tuple[int, dict[str, Any]]:
    """What comes until the server ends the connection."""
    came = b""
    while part := opened.recv(1 << 16):
        came += part
    head, _, body = came.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@contextlib.contextmanager
def served(translator: Any) -> Iterator[Served]:
    """`serve`, in a thread."""
    run, urls = uvicorn.Server.run, queue.Queue[str]()
    started: list[uvicorn.Server] = []

    def noted(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
        started.append(self)
        run(self, sockets=sockets)

    def work() -> None:
        serve(translator, port=0, open_browser=False, ready=urls.put)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.Server, "run", noted)
        thread = threading.Thread(target=work)
        thread.start()
        port = int(urls.get(timeout=60).rsplit(":", 1)[1].strip("/"))
        until(lambda: bool(started) and started[0].started)
    try:
        yield Served(port, started[0].server_state.connections)
    finally:
        started[0].should_exit = True
        thread.join(timeout=60)
        assert not thread.is_alive()


def until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(scope="module")
def plain() -> Iterator[Served]:
    with served(Backwards()) as running:
        yield running


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /?\xff HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"GET /api/model?a=\xc3\xa9 HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"GET /\x80 HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HEAD + b"A\x00: b\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # as TLS begins
        b"POST /api/translate HTTP/1.1\r\n" + HEAD + b"Content-Length: -1\r\n\r\n",
        b"POST /api/translate HTTP/1.1\r\n" + HEAD + b"Content-Length: 9" + b"9" * 40 + b"\r\n\r\n",
        b"POST /api/translate HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
    ],
)
def test_what_is_no_request_is_reported_in_json(plain: Served, raw: bytes) -> None:
    status, reported = plain.ask(raw)
    assert 400 <= status < 600
    assert set(reported) == {"expected", "got", "hint"}


@pytest.mark.parametrize("rest", [b"Connection: close\r\n", b"Content-Encoding: gzip\r\n"])
def test_a_body_whose_chunks_are_none_ends_the_connection(plain: Served, rest: bytes) -> None:
    head = b"POST /api/translate HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\n" + rest
    status, _ = plain.ask(head + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n")
    assert status == 400


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"HEAD / HTTP/1.1", 200),
        (b"HEAD /api/model HTTP/1.1", 200),
        (b"HEAD /nothing HTTP/1.1", 404),
        (b"OPTIONS * HTTP/1.1", 404),
        (b"OPTIONS /api/model HTTP/1.1", 405),
        (b"CONNECT evil.example:80 HTTP/1.1", 404),
        (b"TRACE / HTTP/1.1", 405),
        (b"BREW / HTTP/1.1", 405),
        (b"GET http://evil.example/ HTTP/1.1", 404),
        (b"GET /%00 HTTP/1.1", 404),
        (b"GET /" + b"%2e" * 3_000 + b" HTTP/1.1", 404),
        (b"GET /" + b"a/" * 3_000 + b" HTTP/1.1", 404),
    ],
)
def test_other_methods_and_addresses_get_an_answer(plain: Served, line: bytes, status: int) -> None:
    with plain.open() as opened:
        opened.sendall(line + b"\r\n" + HEAD + b"Connection: close\r\n\r\n")
        came = b""
        while part := opened.recv(1 << 16):
            came += part
    head, _, body = came.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    if line.startswith(b"HEAD"):
        assert body == b""
    else:
        assert set(json.loads(body)) == {"expected", "got", "hint"}


def test_an_upgrade_to_a_web_socket_is_not_made(plain: Served) -> None:
    with plain.open() as opened:
        opened.sendall(
            b"GET /api/nothing HTTP/1.1\r\n" + HEAD + b"Connection: upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
        )
        assert opened.recv(1 << 16).startswith(b"HTTP/1.1 404")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(server, "_TO_ASK", 1.0)
    monkeypatch.setattr(server, "_TO_READ", 1.0)
    with served(Backwards()) as running:
        yield running


GET = b"GET /api/model HTTP/1.1\r\n" + HEAD + b"\r\n"
WHOLE = question("red house", b"")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: local",
        WHOLE[:-5],
        GET + b"GET /api",  # of the second request
        GET + WHOLE[:-5],
        WHOLE + b"P",
        b"POST /nothing HTTP/1.1\r\n" + HEAD + b"Content-Length: 99999999\r\n\r\n",
    ],
)
@pytest.mark.parametrize("trickling", [False, True])
def test_a_connection_ends_that_does_not_ask_in_time(
    impatient: Served, sent: bytes, trickling: bool
) -> None:
    until(lambda: not impatient.connections)
    with impatient.open() as opened:
        opened.sendall(sent)
        until(lambda: bool(impatient.connections))
        end = time.monotonic() + 30
        while trickling and impatient.connections:
            assert time.monotonic() < end
            with contextlib.suppress(OSError):  # it has ended
                opened.sendall(b"x")
            time.sleep(0.05)
        until(lambda: not impatient.connections)


def test_who_asks_too_slowly_is_reported(impatient: Served) -> None:
    status, reported = impatient.ask(b"GET / HTTP/1.1\r\nHo")
    assert (status, reported["got"]) == (408, "a part of one")


def test_who_asks_in_time_is_answered_on_the_same_connection(impatient: Served) -> None:
    with impatient.open() as opened:
        for number in range(5):
            opened.sendall(question(f"text {number}", b""))
            came = b""
            while not came.endswith(b"}"):
                came += opened.recv(1 << 16)
            assert f"{number} txet".encode() in came or f"txet {number}".encode() in came
            time.sleep(0.3)  # together longer than a request may take


def test_a_search_may_take_longer_than_a_question(impatient: Served) -> None:
    class Slow(Backwards):
        def __call__(self, text: str, prefix: str = "") -> Watched:
            time.sleep(1.5)
            return super().__call__(text, prefix)

    with served(Slow()) as running:
        assert running.ask(question("red"))[1]["text"] == "der"


def test_a_connection_ends_whose_answer_nobody_reads(impatient: Served) -> None:
    class Long(Backwards):
        def __call__(self, text: str, prefix: str = "") -> Watched:
            return Watched("x" * 50_000_000, ("a",), ("a",), None, blank="none")

    with served(Long()) as running, running.open() as opened:
        opened.sendall(question("red"))
        until(lambda: bool(running.connections))
        until(lambda: not running.connections)
    # Who reads it gets it whole, slowly too.
    with served(Long()) as running, running.open() as opened:
        opened.sendall(question("red"))
        size = 0
        while part := opened.recv(1 << 20):
            size += len(part)
            if size < 20 << 20:
                time.sleep(0.05)
    assert size > 50_000_000


def test_there_are_only_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 3)
    with served(Backwards()) as running, contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(running.open())
        until(lambda: len(running.connections) == 3)
        with running.open() as opened:
            status, reported = answer(opened)
        assert (status, reported["expected"]) == (503, "at most 3 connections")
        stack.close()
        until(lambda: not running.connections)
        assert running.ask(question("red"))[0] == 200


@dataclass
class Endless(Backwards):
    """Searches until it is told to end, where the text says so."""

    steps: int = 0
    ended: list[str] = field(default_factory=list)

    def bounded(self, *, source: int, target: int, before_step: Callable[[], None]) -> Any:
        def translate(text: str, prefix: str = "") -> Watched:
            try:
                while text.startswith("endless"):
                    self.steps += 1
                    before_step()
                    time.sleep(0.002)
                for _ in range(20):
                    before_step()
                return self(text, prefix)
            finally:
                self.ended.append(text)

        return translate


def test_a_search_ends_when_nobody_waits_for_it() -> None:
    translator = Endless()
    with served(translator) as running:
        with running.open() as opened:
            opened.sendall(question("endless"))
            until(lambda: translator.steps > 3)
        until(lambda: translator.ended == ["endless"])
        assert running.ask(question("red"))[1]["text"] == "der"


def test_a_short_search_is_not_held_up_by_a_long_one() -> None:
    translator = Endless()
    with served(translator) as running:
        with running.open() as one, running.open() as other:
            one.sendall(question("endless one"))
            other.sendall(question("endless other"))
            until(lambda: translator.steps > 20)
            assert running.ask(question("red"))[1]["text"] == "der"
            assert translator.ended == ["red"]
        until(lambda: len(translator.ended) == 3)


def test_only_so_many_texts_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translating, "_MOST_WAITING", 1)
    translator = Endless()
    with served(translator) as running, contextlib.ExitStack() as stack:
        for number in range(translating._AT_ONCE + 1):
            opened = stack.enter_context(running.open())
            opened.sendall(question(f"endless {number}"))
        until(lambda: translator.steps > 20 and len(running.connections) == 5)
        status, reported = running.ask(question("red"))
        assert (status, reported["expected"]) == (503, "at most 1 texts that wait")
        stack.close()  # and soon there is room
        until(lambda: running.ask(question("red"))[0] == 200)


def untrained() -> Translator:
    return small_translator("additive", text="abcdefghij", num_beams=2)


def test_a_text_of_too_many_tokens_is_refused_and_a_translation_is_cut_off_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(translating, "MOST_WRITTEN", 30)
    with served(untrained()) as running:
        status, reported = running.ask(question("a" * 1_990))
        assert status == 400
        assert reported["expected"] == "a text of at most 512 tokens"
        assert reported["got"] == "1,990"
        status, reported = running.ask(question("a" * 512))
        assert status == 200
        assert len(reported["source"]) == 513
        assert len(reported["target"]) <= 31
        assert len(reported["target"]) < 30 or "did not end" in reported["remarks"][0]


def test_freed_memory_is_given_back_after_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bool] = []
    monkeypatch.setattr(listening, "malloc_trim", lambda: given.append(True))
    with served(Backwards()) as running:
        map_ = running.ask(question("red house"))[1]["map"]
        assert given == [True]
        with running.open() as opened:
            opened.sendall(b"GET /api/maps/%s/0 HTTP/1.1\r\n" % map_.encode() + HEAD + b"\r\n")
            assert opened.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert given == [True, True]
