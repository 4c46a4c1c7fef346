"""Serving the explorer on one's own machine."""

import asyncio
import contextlib
import errno
import json
import logging
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from attlas.errors import AttlasError
from attlas.explorer.messages import error_body
from attlas.explorer.security import HEADERS, is_loopback, normalized_host
from attlas.explorer.site import site

PORT = 8642

_TO_ASK = 20.0  # seconds in which a request has to come, with its body
_TO_READ = 20.0  # seconds in which some of an answer has to be read
_TO_SAY = 0.3  # seconds after Ctrl-C until it is said that an answer is still worked on
_TO_END = 5  # seconds that answers have to come to their end after Ctrl-C
_MOST_CONNECTIONS = 256
_STOPPING = "attlas: stopping; Ctrl-C again stops at once"


def serve_apis(
    apis: Sequence[ASGIApp],
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    open_browser: bool = True,
    ready: Callable[[str], None] | None = None,
    fragment: str = "",
) -> None:
    """Serve what answers for one model or trace, or for several, until Ctrl-C.

    Args:
        apis: See `site.site`.
        host, port, open_browser, ready, fragment: See `serve_site`.

    Raises:
        AttlasError: As `serve_site`.
    """

    def made(hosts: Sequence[str], token: str | None) -> ASGIApp:
        return site(apis, hosts, token=token)

    serve_site(
        made, host=host, port=port, open_browser=open_browser, ready=ready, fragment=fragment
    )


def serve_site(
    make: Callable[[Sequence[str], str | None], ASGIApp],
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    open_browser: bool = True,
    ready: Callable[[str], None] | None = None,
    fragment: str = "",
) -> None:
    """Serve a web application until Ctrl-C.

    Other machines may reach any address but a loopback one, so there the URL holds a token, without
    which no request is answered.

    Args:
        make: What makes it of its hosts and its token; see `site.guarded`.
        port: 0 = any free one.
        open_browser: Whether to open the page, where there is a screen.
        ready: Called once with the URL, when the server listens.
        fragment: What the page opens with, as its links have it after `#`.

    Raises:
        AttlasError: If the host is unknown, or the port is taken or not allowed.
    """
    with _listen(host, port) as listening:
        address, number = listening.getsockname()[:2]
        token = None if is_loopback(address) else secrets.token_urlsafe(24)
        config = uvicorn.Config(
            make([host, address], token),
            http=Connection,
            ws="none",
            log_level="error",  # clients get their errors in the response
            access_log=False,
            server_header=False,
            lifespan="off",
            proxy_headers=False,  # nothing stands between the page and us
            timeout_graceful_shutdown=_TO_END,
        )
        url = _url(host, address, number) + (f"?token={token}" if token else "")
        url += f"#{fragment}" if fragment else ""
        if ready is not None:
            ready(url)
        if open_browser and _has_screen():
            webbrowser.open(url)
        logging.getLogger("uvicorn.error").addFilter(_is_news)
        # uvicorn ends in order on Ctrl-C and then raises it once more: here it is the way out.
        with contextlib.suppress(KeyboardInterrupt):
            _Server(config).run(sockets=[listening])


def _is_news(record: logging.LogRecord) -> bool:
    """Return False for what uvicorn says of answers that are given up, which we asked for."""
    return "timeout graceful shutdown" not in str(record.msg)


class _Server(uvicorn.Server):
    """uvicorn's server, which says that it stops, where an answer is still being worked on."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        saying = asyncio.get_running_loop().call_later(_TO_SAY, self._say)
        try:
            await super().shutdown(sockets)
        finally:
            saying.cancel()

    def _say(self) -> None:
        print(_STOPPING, file=sys.stderr, flush=True)


class Connection(H11Protocol):
    """uvicorn's connection of HTTP/1.1, which ends where the other side does nothing.

    uvicorn waits for a request for as long as the caller likes, and for an answer to be read.
    A connection ends after `_TO_ASK` seconds without a whole request, counted from its beginning or
    from the first byte of the next request, however slowly bytes come in; and after `_TO_READ`
    seconds in which nothing of an answer is read. What is no request gets an error in JSON.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asking: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _MOST_CONNECTIONS:
            some = f"at most {_MOST_CONNECTIONS} connections"
            self._end(503, AttlasError(some, "one more", "close other pages of the explorer"))
            return
        self._asking = self.loop.call_later(_TO_ASK, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_asking()
        self._stop_reading()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look(begun=True)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look(begun=bool(self.conn.trailing_data[0]))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(_TO_READ, self._unread_still)

    def resume_writing(self) -> None:
        self._stop_reading()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        what = AttlasError(
            "a request of HTTP/1.1 in ASCII, of at most 16 KiB before its body",
            "something else",
            "open the address that attlas printed in a browser",
        )
        self._end(400, what)

    def _look(self, begun: bool) -> None:
        """Count the time of a request that has not come whole; begun: some of the next one has."""
        here = self.cycle
        answering = here is not None and not here.response_complete
        coming = here.more_body if answering else begun
        if not coming or self.transport.is_closing():
            self._stop_asking()
        elif self._asking is None:
            self._asking = self.loop.call_later(_TO_ASK, self._too_slow)

    def _too_slow(self) -> None:
        self._asking = None
        what = AttlasError(
            f"a whole request in {_TO_ASK:.0f} seconds", "a part of one", "ask again"
        )
        self._end(408, what)

    def _unread_still(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread >= self._unread:
            self.transport.abort()
            return
        self._unread = unread
        self._reading = self.loop.call_later(_TO_READ, self._unread_still)

    def _stop_asking(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _end(self, status: int, error: AttlasError) -> None:
        """Say what is wrong, where an answer can still be given, and end the connection."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # who waits for the rest of this request waits no more
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps(error_body(error)).encode()
            headers = {
                **HEADERS,
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                "Cache-Control": "no-store",
                "Connection": "close",
            }
            for event in (
                h11.Response(
                    status_code=status,
                    headers=list(headers.items()),
                    reason=HTTPStatus(status).phrase,
                ),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def check_can_listen(host: str, port: int) -> None:
    """Check that a server can listen there now.

    Raises:
        AttlasError: As `serve_site`.
    """
    _listen(host, port).close()


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
            f"port {port}, which is in use, maybe by another `attlas look`",
            "end that one, or choose another; --port 0 takes any free one",
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
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(normalized_host(address), host)
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def _has_screen() -> bool:
    """Whether a browser would open in a window, rather than take over the terminal."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
