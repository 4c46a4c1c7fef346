"""Serving the explorer on one's own machine."""

import contextlib
import errno
import os
import socket
import sys
import webbrowser
from collections.abc import Callable

import uvicorn

from attlas.errors import AttlasError
from attlas.explorer.application import app
from attlas.explorer.host import spelt
from attlas.explorer.looking import Looking
from attlas.recording import Trace

PORT = 8642


def serve(
    shown: Looking | Trace,
    *,
    name: str | None = None,
    host: str = "127.0.0.1",
    port: int = PORT,
    open_browser: bool = True,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a translator, or a trace, until Ctrl-C; a translation under way is finished first.

    name: what the page calls a trace. port: 0 = any free one. open_browser: whether to open
    the page, where there is a screen. ready: called once with the URL, when the server listens.
    Errors: `AttlasError` where the host is unknown, or the port is taken or not allowed.
    """
    with _listen(host, port) as listening:
        address, number = listening.getsockname()[:2]
        config = uvicorn.Config(
            app(shown, hosts=[host, address], name=name),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            proxy_headers=False,  # nothing stands between the page and us
        )
        url = _url(host, address, number)
        if ready is not None:
            ready(url)
        if open_browser and _has_screen():
            webbrowser.open(url)
        # uvicorn ends in order on Ctrl-C and then raises it once more: here it is the way out.
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens: who connects from now on is answered, if a moment later."""
    if not 0 <= port <= 65535:
        raise AttlasError("a port from 0 to 65535", str(port), "0 takes any free one")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError):
        raise AttlasError(
            "a host of this machine", repr(host), "127.0.0.1 is seen by this machine alone"
        ) from None
    opened = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere this option would let two servers share a port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(128)
    except OSError as error:
        opened.close()
        raise _explained(error, host, port) from None
    return opened


def _explained(error: OSError, host: str, port: int) -> AttlasError:
    if error.errno == errno.EADDRINUSE:
        return AttlasError(
            f"a free port on {host}",
            f"port {port}, which another program uses",
            "choose another port, or 0 for any free one",
        )
    if error.errno == errno.EACCES:
        return AttlasError(
            "a port that you may open", f"port {port}", "choose one from 1024 to 65535"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return AttlasError(
            "an address of this machine", host, "127.0.0.1 is seen by this machine alone"
        )
    return AttlasError(f"to listen on {host}, port {port}", str(error), "try 127.0.0.1 and port 0")


def _url(host: str, address: str, port: int) -> str:
    """What to open: by the host's name, or where its address is every one, this machine's own."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(spelt(address), host)
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def _has_screen() -> bool:
    """Whether a browser would open in a window, rather than take over the terminal."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
