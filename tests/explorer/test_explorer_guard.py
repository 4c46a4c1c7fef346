import pytest
from backwards import Backwards
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from attlas.explorer import app

OWN = [
    "localhost",
    "localhost:8642",
    "127.0.0.1:8642",
    "[::1]:8642",
    "LOCALHOST:1",
    "[0:0:0:0:0:0:0:1]:8642",
    "[::ffff:7f00:1]:8642",
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
]


def get(client: TestClient, host: str) -> int:
    return int(client.get("/api/model", headers={"Host": host}).status_code)


@pytest.mark.parametrize("host", OWN)
def test_this_machine_is_let_in_by_each_of_its_names(client: TestClient, host: str) -> None:
    assert get(client, host) == 200


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", ["/", "/explorer.js", "/api/model"])
def test_a_name_that_is_not_ours_gets_nothing(client: TestClient, host: str, path: str) -> None:
    response = client.get(path, headers={"Host": host})
    assert response.status_code == 403
    assert response.json()["do"] == "open the address that attlas printed"


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
    assert get(client, "evil.example") == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8642"]
)
def test_a_page_from_elsewhere_cannot_ask(
    client: TestClient, translator: Backwards, origin: str
) -> None:
    response = client.post("/api/translate", json={"text": "a"}, headers={"Origin": origin})
    assert response.status_code == 403
    assert origin in response.json()["came"]
    assert translator.asked == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/explorer.js", "/api/model"])
def test_another_page_cannot_show_a_part_of_ours_but_link_to_it(
    client: TestClient, path: str, site: str
) -> None:
    part = client.get(path, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})
    assert part.status_code == 403
    assert part.json()["came"] == "one from another page"
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
