"""The door of the server: who may come in, and what every answer carries."""

import hashlib
import hmac
import ipaddress
import json
import re
from collections.abc import Collection, Mapping
from urllib.parse import parse_qs, unquote_to_bytes

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attlas.errors import AttlasError
from attlas.explorer.messages import error_body

# A host by which a server is called: a name, or an address.


EVERYWHERE = frozenset({"0.0.0.0", "::"})


def normalized_host(host: str) -> str:
    """The one spelling of a host: a name in small letters, the shortest one of an address.

    An IPv4 address that is written as one of IPv6 (::ffff:127.0.0.1) is that IPv4 address.
    """
    address = _address(host)
    return host.lower() if address is None else str(address)


def is_address(host: str, version: int | None = None) -> bool:
    """Whether it is an IP address (of this version), in whatever spelling of today's."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return version in (None, address.version)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach it."""
    parsed = _address(address)
    return parsed is not None and parsed.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = frozenset({"GET", "HEAD"})
_OTHER_PAGES = frozenset({"cross-site", "same-site"})  # what a browser says in Sec-Fetch-Site

# name[:port], or [address of IPv6][:port], and nothing beside it.
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z._-]+))(?::([0-9]{1,5}))?")
_MOST_PORT = 65535
_HALF_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NOT_WRITTEN = re.compile(rb"[^\x21-\x7e]")  # what an address has to escape
_MOST_HEAD = 16 * 1024  # bytes of a request before its body

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Lets in only who calls the server by its own name, and from its own page.

    A page of another site can make a browser call 127.0.0.1, by a name of its own that it points
    there (DNS rebinding: the Host is not ours) or across origins (the Origin is not ours, or the
    browser says that what it wants is part of another page). Neither gets further than this; a link
    to the page does. Where the server listens on every address, any IP address is its name: an
    address cannot be rebound. Web sockets, which the page has no use for, are closed.

    Where there is a token, only who knows it comes further. The page is opened with it once, at
    /?token=…, and keeps it as a cookie; a program may send it as "Authorization: Bearer …".
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str] = (), *, token: str | None = None
    ) -> None:
        self._inner, self._token = app, token
        self._names = _LOCAL | {normalized_host(host) for host in hosts}
        self._any_address = not EVERYWHERE.isdisjoint(self._names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        refused = self._refusal(scope["method"], Headers(scope=scope))
        status = 403
        if refused is None and (faulty := _fault(scope)):
            status, refused = faulty

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        if refused is None and self._token is not None:
            opened = scope["method"] in _SAFE and scope["path"] == "/"
            shown = parse_qs(scope["query_string"].decode("ascii")).get("token", [""])
            if opened and shown != [""]:
                if _same(shown[0], self._token):
                    await _let_in(self._token, answer)
                    return
                status, refused = 401, _no_token("another one")
            elif not self._known(Headers(scope=scope)):
                status, refused = 401, _no_token("none, or another one")
        if refused is None:
            await self._inner(scope, receive, answer)
        else:
            await _refuse(refused, status, answer)

    def _refusal(self, method: str, headers: Headers) -> AttlasError | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._own(hosts[0]):
            return AttlasError(
                "a request to this server by its own name",
                f"the host {', '.join(hosts) or '(none)'}",
                "open the address that attlas printed",
            )
        origin = None if method in _SAFE else headers.get("origin")
        if origin is not None and origin.lower() != f"http://{hosts[0].lower()}":
            return _from_elsewhere(origin)
        # An image of another page is asked for without an origin.
        site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
        if site in _OTHER_PAGES and mode != "navigate":
            return _from_elsewhere("another page")
        return None

    def _known(self, headers: Headers) -> bool:
        """Whether a request has the token, as a cookie or as a header."""
        assert self._token is not None
        kind, _, given = headers.get("authorization", "").partition(" ")
        name = _cookie(self._token)
        parts = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        tokens = [value for key, _, value in parts if key == name]
        if kind.lower() == "bearer":
            tokens.append(given.strip())
        return any(_same(token, self._token) for token in tokens)

    def _own(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None or int(match[3] or 0) > _MOST_PORT:
            return False
        if match[1] is not None and not is_address(match[1], 6):
            return False
        name = match[1] or match[2]
        return normalized_host(name) in self._names or (self._any_address and is_address(name))


# The token of a server that others can reach.


def _same(given: str, token: str) -> bool:
    """Whether they are equal, in a time that does not say where they differ."""
    return hmac.compare_digest(given.encode(), token.encode())


def _cookie(token: str) -> str:
    """Its name: cookies are shared by all servers of a host, whatever their ports."""
    return f"attlas-{hashlib.sha256(token.encode()).hexdigest()[:12]}"


def _no_token(got: str) -> AttlasError:
    return AttlasError(
        "the token of this server", got, "open the whole address that attlas printed"
    )


async def _let_in(token: str, send: Send) -> None:
    """Give the page its cookie, and open it without the token in its address."""
    cookie = f"{_cookie(token)}={token}; Path=/; HttpOnly; SameSite=Lax"
    headers = [
        (b"location", b"/"),
        (b"set-cookie", cookie.encode("ascii")),
        (b"cache-control", b"no-store"),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _fault(scope: Scope) -> tuple[int, AttlasError] | None:
    """The status and the error of a request that is no whole one; None where it is."""
    path, query = scope.get("raw_path") or b"", scope.get("query_string") or b""
    for what, raw in (("a path", path), ("a query", query)):
        if not _well_written(raw):
            return 400, AttlasError(
                f"{what} in ASCII, whose escapes are UTF-8",
                raw.decode("ascii", "backslashreplace"),
                "write other letters as percent escapes of UTF-8, such as %C3%A9",
            )
    size = len(path) + len(query) + sum(len(n) + len(v) for n, v in scope["headers"])
    if size > _MOST_HEAD:
        return 431, AttlasError(
            f"an address and headers of at most {_MOST_HEAD:,} bytes",
            f"{size:,}",
            "send a shorter address, or fewer cookies of other servers on this machine",
        )
    return None


def _well_written(raw: bytes) -> bool:
    """Whether this part of an address says one text only: servers guess what others mean."""
    if _NOT_WRITTEN.search(raw) or _HALF_ESCAPE.search(raw):
        return False
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return False
    return True


def _from_elsewhere(where: str) -> AttlasError:
    return AttlasError(
        "a request from the explorer's own page",
        f"one from {where}",
        "open the address that attlas printed",
    )


async def _refuse(error: AttlasError, status: int, send: Send) -> None:
    body = json.dumps(error_body(error)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
