import contextlib
import errno
import json
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE

import pytest
import uvicorn
from starlette.testclient import TestClient

from attlas.errors import AttlasError
from attlas.explorer import serve, server
from attlas.explorer.server import _url
from attlas.explorer.site import guarded
from support.backwards import Backwards
from support.warm_processes import WarmProcess

TESTS = Path(__file__).parents[1]

SCRIPT = f"""
import sys, time, warnings
warnings.simplefilter("error")
sys.path.insert(0, {str(TESTS)!r})
from support.backwards import Backwards
from starlette.testclient import TestClient
from attlas.explorer import serve

class Slow(Backwards):
    def __call__(self, text, prefix=""):
        print("translating", flush=True)
        time.sleep(float(text))
        return super().__call__(text, prefix)

serve(Slow(), port=0, open_browser=False, ready=lambda url: print(url, flush=True))
print("ended")
"""

LONG = """
import threading
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from attlas.explorer.cancellation import run_while_connected
from attlas.explorer.server import serve_site
from attlas.explorer.site import guarded

def work(stop):
    print("working", flush=True)
    stop.wait(600)

async def answer(request):
    await run_while_connected(request, work)
    return PlainTextResponse("done")

def made(hosts, token):
    return guarded([Route("/", answer)], hosts, token=token)
"""

signals = pytest.mark.skipif(
    sys.platform == "win32", reason="Ctrl-C cannot be sent to one process there"
)


@contextlib.contextmanager
def serving() -> Iterator[tuple[WarmProcess, str]]:
    """The explorer in a process of its own, and its URL."""
    with WarmProcess(code=SCRIPT, stdout=PIPE, stderr=PIPE) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def translated(url: str, text: str) -> tuple[int, str]:
    """Status and body of the answer."""
    body, kind = json.dumps({"text": text}).encode(), {"Content-Type": "application/json"}
    return answered(urllib.request.Request(f"{url}api/translate", body, kind))


def answered(request: urllib.request.Request | str) -> tuple[int, str]:
    """Status and body of the answer."""
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@signals
def test_it_answers_at_the_address_it_says_and_ctrl_c_ends_it_in_order() -> None:
    with serving() as (process, url):
        assert translated(url, "0")[0] == 200
        process.send_signal(signal.SIGINT)
        out, complaints = process.communicate()
    assert (process.returncode, out, complaints) == (0, "translating\nended\n", "")


@signals
@pytest.mark.slow
@pytest.mark.parametrize(("presses", "status"), [(1, 200), (2, 503)])
def test_ctrl_c_lets_a_translation_finish_and_pressed_twice_does_not(
    presses: int, status: int
) -> None:
    with serving() as (process, url), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(translated, url, "2.5")
        assert process.stdout.readline() == "translating\n"
        for _ in range(presses):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert answer.result(timeout=30)[0] == status
        out, complaints = process.communicate()
    assert (process.returncode, out, complaints) == (0, "ended\n", f"{server._STOPPING}\n")


@signals
@pytest.mark.slow
def test_ctrl_c_gives_up_an_answer_that_takes_long() -> None:
    """As long as it watches whether it is still wanted, as every long work does."""
    code = SCRIPT.replace("class Slow", f"{LONG}\nclass Slow").replace(
        "serve(Slow(), port=0, open_browser=False, ready=", "serve_site(made, port=0, ready="
    )
    with WarmProcess(code=code, stdout=PIPE, stderr=PIPE) as process, ThreadPoolExecutor(1) as pool:
        url = process.stdout.readline().strip()
        answer = pool.submit(answered, url)
        assert process.stdout.readline() == "working\n"
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, complaints = process.communicate()
        assert answer.result(timeout=30)[0] == 503
    assert (process.returncode, out, complaints) == (0, "ended\n", f"{server._STOPPING}\n")
    assert time.monotonic() - begun > server._TO_END


def test_a_port_is_looked_at_before_a_model_is_opened() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AttlasError, match=f"got port {port}, which is in use"):
            server.check_can_listen("127.0.0.1", port)
    server.check_can_listen("127.0.0.1", port)  # and gives it back
    server.check_can_listen("127.0.0.1", port)


def test_an_address_may_say_what_the_page_opens_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server._Server, "run", lambda self, sockets: None)
    urls: list[str] = []
    apis = [guarded([])]
    server.serve_apis(apis, port=0, open_browser=False, ready=urls.append, fragment="text=a%20cat")
    assert urls[0].endswith("/#text=a%20cat")


def test_a_port_in_use_is_reported_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AttlasError, match=f"a free port on 127.0.0.1; got port {port}, which"):
            serve(Backwards(), port=port, open_browser=False)


def refused(host: str, port: int) -> str:
    """What is said of a host and port that are none to listen on."""
    with pytest.raises(AttlasError) as error:
        serve(Backwards(), host=host, port=port, open_browser=False)
    return str(error.value)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(AttlasError, match="expected a port from 0 to 65535"):
        serve(Backwards(), port=port, open_browser=False)


@pytest.mark.parametrize(
    "unknown", [socket.gaierror(socket.EAI_NONAME, "no such name"), UnicodeError("label too long")]
)
def test_a_host_that_nobody_knows_is_refused(
    monkeypatch: pytest.MonkeyPatch, unknown: Exception
) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise unknown

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert refused("lab.example", 80) == (
        "expected a host of this machine; got 'lab.example'; 127.0.0.1 is seen by this machine "
        "alone"
    )


@pytest.mark.parametrize(
    ("number", "reported"),
    [
        (
            errno.EADDRNOTAVAIL,
            "expected an address of this machine; got lab.example; 127.0.0.1 is seen by this "
            "machine "
            "alone",
        ),
        (
            errno.EACCES,
            "expected a port that you may open; got port 80; choose one from 1024 to 65535",
        ),
        (
            errno.ENOBUFS,
            f"expected to listen on lab.example, port 80; got [Errno {errno.ENOBUFS}] why not; try "
            "127.0.0.1 and port 0",
        ),
    ],
)
def test_a_host_and_port_that_cannot_be_listened_on_are_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, number: int, reported: str
) -> None:
    def bind(*_: object) -> None:
        raise OSError(number, "why not")

    found = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("203.0.113.7", 80))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [found])
    monkeypatch.setattr(socket.socket, "bind", bind)
    assert refused("lab.example", 80) == reported


@pytest.mark.parametrize(
    ("platform", "screen", "requested", "opens"),
    [
        ("linux", {}, True, False),
        ("linux", {"DISPLAY": ":0"}, True, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True, True),
        ("linux", {"DISPLAY": ":0"}, False, False),
        ("darwin", {}, True, True),
    ],
)
def test_the_page_is_opened_where_it_is_asked_for_and_there_is_a_screen(
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    screen: dict[str, str],
    requested: bool,
    opens: bool,
) -> None:
    opened: list[str] = []
    served: list[str] = []

    def run(_: object, sockets: list[socket.socket]) -> None:
        served.extend(_url("127.0.0.1", *listening.getsockname()) for listening in sockets)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(sys, "platform", platform)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in screen.items():
        monkeypatch.setenv(name, value)
    reported: list[str] = []
    serve(Backwards(), port=0, open_browser=requested, ready=reported.append)
    assert len(served) == 1
    assert reported == served
    assert opened == (served if opens else [])


@pytest.mark.parametrize(
    ("host", "requested", "status"),
    [
        ("0", "10.0.0.7", 200),  # an old spelling of every address
        ("0", "evil.example", 403),
        ("127.1", "10.0.0.7", 403),
    ],
)
def test_who_may_come_in_follows_from_the_address_that_it_listens_on(
    monkeypatch: pytest.MonkeyPatch, host: str, requested: str, status: int
) -> None:
    assert entered(monkeypatch, host, requested) == [status]


class Mapped(socket.socket):
    """A socket of a machine with IPv6, which not every one is."""

    def getsockname(self) -> tuple[str, int, int, int]:
        return "::ffff:10.0.0.7", 80, 0, 0


@pytest.mark.parametrize(
    ("requested", "status"),
    [("10.0.0.7", 200), ("[::ffff:a00:7]", 200), ("10.0.0.8", 403), ("[::ffff:a00:8]", 403)],
)
def test_an_address_of_ipv4_may_be_written_as_one_of_ipv6(
    monkeypatch: pytest.MonkeyPatch, requested: str, status: int
) -> None:
    monkeypatch.setattr(server, "_listen", lambda host, port: Mapped())
    assert entered(monkeypatch, "::ffff:10.0.0.7", requested) == [status]


def entered(monkeypatch: pytest.MonkeyPatch, host: str, requested: str) -> list[int]:
    """What a server of this host answers to who calls it so."""
    answers: list[int] = []

    reported: list[str] = []

    def run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        client = TestClient(server.config.app)
        token = reported[0].partition("?token=")[2]
        headers = {"Host": requested} | ({"Authorization": f"Bearer {token}"} if token else {})
        answers.append(client.get("/api/model", headers=headers).status_code)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    serve(Backwards(), host=host, port=0, open_browser=False, ready=reported.append)
    return answers


@pytest.mark.parametrize(
    ("host", "wants_token"), [("127.0.0.1", False), ("127.1", False), ("0.0.0.0", True)]
)
def test_only_an_address_that_others_can_reach_has_a_token(
    monkeypatch: pytest.MonkeyPatch, host: str, wants_token: bool
) -> None:
    reported: list[str] = []
    statuses: list[int] = []

    def run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        client = TestClient(server.config.app, base_url="http://127.0.0.1")
        statuses.append(client.get("/api/model").status_code)
        statuses.append(client.get(reported[-1][reported[-1].index("/", 7) :]).status_code)
        statuses.append(client.get("/api/model").status_code)  # by the cookie

    monkeypatch.setattr(uvicorn.Server, "run", run)
    for _ in range(2):
        serve(Backwards(), host=host, port=0, open_browser=False, ready=reported.append)
    assert statuses == [401 if wants_token else 200, 200, 200] * 2
    tokens = [url.partition("?token=")[2] for url in reported]
    assert [len(token) >= 32 for token in tokens] == [wants_token] * 2
    assert (tokens[0] != tokens[1]) == wants_token  # a new one each time


@pytest.mark.parametrize(
    ("host", "address", "url"),
    [
        ("127.0.0.1", "127.0.0.1", "http://127.0.0.1:80/"),
        ("lab.example", "10.0.0.7", "http://lab.example:80/"),
        ("::1", "::1", "http://[::1]:80/"),
        ("0.0.0.0", "0.0.0.0", "http://127.0.0.1:80/"),
        ("0", "0.0.0.0", "http://127.0.0.1:80/"),
        ("0:0:0:0:0:0:0:0", "::", "http://[::1]:80/"),
        ("::ffff:0.0.0.0", "::ffff:0.0.0.0", "http://127.0.0.1:80/"),
    ],
)
def test_the_address_to_open_is_one_that_a_browser_takes(host: str, address: str, url: str) -> None:
    assert _url(host, address, 80) == url
