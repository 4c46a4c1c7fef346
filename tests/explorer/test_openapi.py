"""Every route is described, and whatever is asked, the answer is one that is described."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import attlas
from attlas.analysis import Reference
from attlas.explorer import app
from attlas.inference import Translator
from support.small_translators import small_translator

BASE = "http://127.0.0.1:8642"
NO_ANSWER = re.compile("model can be run again|from a target to a source|patches of an image")


def translator() -> Translator:
    return small_translator(max_len_a=0, max_len_b=4)


def trace() -> attlas.Trace:
    torch.manual_seed(1)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    source = torch.randn(2, 5, 8)
    with attlas.observe(attention) as found:
        attention(source, source, source)
    found.label_image(torch.zeros(2, 4, 4, 3), (2, 2), first=1)
    return found


class Server:
    """An explorer, its description, and the name of the maps of a text."""

    def __init__(self, shown: Any, notes: Path) -> None:
        # The maps of the trace look within one text: every answer about links is an error.
        gold = [Reference(frozenset({(0, 0)}), frozenset({(0, 0)}))] * 2
        links = gold if isinstance(shown, attlas.Trace) else None
        application = app(shown, notes=notes, gold=links)
        self.client = TestClient(application, base_url=BASE, raise_server_exceptions=False)
        self.described: dict[str, Any] = self.client.get("/api/openapi.json").json()
        if isinstance(shown, attlas.Trace):
            answer = self.client.get("/api/texts/0")
        else:
            answer = self.client.post("/api/translate", json={"text": "the cat"})
        self.map: str = answer.json()["map"]
        added = self.client.post("/api/notes", json={"text": "a note", "link": "#v=1"})
        self.note: str = added.json()["notes"][-1]["id"]


def operations_of(server: Server) -> list[tuple[str, str, dict[str, Any]]]:
    """Each path, method and what is described of it."""
    return [
        (path, method, operation)
        for path, operations in sorted(server.described["paths"].items())
        for method, operation in operations.items()
    ]


@pytest.fixture(scope="module", params=["trace", "translator"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    notes = tmp_path_factory.mktemp("notes") / "notes.json"
    return Server(trace() if request.param == "trace" else translator(), notes)


def test_the_description_has_every_route(server: Server) -> None:
    assert server.described["openapi"] == "3.1.0"
    api = next(route for route in server.client.app.routes if route.path == "/api")  # type: ignore[attr-defined]
    assert set(server.described["paths"]) == {route.path for route in api.app.routes}
    for path, operations in server.described["paths"].items():
        taken = [route.methods - {"HEAD"} for route in api.app.routes if route.path == path]
        assert {method.upper() for method in operations} == set().union(*taken)
        method = next(iter(operations))
        parts = {part[1:-1] for part in path.split("/") if part.startswith("{")}
        named = [one["name"] for one in operations[method]["parameters"] if one["in"] == "path"]
        assert set(named) == parts


def test_a_request_as_it_is_described_gets_the_answer_that_is_described(server: Server) -> None:
    for path, method, operation in operations_of(server):
        address = path.replace("{id}", server.map).replace("{layer}", "0").replace("{row}", "0")
        needed = {one["name"]: 0 for one in operation["parameters"] if one["in"] == "query"}
        requested = {name: 0 for name in needed if name in ("output", "row", "head")}
        address = address.replace("{note}", server.note)
        text = {"text": "the cat"} | ({"link": "#v=1"} if path == "/notes" else {})
        body = {"json": text} if method == "post" else {"params": requested}
        response = server.client.request(method, f"/api{address}", **body)  # type: ignore[arg-type]
        if response.status_code == 204:  # nothing was read that a glance could show
            assert path.endswith("/glance")
            continue
        shown = operation["responses"][str(response.status_code)]["content"]
        assert response.headers["content-type"].split(";")[0] in shown, path
        assert response.status_code == 200 or NO_ANSWER.search(response.text), path


TEXTS = st.one_of(
    st.sampled_from(["", "0", "1", "-1", "0:1", "1:0", "0:9", "9" * 40, "½", "0.5", "1e9", "null"]),
    st.text(max_size=6),
    st.integers(-2, 7).map(str),
    st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda two: f"{two[0]}:{two[1]}"),
)


@settings(max_examples=150)
@given(st.data())
def test_whatever_is_asked_the_answer_is_one_that_is_described(
    server: Server, data: st.DataObject
) -> None:
    path, method, operation = data.draw(st.sampled_from(operations_of(server)))
    address = path.replace("{note}", server.note)
    for name, usual in (("id", server.map), ("layer", "0"), ("row", "0")):
        part = data.draw(st.one_of(st.just(usual), st.integers(0, 3).map(str)))
        address = address.replace(f"{{{name}}}", part)
    names = [one["name"] for one in operation["parameters"] if one["in"] == "query"] or ["x"]
    requested = data.draw(st.dictionaries(st.sampled_from(names), TEXTS, max_size=4))
    arguments: dict[str, Any] = {"params": requested}
    if method == "post":
        names = ["text", "prefix", "link", "x"]
        fields = st.dictionaries(st.sampled_from(names), TEXTS, max_size=2)
        arguments = {"json": data.draw(st.one_of(fields, TEXTS, st.none()))}
    response = server.client.request(method, f"/api{address}", **arguments)
    assert response.status_code < 500, response.text
    assert str(response.status_code) in operation["responses"], (address, requested, response.text)
    if response.status_code not in (200, 204):
        assert set(response.json()) == {"expected", "got", "hint"}
