import asyncio
import json
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from attlas.explorer import app
from support.backwards import Backwards

OWN = [
    "localhost",
    "localhost:8642",
    "127.0.0.1:8642",
    "[::1]:8642",
    "LOCALHOST:1",
    "[0:0:0:0:0:0:0:1]:8642",
    "[::ffff:7f00:1]:8642",
    "[::ffff:127.0.0.1]:8642",
    "localhost:65535",
    "127.0.0.1:00080",
]
FOREIGN = [
    "evil.example",
    "127.0.0.1.evil.example:8642",
    "localhost.evil.example",
    "[::1",
    "",
    "10.0.0.7",
    "0.0.0.0:8642",
    "[::ffff:a00:7]",
    # Our name, and something beside it.
    "user@localhost",
    "user:secret@localhost:8642",
    "localhost:8642@evil.example",
    "localhost/evil.example",
    "localhost?evil.example",
    "localhost#evil.example",
    "localhost\\evil.example",
    "localhost evil.example",
    "localhost,evil.example",
    "localhost%00",
    "localhost.",
    # What is no port.
    "localhost:",
    "localhost:x",
    "localhost:8642x",
    "localhost:80:80",
    "localhost:-1",
    "localhost:+80",
    "localhost: 80",
    "localhost:65536",
    "localhost:123456",
    "localhost:8²",
    # What is no address of IPv6 in brackets.
    "::1",
    "::1:8642",
    "[::1]x",
    "[::1]:",
    "[::1]:80x",
    "[::1]8642",
    "[[::1]]",
    "[::1%25lo]",
    "[::1%lo]:8642",
    "[127.0.0.1]",
    "[localhost]",
    "[v1.x]",
    "[]",
    # Other spellings of 127.0.0.1.
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0177.0.0.1",
]


def get(client: TestClient, host: str) -> int:
    headers = {"Host": host.encode("latin-1")}  # as the bytes come in
    return int(client.get("/api/model", headers=headers).status_code)


@pytest.mark.parametrize("host", OWN)
def test_this_machine_is_let_in_by_each_of_its_names(client: TestClient, host: str) -> None:
    assert get(client, host) == 200


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", ["/", "/explorer.js", "/api/model"])
def test_a_name_that_is_not_ours_gets_nothing(client: TestClient, host: str, path: str) -> None:
    response = client.get(path, headers={"Host": host.encode("latin-1")})
    assert response.status_code == 403
    assert response.json()["hint"] == "open the address that attlas printed"


def test_a_host_that_was_asked_for_is_let_in() -> None:
    client = TestClient(app(Backwards(), hosts=["Lab.example"]))
    assert get(client, "lab.example:8642") == 200
    assert get(client, "other.example") == 403


def test_an_address_that_was_asked_for_is_let_in_however_it_is_spelt() -> None:
    client = TestClient(app(Backwards(), hosts=["2001:DB8:0:0::7"]))
    assert [get(client, host) for host in ("[2001:db8::7]:1", "[2001:DB8:0::7]")] == [200, 200]
    assert get(client, "[2001:db8::8]") == 403


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"])
def test_a_server_on_every_address_answers_to_addresses_but_not_to_names(everywhere: str) -> None:
    client = TestClient(app(Backwards(), hosts=[everywhere]))
    assert [get(client, host) for host in ("10.0.0.7:8642", "[fe80::1]:8642")] == [200, 200]
    foreign = ("evil.example", "[fe80::1%25eth0]:80", "fe80::1", "10.0.0.7.evil.example", "10.0.7")
    assert [get(client, host) for host in foreign] == [403] * len(foreign)


WELL_WRITTEN = [b"", b"rows=0:1", b"a=%C3%A9", b"a=%e7%8c%ab&b=1+2", b"a=%25", b"a=%00"]
BADLY_WRITTEN = [
    *(b"a=\xff", b"a=\xc3\xa9", b"\x80", b"a=%", b"a=%4", b"a=%zz", b"a=%u00e9", b"%-1=a"),
    # No UTF-8: half a letter, an overlong one, half of a surrogate pair, beyond Unicode.
    *(b"a=%ff", b"a=%C3", b"a=%C3%28", b"a=%c0%af", b"a=%ed%a0%80", b"a=%f4%90%80%80"),
    *(b"a=1 2", b"a=\t", b"a=\x7f"),
]


def status_of(path: bytes, query: bytes) -> tuple[int, dict[str, str]]:
    """What is answered to these bytes, which a client would write otherwise."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "http_version": "1.1",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "headers": [(b"host", b"localhost")],
        "root_path": "",
    }
    asyncio.run(app(Backwards())(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(body)


@pytest.mark.parametrize("query", WELL_WRITTEN)
def test_a_query_in_escapes_of_utf8_is_read(query: bytes) -> None:
    assert status_of(b"/api/model", query)[0] == 200


@pytest.mark.parametrize("query", BADLY_WRITTEN)
def test_a_query_that_is_no_utf8_is_reported(query: bytes) -> None:
    status, reported = status_of(b"/api/model", query)
    assert (status, reported["expected"]) == (400, "a query in ASCII, whose escapes are UTF-8")
    assert status_of(b"/api/maps/a/0", query)[0] == 400


@pytest.mark.parametrize("path", [b"/\xff", b"/%ff", b"/api/texts/%C3", b"/%", b"/%zz", b"/a b"])
def test_a_path_that_is_no_utf8_is_reported(path: bytes) -> None:
    status, reported = status_of(path, b"")
    assert (status, reported["expected"]) == (400, "a path in ASCII, whose escapes are UTF-8")


def test_what_comes_before_a_body_is_of_some_kilobytes_at_most(client: TestClient) -> None:
    for path, headers in (
        ("/" + "a" * 17_000, {}),
        ("/api/model?" + "a" * 17_000, {}),
        ("/", {"Cookie": "a" * 17_000}),
        ("/", {f"X-{number}": "a" for number in range(5_000)}),
    ):
        response = client.get(path, headers=headers)
        assert response.status_code == 431
        assert response.json()["expected"] == "an address and headers of at most 16,384 bytes"
    assert client.get("/", headers={"Cookie": "a" * 15_000}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8642"]
)
def test_a_page_from_elsewhere_cannot_ask(
    client: TestClient, translator: Backwards, origin: str
) -> None:
    response = client.post("/api/translate", json={"text": "a"}, headers={"Origin": origin})
    assert response.status_code == 403
    assert origin in response.json()["got"]
    assert translator.requested == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/explorer.js", "/api/model"])
def test_another_page_cannot_show_a_part_of_ours_but_link_to_it(
    client: TestClient, path: str, site: str
) -> None:
    part = client.get(path, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})
    assert part.status_code == 403
    assert part.json()["got"] == "one from another page"
    link = client.get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"})
    assert link.status_code == 200


def test_a_web_socket_is_closed(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect) as closed, client.websocket_connect("/api/model"):
        pass
    assert closed.value.code == 1008


def test_our_own_page_can_ask(client: TestClient) -> None:
    headers = {"Origin": "http://127.0.0.1:8642", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/translate", json={"text": "a"}, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/", "/explorer.js", "/api/model", "/nothing"])
def test_every_answer_is_locked_up(client: TestClient, path: str) -> None:
    for host in ("127.0.0.1:8642", "evil.example"):
        headers = client.get(path, headers={"Host": host}).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


TOKEN = "a-token-of-24-bytes"


@pytest.fixture
def guarded() -> TestClient:
    return TestClient(
        app(Backwards(), hosts=["0.0.0.0"], token=TOKEN), base_url="http://10.0.0.7:8642"
    )


@pytest.mark.parametrize("path", ["/", "/explorer.js", "/api/model", "/nothing", "/?token="])
def test_nothing_is_answered_without_the_token(guarded: TestClient, path: str) -> None:
    answer = guarded.get(path)
    assert answer.status_code == 401
    assert answer.json()["expected"] == "the token of this server"
    assert answer.headers["content-security-policy"]


@pytest.mark.parametrize("wrong", ["x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é", "%00"])
def test_another_token_lets_nobody_in(guarded: TestClient, wrong: str) -> None:
    assert guarded.get("/", params={"token": wrong}, follow_redirects=False).status_code == 401
    sent = wrong.encode()
    headers = [(b"authorization", b"Bearer " + sent), (b"cookie", b"attlas-token=" + sent)]
    assert guarded.get("/api/model", headers=headers).status_code == 401
    assert TOKEN not in guarded.get("/").text


def test_the_token_of_the_address_becomes_a_cookie(guarded: TestClient) -> None:
    answer = guarded.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    assert guarded.get("/api/model").status_code == 200
    assert guarded.post("/api/translate", json={"text": "red"}).status_code == 200


def test_a_program_sends_the_token_as_a_header(guarded: TestClient) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/api/model", headers=headers).status_code == 200
    assert guarded.get("/api/model").status_code == 401


def test_a_token_opens_no_door_to_other_pages(guarded: TestClient) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
    assert guarded.get("/api/model", headers=headers).status_code == 403
