import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from attlas.errors import AttlasError
from attlas.explorer import app
from attlas.explorer.tiles import unpack
from attlas.recording import DenseAttentionMap, Trace
from support.backwards import Backwards, Watched, weights

PAGE = Path(__file__).resolve().parents[2] / "src" / "attlas" / "explorer" / "page"


def ask(client: TestClient, text: str) -> Any:
    return client.post("/api/translate", json={"text": text})


def complaint(response: Any, status: int = 400) -> str:
    """The error of a response as one sentence; its three parts are all there."""
    assert response.status_code == status
    assert set(response.json()) == {"expected", "got", "hint"}
    return "; ".join(response.json().values())


def test_a_text_comes_back_translated_with_its_tokens(client: TestClient) -> None:
    reported = ask(client, "red house").json()
    assert reported["text"] == "der esuoh"
    assert reported["source"] == ["▁red", "▁house", "</s>"]
    assert reported["target"] == ["▁der", "▁esuoh", "</s>"]
    shape = {"heads": 3, "queries": 3, "keys": 3}
    named = {"name": "decoder.attention", "title": "decoder · cross", "sheet": "decoder · cross"}
    assert reported["layers"] == [{**named, "within": False, **shape}]
    assert reported["remarks"] == []


def test_the_weights_come_as_a_tile(client: TestClient) -> None:
    reported = ask(client, "red house").json()
    tile = client.get(f"/api/maps/{reported['map']}/0")
    assert tile.headers["content-type"] == "application/vnd.attlas.tile"
    torch.testing.assert_close(unpack(tile.content), weights(3, 3), atol=1e-5, rtol=0)


def test_a_window_of_the_weights_comes_alone(client: TestClient) -> None:
    reported = ask(client, "a b c d e").json()
    tile = client.get(f"/api/maps/{reported['map']}/0?heads=1:2&rows=2:5&keys=0:4&bits=8")
    expected = weights(3, 6)[1:2, 2:5, 0:4]
    torch.testing.assert_close(unpack(tile.content), expected, atol=0.002, rtol=0)


def test_the_tokens_of_a_window_come_beside_it(client: TestClient) -> None:
    reported = ask(client, "a b c d e").json()
    named = client.get(f"/api/maps/{reported['map']}/0/tokens?rows=2:5&keys=0:2").json()
    assert named == {"rows": ["▁c", "▁d", "▁e"], "keys": ["▁a", "▁b"]}
    assert client.get(f"/api/maps/{reported['map']}/0/tokens").json()["rows"][-1] == "</s>"


def test_a_prefix_reaches_the_translator(client: TestClient, translator: Backwards) -> None:
    client.post("/api/translate", json={"text": "red", "prefix": "das"})
    assert translator.requested == [("red", "das")]


def test_a_model_without_attention_says_so_and_has_no_map() -> None:
    with TestClient(app(Backwards(looks=False)), base_url="http://localhost") as client:
        reported = ask(client, "red").json()
    assert (reported["map"], reported["layers"]) == (None, [])
    assert reported["blank"] == "the model has no attention"
    assert reported["source"] == ["▁red", "</s>"]


def test_a_translation_that_is_not_whole_says_so() -> None:
    class Short(Backwards):
        def __call__(self, text: str, prefix: str = "") -> Watched:
            return Watched("x", ("x",), ("x",), None, finished=False, cut=3, known=False, blank="b")

    with TestClient(app(Short()), base_url="http://localhost") as client:
        remarks = ask(client, "red").json()["remarks"]
    assert len(remarks) == 3
    assert "None of its words is in the vocabulary" in remarks[0]
    assert "its last 3 tokens were left out" in remarks[1]
    assert "did not end" in remarks[2]


def test_a_score_that_json_cannot_say_is_left_out() -> None:
    class Hopeless(Backwards):
        def __call__(self, text: str, prefix: str = "") -> Watched:
            return Watched("x", ("x",), ("x",), None, score=float("-inf"), blank="b")

    with TestClient(app(Hopeless()), base_url="http://localhost") as client:
        assert ask(client, "red").json()["score"] is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", '{"text": "…"} as JSON; something else'),
        (b"{", '{"text": "…"} as JSON; something else'),
        (b"\xff\xfe", '{"text": "…"} as JSON; something else'),
        (b"[" * 60_000, '{"text": "…"} as JSON; something else'),
        (b'{"text": "a", "text": "b"}', '{"text": "…"} as JSON; something else'),
        ('{"text": "a"}'.encode("utf-16"), '{"text": "…"} as JSON; something else'),
        (b'{"text": "\xe9"}', '{"text": "…"} as JSON; something else'),
        (b"[]", "a JSON list"),
        (b'{"text": 1}', "an object with 'text'"),
        (b"{}", "an object with nothing in it"),
        (b'{"text": "a", "beam": "5"}', "an object with 'text', 'beam'"),
        (b'{"text": ""}', "a sentence to translate; an empty one; type a few words"),
        (b'{"text": " \\n\\t "}', "a sentence to translate; an empty one; type a few words"),
        (b'{"text": "\\ud800"}', "text in Unicode; half of a surrogate pair"),
        (b'{"text": "a", "prefix": "\\udfff"}', "text in Unicode; half of a surrogate pair"),
        (b'{"text": "' + b"x" * 70_000 + b'"}', "at most 65,536 bytes"),
    ],
)
def test_a_wrong_question_is_answered_with_what_to_do(
    client: TestClient, translator: Backwards, body: bytes, said: str
) -> None:
    headers = {"Content-Type": "application/json"}
    assert said in complaint(client.post("/api/translate", content=body, headers=headers))
    assert translator.requested == []


def test_the_longest_text_is_translated(client: TestClient, translator: Backwards) -> None:
    assert ask(client, "é" * 30_000).status_code == 200


def test_a_body_of_another_type_is_refused(client: TestClient) -> None:
    # A form of another site can send text/plain without asking; JSON it cannot.
    response = client.post("/api/translate", content=b'{"text": "a"}')
    assert "application/json" in complaint(response)


def test_an_error_of_the_translator_reaches_the_page(translator: Backwards) -> None:
    translator.fails = AttlasError("a shorter text", "a long one", "split it")
    with TestClient(app(translator), base_url="http://localhost") as client:
        assert complaint(ask(client, "red")) == "a shorter text; a long one; split it"


def test_an_error_of_ours_is_reported_without_its_traceback(
    translator: Backwards, caplog: pytest.LogCaptureFixture
) -> None:
    translator.fails = ZeroDivisionError("secret detail")
    with TestClient(app(translator), base_url="http://localhost") as client:
        with caplog.at_level(logging.ERROR, "attlas.explorer"):
            response = ask(client, "red")
        assert "ZeroDivisionError" in complaint(response, 500)
        assert "secret detail" not in response.text
        assert "content-security-policy" in response.headers
        assert "secret detail" in caplog.text
        translator.fails = None
        assert ask(client, "red").status_code == 200


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("1", "a layer from 0 to 0; 1"),
        ("0?rows=0:9", "rows as start:stop within 0:3; ?rows=0:9"),
        ("0?bits=4", "bits of 8 or 16"),
        ("0?zoom=2", "?zoom=…"),
    ],
)
def test_a_wrong_part_of_a_map_is_answered_with_what_there_is(
    client: TestClient, question: str, said: str
) -> None:
    reported = ask(client, "red house").json()
    assert said in complaint(client.get(f"/api/maps/{reported['map']}/{question}"))


@pytest.mark.parametrize("layer", ["9" * 13, "9" * 5_000, "-1", "x", "\N{ARABIC-INDIC DIGIT ONE}"])
@pytest.mark.parametrize("part", ["", "/tokens"])
def test_a_layer_that_is_no_number_or_none_to_be_read_is_not_there(
    client: TestClient, layer: str, part: str
) -> None:
    reported = ask(client, "red house").json()
    address = f"/api/maps/{reported['map']}/{layer}{part}"
    assert "load the page again" in complaint(client.get(address), 404)


def test_a_map_that_is_no_longer_kept_says_so(client: TestClient) -> None:
    first = ask(client, "red").json()["map"]
    for _ in range(40):
        last = ask(client, "red").json()["map"]
    assert "load the page again" in complaint(client.get(f"/api/maps/{first}/0"), 404)
    assert client.get(f"/api/maps/{last}/0").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/nothing", 404),
        ("GET", "/favicon.ico", 404),
        ("GET", "/../application.py", 404),
        ("GET", "/..%2fapplication.py", 404),
        ("GET", "/%2e%2e/application.py", 404),
        ("GET", "/api/translate", 405),
        ("POST", "/api/maps/a/0", 405),
        ("GET", "/api/model/", 404),
        ("POST", "/", 405),
        ("PUT", "/api/model", 405),
    ],
)
def test_what_is_not_there_is_said_as_json(
    client: TestClient, method: str, path: str, status: int
) -> None:
    complaint(client.request(method, path), status)


@pytest.mark.parametrize(
    ("requested", "status"),
    [("bytes=99999999-", 416), ("bytes=x", 400), ("bytes=9-3", 400), ("lines=0-1", 400)],
)
@pytest.mark.parametrize("path", ["/", "/explorer.js"])
def test_a_range_that_a_file_does_not_have_is_reported_as_json(
    client: TestClient, path: str, requested: str, status: int
) -> None:
    answer = client.get(path, headers={"Range": requested})
    assert f"; {requested}; ask for the whole file" in complaint(answer, status)
    assert "content-security-policy" in answer.headers
    if status == 416:
        size = len(client.get(path).content)
        assert answer.headers["content-range"] == f"bytes */{size}"


def test_the_page_is_sent_deflated_to_those_who_take_it(client: TestClient) -> None:
    whole = (PAGE / "explorer.js").read_bytes()
    for requested in ("gzip", "identity"):
        answer = client.get("/explorer.js", headers={"Accept-Encoding": requested})
        assert answer.content == whole
        assert answer.headers.get("content-encoding") == ("gzip" if requested == "gzip" else None)
    part = client.get("/explorer.js", headers={"Accept-Encoding": "gzip", "Range": "bytes=0-999"})
    assert part.content == whole[:1000]
    assert "content-encoding" not in part.headers


def test_a_range_that_a_file_has_comes(client: TestClient) -> None:
    whole = client.get("/explorer.js").content
    part = client.get("/explorer.js", headers={"Range": "bytes=5-9"})
    assert (part.status_code, part.content) == (206, whole[5:10])


def test_of_a_long_value_an_answer_repeats_the_beginning(client: TestClient) -> None:
    answer = client.get("/" + "a" * 9_000)
    assert complaint(answer, 404)
    assert answer.json()["got"] == "GET /" + "a" * 194 + "…"


def test_a_parameter_that_comes_twice_is_reported(client: TestClient) -> None:
    reported = ask(client, "red house").json()
    answer = client.get(f"/api/maps/{reported['map']}/0?rows=0:1&rows=0:2")
    assert "each parameter once; ?rows=… twice" in complaint(answer)


def test_a_question_of_another_method_is_reported_which_it_takes(client: TestClient) -> None:
    answer = client.get("/api/translate")
    assert "GET /api/translate" in complaint(answer, 405)
    assert answer.headers["allow"] == "POST"


def test_the_page_and_its_two_files_are_served(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for file, kind in (("explorer.js", "javascript"), ("explorer.css", "text/css")):
        assert file in page.text
        assert kind in client.get(f"/{file}").headers["content-type"]


def test_the_page_names_nothing_outside_of_the_server(client: TestClient) -> None:
    # Names of XML's namespaces, which no browser fetches.
    namespaces = [
        f"http://www.w3.org/{of}" for of in ("2000/svg", "1998/Math/MathML", "1999/xhtml")
    ]
    for path in ("/", "/explorer.js", "/explorer.css"):
        text = client.get(path).text
        for namespace in namespaces:
            text = text.replace(namespace, "")
        assert "http:" not in text
        assert "https:" not in text


def test_answers_are_kept_by_no_cache(client: TestClient) -> None:
    reported = ask(client, "red")
    tile = client.get(f"/api/maps/{reported.json()['map']}/0")
    for response in (reported, tile, client.get("/api/model")):
        assert response.headers["cache-control"] == "no-store"


def test_names_and_tokens_that_are_no_utf8_are_written_as_json_can() -> None:
    trace = Trace()
    trace.record("layer", DenseAttentionMap(torch.full((1, 1, 1, 1), 1.0)))
    trace.source = trace.target = (("\udcff",),)
    with TestClient(app(trace, name="\udcff.safetensors"), base_url="http://localhost") as client:
        facts = client.get("/api/model")
        assert facts.status_code == 200
        assert facts.json()["facts"]["name"] == "\udcff.safetensors"
        shown = client.get("/api/texts/0").json()
        address = f"/api/maps/{shown['map']}/0/tokens"
        assert client.get(address).json() == {"rows": ["\udcff"], "keys": ["\udcff"]}
