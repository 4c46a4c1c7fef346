import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backwards import Backwards

from attlas.errors import AttlasError
from attlas.explorer import serve
from attlas.explorer.server import _url

HERE = Path(__file__).parent

SCRIPT = """
import time
from backwards import Backwards
from attlas.explorer import serve

class Slow(Backwards):
    def __call__(self, text, prefix=""):
        print("translating", flush=True)
        time.sleep(float(text))
        return super().__call__(text, prefix)

serve(Slow(), port=0, open_browser=False, ready=lambda url: print(url, flush=True))
print("ended")
"""

signals = pytest.mark.skipif(
    sys.platform == "win32", reason="Ctrl-C cannot be sent to one process there"
)


@contextlib.contextmanager
def serving() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The explorer in a process of its own, and its URL."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def translated(url: str, text: str) -> tuple[int, str]:
    """Status and body of the answer."""
    request = urllib.request.Request(
        f"{url}api/translate",
        json.dumps({"text": text}).encode(),
        {"Content-Type": "application/json"},
    )
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
        out, complaints = process.communicate(timeout=30)
    assert (process.returncode, out, complaints) == (0, "translating\nended\n", "")


@signals
@pytest.mark.slow
@pytest.mark.parametrize(("presses", "status"), [(1, 200), (2, 503)])
def test_ctrl_c_lets_a_translation_finish_and_pressed_twice_does_not(
    presses: int, status: int
) -> None:
    with serving() as (process, url), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(translated, url, "2.5")
        assert process.stdout is not None
        assert process.stdout.readline() == "translating\n"
        for _ in range(presses):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert answer.result(timeout=30)[0] == status
        out, complaints = process.communicate(timeout=30)
    assert (process.returncode, out, complaints) == (0, "ended\n", "")


def test_a_port_in_use_is_told_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AttlasError, match=f"a free port on 127.0.0.1; got port {port}, which"):
            serve(Backwards(), port=port, open_browser=False)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(AttlasError, match="wanted a port from 0 to 65535"):
        serve(Backwards(), port=port, open_browser=False)


def test_a_host_that_is_not_this_machine_is_refused() -> None:
    with pytest.raises(AttlasError, match=r"wanted (an address|a host) of this machine"):
        serve(Backwards(), host="203.0.113.7", port=0, open_browser=False)
    with pytest.raises(AttlasError, match="wanted a host of this machine"):
        serve(Backwards(), host="no host at all", port=0, open_browser=False)


def test_the_address_to_open_is_one_that_a_browser_takes() -> None:
    assert _url("127.0.0.1", 80) == "http://127.0.0.1:80/"
    assert _url("::1", 80) == "http://[::1]:80/"
    assert _url("0.0.0.0", 80) == "http://127.0.0.1:80/"
